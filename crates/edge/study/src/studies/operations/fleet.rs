//! The VMs of a run: made, kept account of while operations change them, and removed; on a platform that may not answer for a while.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use virtbench_operations::{Choice, Chooser, Mix, Rules, Settled, Vms};
use virtbench_platforms::{Action, Failure, Performed, Platform};
use virtbench_record::{FailureKind, OperationKind, OperationsPlan};

use super::management::Management;
use crate::study_error::StudyError;

/// VMs that are made, or started, at once.
const MADE_AT_ONCE: usize = 4;

/// How long a VM may take to be made and to answer before anything is measured, where an operation may not take longer.
const MADE_WITHIN: Duration = Duration::from_secs(120);

/// How long it may take to say how a VM is.
const ANSWER_LIMIT: Duration = Duration::from_secs(15);

struct State {
    vms: Vms,
    chooser: Chooser,
}

/// VMs on a platform, and what may be done with each.
pub(crate) struct Fleet<'a> {
    platform: &'a dyn Platform,
    state: Mutex<State>,
    label: String,
    limit: Duration,
    management: Management,
    stop: &'a AtomicBool,
}

/// What became of an operation.
pub(crate) struct Ended {
    pub(super) performed: Performed,
    /// Since when nobody answered, and until when, where that was so and where somebody did again.
    pub(super) away: Option<(Instant, Option<Instant>)>,
}

