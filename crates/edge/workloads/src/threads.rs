//! The threads of a workload.

use std::thread;

use crate::runner::RunError;

/// The threads that are meant: 0 stands for one on each processor.
pub(crate) fn threads_meant(asked: u32) -> u32 {
    if asked > 0 {
        return asked;
    }
    thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX))
}

/// Has a thread do something with each member, all at once, and waits for all.
///
/// # Errors
/// A thread could not be started; those that were are waited for.
pub(crate) fn each<M: Send, T: Send>(
    members: impl IntoIterator<Item = M>,
    act: impl Fn(M) -> T + Sync,
) -> Result<Vec<T>, RunError> {
    let act = &act;
    thread::scope(|scope| {
        let started: Vec<_> = members
            .into_iter()
            .map(|member| thread::Builder::new().spawn_scoped(scope, move || act(member)))
            .collect();
        started
            .into_iter()
            .map(|thread| match thread {
                Ok(thread) => Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))),
                Err(source) => Err(RunError::resource("starting a thread", source)),
            })
            .collect()
    })
}
