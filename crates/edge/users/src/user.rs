//! A user: thinks, waits for a turn, asks, for as long as the load takes.

use std::io;
use std::time::Duration;

use virtbench_engine::monotonic_ns;
use virtbench_units::Random;

use crate::draws::exponential_ns;
use crate::intended::{Alarm, Ended, IntendedStarts};
use crate::service::{Fault, FaultKind, ServiceUser};
use crate::shared::Shared;

/// How long a user waits who could not connect.
const PAUSE_NS: u64 = 100_000_000;
/// How long an operation may go on after measuring has ended.
pub(crate) const GRACE: Duration = Duration::from_secs(1);
/// A service to which a user cannot connect for so long is gone.
const GONE_AFTER_NS: u64 = 5_000_000_000;

/// What the users of a thread have in common.
pub(crate) struct Around<'a> {
    /// The load.
    pub(crate) shared: &'a Shared<'a>,
    /// The thread's number.
    pub(crate) thread: u32,
    /// The next intended starts, in an open loop.
    pub(crate) intended: Option<IntendedStarts>,
    /// Tells when measuring has ended.
    pub(crate) ended: Ended,
}

/// Works until measuring has ended. A user who thinks does so first: users who begin together do not ask together.
pub(crate) async fn work(
    mut user: impl ServiceUser,
    mut thinks: Random,
    around: &Around<'_>,
) -> io::Result<()> {
    let alarm = around.intended.is_some().then(Alarm::new).transpose()?;
    let course = &around.shared.course;
    let mut unreachable_since = None;
    while !course.has_ended() {
        let kind = user.choose();
        if let Some(mean_ns) = around.shared.plan.think_ns
            && !around.ended.sleep(exponential_ns(&mut thinks, mean_ns)).await
        {
            break;
        }
        let start_ns = match (&alarm, &around.intended) {
            (Some(alarm), Some(intended)) => {
                let begin_ns = course.begin_ns().unwrap_or(0);
                match intended.wait(alarm, &around.ended, begin_ns).await? {
                    Some(at_ns) => at_ns,
                    None => break,
                }
            }
            _ => monotonic_ns(),
        };
        let fault = perform(&mut user, kind, around).await.err();
        let at_ns = monotonic_ns();
        let ended = fault.as_ref().map_or(Ok(()), Err);
        around.shared.tally(around.thread).ended(course.window(), kind, (start_ns, at_ns), ended);
        match fault.filter(|fault| fault.kind == FaultKind::Unreachable) {
            None => unreachable_since = None,
            Some(fault) => {
                let since = *unreachable_since.get_or_insert(at_ns);
                if at_ns - since >= GONE_AFTER_NS {
                    course.fail(fault);
                }
                around.ended.sleep(PAUSE_NS).await;
            }
        }
    }
    Ok(())
}

/// Does an operation within the time that it may take; it is also given up when measuring ended some time ago.
async fn perform(user: &mut impl ServiceUser, kind: usize, around: &Around<'_>) -> Result<(), Fault> {
    let limit_ns = around.shared.plan.timeout_ns;
    let limited = tokio::time::timeout(Duration::from_nanos(limit_ns), user.perform(kind));
    let done = around.ended.with_grace(limited, GRACE).await;
    done.and_then(Result::ok).unwrap_or_else(|| Err(Fault::timeout(limit_ns)))
}