impl<'a> Fleet<'a> {
    /// Makes so many VMs and starts every other one.
    ///
    /// # Errors
    /// One cannot be made or started, or `stop` was set. What was made stays, to be removed with the run's.
    pub(crate) fn prepare(
        platform: &'a dyn Platform,
        plan: &OperationsPlan,
        count: u32,
        stop: &'a AtomicBool,
    ) -> Result<Self, StudyError> {
        let mix = Mix::new(plan.mix.clone()).map_err(StudyError::input)?;
        let rules = Rules {
            clones: plan.clones.clone(),
            clones_overlays: platform.clones_overlays(),
            starts_clones: platform.starts_clones(),
            cold_migrates_running: platform.cold_migrates_running(),
            ..Rules::new(count, platform.migrates_snapshots())
        };
        let fleet = Self {
            platform,
            state: Mutex::new(State {
                vms: Vms::new(0..count, rules),
                chooser: Chooser::new(mix, plan.seed),
            }),
            label: platform.label(),
            limit: Duration::from_nanos(plan.limit_ns),
            management: Management::of(&plan.platform),
            stop,
        };
        let next = AtomicU32::new(0);
        let make_some = || -> Result<(), StudyError> {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return Ok(());
                }
                if stop.load(Ordering::Relaxed) {
                    return Err(StudyError::Stopped);
                }
                fleet.make(number).inspect_err(|_| next.store(count, Ordering::Relaxed))?;
            }
        };
        thread::scope(|scope| {
            let makers: Vec<_> = (0..MADE_AT_ONCE).map(|_| scope.spawn(make_some)).collect();
            makers.into_iter().try_for_each(|maker| maker.join().unwrap_or(Err(StudyError::Stopped)))
        })?;
        Ok(fleet)
    }

    /// Makes a VM; those with odd numbers run.
    fn make(&self, number: u32) -> Result<(), Failure> {
        let name = self.name(number);
        let deadline = Instant::now() + self.limit.max(MADE_WITHIN);
        self.platform.create(&name, deadline)?;
        if number % 2 == 1 {
            self.platform.perform(&name, &Action::PowerOn, deadline).result?;
            let on = Choice { kind: OperationKind::PowerOn, vm: Some(number), item: None, clone: None };
            self.state().vms.settle(&on, Settled::Done);
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn name(&self, number: u32) -> String {
        format!("{}-{number}", self.label)
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.limit
    }

    /// How many VMs there are, and how many of them run.
    pub(super) fn counts(&self) -> (usize, usize) {
        self.state().vms.counts()
    }

    /// The processes of the platform itself.
    pub(super) fn management(&self) -> &Management {
        &self.management
    }

    /// What is to be done next; nothing where whatever the mix demands is not legal.
    pub(super) fn next(&self) -> Option<Choice> {
        let State { vms, chooser } = &mut *self.state();
        chooser.next(vms)
    }

    /// The longest that an operation may take.
    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    /// Forgets what is owed, and begins with a whole deck; each is played to its end from now on.
    pub(super) fn begin_rounds(&self, seed: u64) {
        let state = &mut *self.state();
        state.chooser = state.chooser.in_rounds(seed);
    }

    /// Does it, and keeps account of what became of its VM.
    pub(super) fn perform(&self, choice: &Choice) -> Ended {
        let vm = choice.vm.map(|number| self.name(number)).unwrap_or_default();
        let performed = self.platform.perform(&vm, &self.action(choice), self.deadline());
        let failed_at = Instant::now();
        let (settled, is_back) = match &performed.result {
            Ok(()) => (Settled::Done, true),
            Err(failure) => self.after(failure, choice, &vm),
        };
        self.state().vms.settle(choice, settled);
        let found_nobody =
            performed.result.as_ref().is_err_and(|error| error.kind == FailureKind::Unreachable);
        let back_at = is_back.then(Instant::now);
        Ended { performed, away: found_nobody.then_some((failed_at, back_at)) }
    }

    /// How a VM is after a failure, and whether the platform answers. What was cut off is seen only once it does again.
    fn after(&self, failure: &Failure, choice: &Choice, vm: &str) -> (Settled, bool) {
        let answer = || self.platform.state(vm, Instant::now() + ANSWER_LIMIT);
        let is_over = || self.stop.load(Ordering::Relaxed);
        let found = match failure.kind {
            // It may still be done when nobody waits for it any more.
            FailureKind::TimedOut => return (Settled::Lost, true),
            FailureKind::Unreachable => patiently(patience(self.limit), is_over, answer),
            _ => answer(),
        };
        let takes_away = matches!(choice.kind, OperationKind::DeleteSnapshot | OperationKind::DetachDisk);
        let is_back = !found.as_ref().is_err_and(is_outage);
        let settled = match found {
            _ if choice.vm.is_none() => Settled::Lost,
            Ok(Some(_)) if takes_away && failure.kind == FailureKind::Vanished => Settled::Done,
            Ok(Some(state)) => Settled::NotDone(state),
            Ok(None) | Err(_) => Settled::Lost,
        };
        (settled, is_back)
    }

    fn action(&self, choice: &Choice) -> Action {
        let item = choice.item.unwrap_or_default();
        let name = |kind: &str| format!("{kind}{item}");
        match choice.kind {
            OperationKind::PowerOn => Action::PowerOn,
            OperationKind::PowerOff => Action::PowerOff,
            OperationKind::Clone => {
                Action::Clone { into: self.name(item), kind: choice.clone.unwrap_or_default() }
            }
            OperationKind::Migrate => Action::Migrate,
            OperationKind::Remove => Action::Remove,
            OperationKind::CreateSnapshot => Action::CreateSnapshot { name: name("snapshot") },
            OperationKind::DeleteSnapshot => Action::DeleteSnapshot { name: name("snapshot") },
            OperationKind::Reconfigure => {
                static NOTE: AtomicU32 = AtomicU32::new(0);
                Action::Reconfigure { note: format!("note {}", NOTE.fetch_add(1, Ordering::Relaxed)) }
            }
            OperationKind::Suspend => Action::Suspend,
            OperationKind::Resume => Action::Resume,
            OperationKind::AttachDisk => Action::AttachDisk { name: name("disk") },
            OperationKind::DetachDisk => Action::DetachDisk { name: name("disk") },
            OperationKind::Console => Action::Console,
            OperationKind::List => Action::List,
            OperationKind::Shutdown => Action::Shutdown,
            OperationKind::Reset => Action::Reset,
            OperationKind::RevertSnapshot => Action::RevertSnapshot { name: name("snapshot") },
            OperationKind::MoveDisk => Action::MoveDisk,
            OperationKind::ResizeDisk => Action::ResizeDisk,
            OperationKind::ColdMigrate => Action::ColdMigrate,
            OperationKind::Resize => Action::Resize,
            OperationKind::Rebuild => Action::Rebuild,
            OperationKind::Shelve => Action::Shelve,
            OperationKind::Unshelve => Action::Unshelve,
            OperationKind::AttachPort => Action::AttachPort { name: name("port") },
            OperationKind::DetachPort => Action::DetachPort { name: name("port") },
        }
    }
}

/// The longest that a platform is waited for.
const LONGEST: Duration = Duration::from_secs(60);

/// How soon it is asked again: at first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// How long a platform may be away before it is given up, where an operation may take so long.
pub(super) fn patience(limit: Duration) -> Duration {
    limit.min(LONGEST)
}

/// Whether nobody answered.
pub(super) fn is_outage(failure: &Failure) -> bool {
    matches!(failure.kind, FailureKind::Unreachable | FailureKind::TimedOut)
}

/// What the platform answers, once it does: asked again until then, for this long, or until nobody wants to know any more.
///
/// # Errors
/// It refuses, or it did not answer in time: with its last words.
pub(super) fn patiently<T>(
    patience: Duration,
    is_over: impl Fn() -> bool,
    mut ask: impl FnMut() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let until = Instant::now() + patience;
    let mut pause = PAUSES.0;
    loop {
        match ask() {
            Err(error) if is_outage(&error) && Instant::now() + pause < until && !is_over() => {
                tracing::debug!(%error, ?pause, "the platform is asked again");
                thread::sleep(pause);
                pause = (2 * pause).min(PAUSES.1);
            }
            answer => return answer,
        }
    }
}

/// The time that these spans cover together, within the first `length_ns` nanoseconds.
pub(super) fn covered_ns(mut spans: Vec<(u64, u64)>, length_ns: u64) -> u64 {
    spans.sort_unstable();
    let (mut covered_ns, mut reached_ns) = (0, 0);
    for (from_ns, until_ns) in spans {
        let (from_ns, until_ns) = (from_ns.max(reached_ns), until_ns.min(length_ns));
        covered_ns += until_ns.saturating_sub(from_ns);
        reached_ns = reached_ns.max(until_ns);
    }
    covered_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_platform_is_asked_until_it_answers_or_refuses() {
        let answers = |mut left: u32, kind: FailureKind| {
            let mut asked = 0;
            let answer = patiently(
                Duration::from_secs(30),
                || false,
                || {
                    asked += 1;
                    left = left.saturating_sub(1);
                    if left == 0 { Ok(()) } else { Err(Failure::new(kind, "connection refused")) }
                },
            );
            (asked, answer.map_err(|failure| failure.message))
        };
        assert_eq!(answers(3, FailureKind::Unreachable), (3, Ok(())));
        assert_eq!(answers(3, FailureKind::Refused), (1, Err("connection refused".into())));
    }

    #[test]
    fn one_that_stays_away_is_given_up_with_its_last_words() {
        let never = || Err::<(), _>(Failure::new(FailureKind::Unreachable, "connection refused"));
        let failure = patiently(Duration::ZERO, || false, never).unwrap_err();
        assert_eq!(failure.message, "connection refused");
        assert!(patiently(Duration::from_secs(3600), || true, never).is_err(), "a stop ends the wait");
    }

    #[test]
    fn times_that_overlap_count_once_and_end_with_the_piece() {
        assert_eq!(covered_ns(vec![(50, 120), (10, 30), (20, 40)], 100), 80);
        assert_eq!(covered_ns(vec![(10, 90), (20, 30), (40, 95), (120, 130)], 100), 85);
        assert_eq!(covered_ns(Vec::new(), 100), 0);
    }
}
