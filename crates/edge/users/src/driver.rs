//! A thread of a load: its users as tasks.

use std::io;
use std::sync::mpsc::Sender;
use std::time::Duration;

use futures_util::future::{join, join_all};
use futures_util::stream::{FuturesUnordered, StreamExt};

use crate::draws::{Stream, stream};
use crate::intended::{Ended, IntendedStarts};
use crate::service::{Fault, Service, ServiceUser};
use crate::shared::Shared;
use crate::threads::{ThreadUse, observe, runtime, unless, until_begin, within_grace};
use crate::user::{Around, GRACE, work};

/// Connections that a thread makes at the same time.
const AT_ONCE: usize = 16;
/// How long a user may take to notice that an operation was given up after the end.
const NOTICE: Duration = Duration::from_secs(1);

/// What a thread has used and left over.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Driven {
    /// CPU time.
    pub(crate) used: ThreadUse,
    /// Intended starts while measuring.
    pub(crate) offered: u64,
    /// Those that were due and not started at the end.
    pub(crate) backlog: u64,
}

/// Connects the thread's users, says so, and has them work once all threads are ready.
pub(crate) fn drive<S: Service>(
    service: &S,
    shared: &Shared<'_>,
    thread: u32,
    ready: &Sender<Result<(), Fault>>,
) -> io::Result<Driven> {
    runtime()?.block_on(async {
        let plan = shared.plan;
        let numbers = (thread..plan.users).step_by(plan.threads.max(1) as usize);
        let mut users: Vec<(u32, S::User)> =
            numbers.map(|number| (number, service.user(number, plan.seed))).collect();
        let Some(connected) = unless(|| shared.course.is_cancelled(), connect(&mut users)).await else {
            return Ok(Driven::default());
        };
        let is_connected = connected.is_ok();
        let _ = ready.send(connected);
        if !is_connected {
            return Ok(Driven::default());
        }
        if !until_begin(&shared.course).await {
            return Ok(Driven::default());
        }
        let (end, ended) = Ended::new();
        let intended = plan.rate.map(|rate| IntendedStarts::new(rate, plan.seed, thread, plan.threads));
        let around = Around { shared, thread, intended, ended };
        let tasks = users
            .into_iter()
            .map(|(number, user)| work(user, stream(plan.seed, number, Stream::Think), &around));
        let mut tasks: FuturesUnordered<_> = tasks.collect();
        let all = async {
            while let Some(done) = tasks.next().await {
                done.inspect_err(|_| shared.course.end_now())?;
            }
            Ok(())
        };
        let grace = GRACE + NOTICE;
        let (mut used, worked) =
            join(observe(&shared.course, &end), within_grace(all, &around.ended, grace)).await;
        worked?;
        used.late_starts = around.intended.as_ref().map_or(0, IntendedStarts::late);
        let (offered, backlog) = around.intended.as_ref().map_or((0, 0), |intended| {
            let chooser = service.user(u32::MAX - thread, plan.seed);
            never_begun(shared, thread, intended, chooser)
        });
        Ok(Driven { used, offered, backlog })
    })
}

/// Counts operations that were due and that nobody began, with kinds as `chooser` draws them. How many were offered, and how many of
/// those that is.
fn never_begun(
    shared: &Shared<'_>,
    thread: u32,
    intended: &IntendedStarts,
    mut chooser: impl ServiceUser,
) -> (u64, u64) {
    let (window, begin_ns) = (shared.course.window(), shared.course.begin_ns().unwrap_or(0));
    let mut tally = shared.tally(thread);
    let mut backlog = 0;
    for due_ns in intended.left(window, begin_ns) {
        tally.never_begun(window, chooser.choose(), due_ns);
        backlog += 1;
    }
    (intended.offered(window, begin_ns), backlog)
}

async fn connect<U: ServiceUser>(users: &mut [(u32, U)]) -> Result<(), Fault> {
    for some in users.chunks_mut(AT_ONCE) {
        for connected in join_all(some.iter_mut().map(|(_, user)| user.connect())).await {
            connected?;
        }
    }
    Ok(())
}
