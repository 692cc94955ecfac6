//! On which of this host's processors the two sides of a prediction are.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use virtbench_lab::usable_processors;

use super::error::ApplicationsError;

/// While it exists, what this thread starts has so few processors, as the VM has: what waits for another thread finds it waiting for its turn,
/// and not at work beside it.
pub(super) struct FewProcessors(CpuSet);

impl FewProcessors {
    /// # Errors
    /// The kernel does not let this thread choose.
    pub(super) fn hold(count: usize) -> Result<Self, ApplicationsError> {
        let hold = || {
            let (before, mut few) = (sched_getaffinity(None)?, CpuSet::new());
            usable_processors()?.into_iter().take(count).for_each(|processor| few.set(processor));
            sched_setaffinity(None, &few)?;
            Ok(Self(before))
        };
        hold().map_err(|error: io::Error| {
            ApplicationsError::Environment(format!("cannot run on {count} processors alone: {error}").into())
        })
    }
}

/// The processor that guests of one processor are held to, where their kernel is a process that has to be: the one that natively has what they
/// are compared with, as no two processors of a host are as fast. Empty where it is not known.
pub(super) fn one_processor() -> Vec<usize> {
    usable_processors().unwrap_or_default().into_iter().take(1).collect()
}

impl Drop for FewProcessors {
    fn drop(&mut self) {
        let _ = sched_setaffinity(None, &self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_started_natively_has_as_many_processors_as_the_vm() {
        let seen = || std::thread::spawn(std::thread::available_parallelism).join().unwrap().unwrap().get();
        let all = seen();
        let few = FewProcessors::hold(1).unwrap();
        assert_eq!(seen(), 1);
        drop(few);
        assert_eq!(seen(), all);
        // More than there are is no error: the VM's processors share the host's, and so do its own.
        let many = FewProcessors::hold(1000).unwrap();
        assert_eq!(seen(), all);
        drop(many);
    }
}
