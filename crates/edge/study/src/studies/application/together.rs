//! Clients at one time: the one that is measured, and those of its neighbours, again and again until it has ended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use virtbench_lab::{CommandError, CpuSample, RunningAppliance};
use virtbench_record::{ApplicationFailureDetail, HostUse};

use super::client::{Client, ClientEnd, explained};
use super::sides::ApplicationFailure;
use crate::study_error::StudyError;

/// Between two looks at how everybody is.
const PAUSE: Duration = Duration::from_millis(50);
/// How long neighbours have been at work when measuring begins.
const LEAD: Duration = Duration::from_secs(1);
/// How long after a client's failure the news may take that its service has ended.
const NEWS: Duration = Duration::from_secs(2);

/// What came of clients that ran together.
#[derive(Debug)]
pub(super) struct Together {
    /// The one that was measured.
    pub(super) end: ClientEnd,
    /// The host meanwhile.
    pub(super) host: Option<HostUse>,
    /// How often each neighbour's client ended.
    pub(super) runs: Vec<u32>,
}

/// Why a neighbour is none any more.
type NeighbourEnd = Result<u32, (CommandError, String)>;

/// Runs the clients of these appliances, each by its number, the first being measured.
///
/// # Errors
/// A service or a machine ended, a client failed, or it was to stop.
pub(super) fn run_together(
    clients: &[Client],
    appliances: &mut [RunningAppliance],
    stop: &AtomicBool,
) -> Result<Together, ApplicationFailure> {
    let over = AtomicBool::new(false);
    let (first, others) =
        clients.split_first().ok_or_else(|| StudyError::input("there is no client: a defect"))?;
    thread::scope(|scope| {
        let neighbours: Vec<_> =
            others.iter().map(|client| scope.spawn(|| again_and_again(client, &over))).collect();
        let ended = || neighbours.iter().position(thread::ScopedJoinHandle::is_finished);
        let crash =
            match watch(appliances, stop, &|since| since >= LEAD || others.is_empty() || ended().is_some()) {
                None => None,
                Some(crash) => {
                    over.store(true, Ordering::Relaxed);
                    Some(crash)
                }
            };
        let measured = crash.is_none().then(|| {
            let before = CpuSample::take().ok();
            (scope.spawn(|| first.run(&over)), before)
        });
        let mut crash = crash;
        if let Some((measured, _)) = &measured {
            crash = watch(appliances, stop, &|_| measured.is_finished() || ended().is_some());
            over.store(crash.is_some() || ended().is_some(), Ordering::Relaxed);
        }
        let after = CpuSample::take().ok();
        let measured = measured.map(|(thread, before)| (thread.join(), before));
        over.store(true, Ordering::Relaxed);
        let ends = neighbours
            .into_iter()
            .map(|thread| thread.join().unwrap_or(Ok(0)))
            .collect::<Vec<NeighbourEnd>>();
        if let Some(failure) = crash {
            return Err(with_output(failure, measured.and_then(|(end, _)| Some(end.ok()?.output))));
        }
        let mut runs = Vec::new();
        for (number, end) in (1..).zip(ends) {
            runs.push(end.map_err(|(error, output)| ApplicationFailure::Failed {
                why: format!("neighbour {number}: {}", explained(&error)),
                detail: ApplicationFailureDetail { output: Some(output) },
            })?);
        }
        let defect = || ApplicationFailure::failed("the client's thread has failed: a defect");
        let (end, before) = measured.ok_or_else(defect)?;
        let end = end.map_err(|_| defect())?;
        if end.result.is_err()
            && let Some(failure) = watch(appliances, stop, &|since| since >= NEWS)
        {
            return Err(with_output(failure, Some(end.output)));
        }
        let host = before.zip(after).map(|(before, after)| before.until(&after));
        Ok(Together { end, host, runs })
    })
}

/// Looks until something is so whether everybody still runs; if not, why.
fn watch(
    appliances: &mut [RunningAppliance],
    stop: &AtomicBool,
    until: &dyn Fn(Duration) -> bool,
) -> Option<ApplicationFailure> {
    let begun = Instant::now();
    loop {
        if stop.load(Ordering::Relaxed) {
            return Some(StudyError::Stopped.into());
        }
        if let Some(error) = appliances.iter_mut().find_map(RunningAppliance::crashed) {
            return Some(ApplicationFailure::failed(error.to_string()));
        }
        if until(begun.elapsed()) {
            return None;
        }
        thread::sleep(PAUSE);
    }
}

fn with_output(failure: ApplicationFailure, printed: Option<String>) -> ApplicationFailure {
    match failure {
        ApplicationFailure::Failed { why, detail } => {
            let output = detail.output.or(printed);
            ApplicationFailure::Failed { why, detail: ApplicationFailureDetail { output } }
        }
        failure => failure,
    }
}

/// How often a client ended until it was over.
fn again_and_again(client: &Client, over: &AtomicBool) -> NeighbourEnd {
    let mut runs = 0;
    loop {
        let end = client.run(over);
        match end.result {
            Ok(()) => runs += 1,
            Err(CommandError::Stopped { .. }) => return Ok(runs),
            Err(error) => return Err((error, end.output)),
        }
        if over.load(Ordering::Relaxed) {
            return Ok(runs);
        }
    }
}
