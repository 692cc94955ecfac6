//! Counting what a thread's users complete.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use virtbench_engine::monotonic_ns;
use virtbench_record::UsersSecond;
use virtbench_units::{Counted, Ending, Responses, Window};

use crate::course::LoadCourse;
use crate::service::{Fault, FaultKind};

/// Different words of faults that are counted each for itself.
const MOST_WORDS: usize = 50;

/// How the others are counted.
const OTHERS: &str = "other faults";

/// What ended in a second; in the last one also what had not.
#[derive(Debug, Clone, Default)]
pub(crate) struct Second {
    completed: u64,
    failed: u64,
    /// Response times, in microseconds.
    response_us: Vec<u32>,
}

/// What a thread has counted.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Response times of each kind.
    pub(crate) kinds: Vec<Responses>,
    /// Failed operations by what went wrong.
    pub(crate) errors: BTreeMap<String, u64>,
    /// What nobody has taken yet.
    pub(crate) seconds: Seconds<Second>,
}

impl Tally {
    /// Of so many kinds.
    pub(crate) fn new(kinds: usize) -> Self {
        Self { kinds: vec![Responses::new(); kinds], ..Self::default() }
    }

    /// Counts an operation that was due at `due_ns` and ended at `at_ns`, when it was given up at the latest.
    pub(crate) fn ended(
        &mut self,
        window: Window,
        kind: usize,
        (due_ns, at_ns): (u64, u64),
        ended: Result<(), &Fault>,
    ) {
        let ending = match ended {
            Ok(()) => Ending::Completed,
            Err(fault) if fault.kind == FaultKind::Timeout => Ending::GivenUp,
            Err(_) => Ending::Failed,
        };
        let counted = self.kinds[kind].ended(window, due_ns, at_ns, ending);
        let second = match counted {
            Counted::Within => self.seconds.at(window.second(at_ns)),
            Counted::Unfinished => self.seconds.at(window.last_second()),
            Counted::Outside => return,
        };
        if counted == Counted::Unfinished || ending != Ending::Failed {
            let took_us = at_ns.saturating_sub(due_ns) / 1_000;
            second.response_us.push(u32::try_from(took_us).unwrap_or(u32::MAX));
        }
        if counted == Counted::Within {
            second.completed += u64::from(ending == Ending::Completed);
            second.failed += u64::from(ending != Ending::Completed);
            if let Err(fault) = ended {
                self.count_words(&fault.words, 1);
            }
        }
    }

    /// Counts an operation that was due at `due_ns` and has not begun.
    pub(crate) fn never_begun(&mut self, window: Window, kind: usize, due_ns: u64) {
        self.ended(window, kind, (due_ns, window.end_ns), Ok(()));
    }

    fn count_words(&mut self, words: &str, count: u64) {
        let is_known = self.errors.contains_key(words) || self.errors.len() < MOST_WORDS;
        let words = if is_known { words } else { OTHERS };
        *self.errors.entry(words.to_owned()).or_insert(0) += count;
    }

    /// Adds what another thread has counted.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.kinds.iter_mut().zip(&other.kinds) {
            mine.merge(theirs);
        }
        other.errors.iter().for_each(|(words, count)| self.count_words(words, *count));
    }
}

/// Second number `number` of the series, from what each thread has of it.
pub(crate) fn second(number: u64, length_ns: u64, parts: impl IntoIterator<Item = Second>) -> UsersSecond {
    let mut all = Second::default();
    for part in parts {
        all.completed += part.completed;
        all.failed += part.failed;
        all.response_us.extend(part.response_us);
    }
    UsersSecond {
        start_ns: number * 1_000_000_000,
        length_ns,
        completed: all.completed,
        failed: all.failed,
        p95_ns: percentile(&mut all.response_us, 95).map(|us| u64::from(us) * 1_000),
    }
}

/// How often the series is looked at.
const LOOK_NS: u64 = 50_000_000;

const LOOK: Duration = Duration::from_nanos(LOOK_NS);

const SECOND_NS: u64 = 1_000_000_000;

/// What a thread has counted in seconds of measuring that nobody has taken yet.
#[derive(Debug, Clone)]
pub struct Seconds<S>(BTreeMap<u64, S>);

impl<S> Default for Seconds<S> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<S: Default> Seconds<S> {
    /// That of number `number`.
    pub fn at(&mut self, number: u64) -> &mut S {
        self.0.entry(number).or_default()
    }

    /// Takes those before number `before`.
    pub fn take(&mut self, before: u64) -> BTreeMap<u64, S> {
        let later = self.0.split_off(&before);
        std::mem::replace(&mut self.0, later)
    }
}

/// What a caller is told while a load runs. `T` is a second of its series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LoadEvent<'a, T> {
    /// Users work; told several times a second.
    Running,
    /// A second of measuring is over.
    Second(&'a T),
}

/// The series of a load, collected until measuring has ended, also because of `stop`, and until threads have ended, which count what
/// had not: `have_ended` says whether they have. `take` takes what each thread has counted in
/// the seconds before a number; `second` makes one of the series out of its number, its length in nanoseconds, and what threads have.
pub fn series<F: Clone, S, T>(
    course: &LoadCourse<F>,
    stop: &AtomicBool,
    have_ended: &dyn Fn() -> bool,
    take: impl Fn(u64) -> Vec<BTreeMap<u64, S>>,
    second: impl Fn(u64, u64, Vec<S>) -> T,
    each: &mut dyn FnMut(LoadEvent<'_, T>),
) -> Vec<T> {
    let mut series = Vec::new();
    follow(course, stop, have_ended, &mut |turn| match turn {
        Turn::Running => each(LoadEvent::Running),
        Turn::Over { before, length_ns } if before > series.len() as u64 => {
            let mut parts = take(before);
            for number in series.len() as u64..before {
                let of_threads = parts.iter_mut().filter_map(|seconds| seconds.remove(&number)).collect();
                let second = second(number, length_ns, of_threads);
                each(LoadEvent::Second(&second));
                series.push(second);
            }
        }
        Turn::Over { .. } => {}
    });
    series
}

/// What becomes known of the seconds of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// The load runs; told several times a second.
    Running,
    /// The seconds before number `before` are over; those not told of before are `length_ns` nanoseconds long.
    Over {
        /// One more than the last one's number.
        before: u64,
        /// How long each is.
        length_ns: u64,
    },
}

/// Tells of the seconds of measuring until it has ended, also because of `stop`.
fn follow<F: Clone>(
    course: &LoadCourse<F>,
    stop: &AtomicBool,
    have_ended: &dyn Fn() -> bool,
    each: &mut dyn FnMut(Turn),
) {
    loop {
        thread::sleep(LOOK);
        each(Turn::Running);
        if stop.load(Ordering::Relaxed) {
            course.end_now();
        }
        let window = course.window();
        let until_ns = monotonic_ns().min(window.end_ns);
        // An operation that has just ended is counted within a look.
        let settled_ns = monotonic_ns().saturating_sub(window.start_ns.saturating_add(LOOK_NS));
        let whole = (settled_ns / SECOND_NS).min(until_ns.saturating_sub(window.start_ns) / SECOND_NS);
        if !course.has_ended() {
            each(Turn::Over { before: whole, length_ns: SECOND_NS });
        } else {
            while !have_ended() {
                thread::sleep(LOOK / 10);
                each(Turn::Running);
            }
            let length_ns = course.measured_ns();
            each(Turn::Over { before: length_ns / SECOND_NS, length_ns: SECOND_NS });
            if !length_ns.is_multiple_of(SECOND_NS) {
                each(Turn::Over { before: length_ns / SECOND_NS + 1, length_ns: length_ns % SECOND_NS });
            }
            return;
        }
    }
}

/// The value below or at which so many percent of the values lie; nothing of none. Changes their order.
pub fn percentile(values: &mut [u32], percent: usize) -> Option<u32> {
    let place = (values.len() * percent).div_ceil(100).checked_sub(1)?;
    let (_, found, _) = values.select_nth_unstable(place);
    Some(*found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::FaultKind;

    const WINDOW: Window = Window { start_ns: 5_000_000_000, end_ns: 8_000_000_000 };

    #[test]
    fn what_users_complete_outside_the_window_does_not_count() {
        let (mut one, mut other) = (Tally::new(2), Tally::new(2));
        let fault = Fault::new(FaultKind::Refused, "HTTP 500");
        for at_ns in [4_999_999_999, 5_000_000_000, 7_999_999_999] {
            one.ended(WINDOW, 0, (at_ns - 1_000_000, at_ns), Ok(()));
            other.ended(WINDOW, 1, (at_ns - 1_000_000, at_ns), Err(&fault));
        }
        other.ended(WINDOW, 1, (8_000_000_000, 8_000_000_001), Ok(()));
        one.merge(&other);
        let counted: Vec<(u64, u64)> =
            one.kinds.iter().map(|kind| (kind.completed(), kind.failed())).collect();
        assert_eq!(counted, [(2, 0), (0, 2)]);
        assert_eq!(one.errors, BTreeMap::from([("HTTP 500".to_owned(), 2)]));
        let parts = [&mut one, &mut other].map(|tally| tally.seconds.take(1).remove(&0).unwrap());
        let first = second(0, 1_000_000_000, parts);
        assert_eq!((first.completed, first.failed, first.p95_ns), (1, 1, Some(1_000_000)));
        assert_eq!(second(1, 5, []).p95_ns, None);
    }

    #[test]
    fn what_had_not_ended_is_in_the_response_times_of_the_whole_and_of_the_last_second() {
        let mut tally = Tally::new(1);
        let late = Fault::timeout(500_000_000);
        tally.ended(WINDOW, 0, (7_000_000_000, 7_001_000_000), Ok(()));
        tally.ended(WINDOW, 0, (5_000_000_000, 5_500_000_000), Err(&late));
        tally.ended(WINDOW, 0, (6_000_000_000, 9_000_000_000), Err(&late));
        tally.never_begun(WINDOW, 0, 7_500_000_000);
        let kind = &tally.kinds[0];
        assert_eq!((kind.completed(), kind.failed(), kind.unfinished()), (1, 1, 2));
        assert_eq!(kind.summary().unwrap().max, 3_000_000_000);
        let mut seconds = tally.seconds.take(3);
        let [first, last] = [0, 2].map(|number| second(number, 1_000_000_000, seconds.remove(&number)));
        assert_eq!((first.completed, first.failed, first.p95_ns), (0, 1, Some(500_000_000)));
        assert_eq!((last.completed, last.failed, last.p95_ns), (1, 0, Some(3_000_000_000)));
    }

    #[test]
    fn faults_of_many_words_do_not_fill_the_memory() {
        let mut tally = Tally::new(1);
        for number in 0..1_000 {
            let fault = Fault::new(FaultKind::Refused, format!("fault {}", number % 100));
            tally.ended(WINDOW, 0, (WINDOW.start_ns, WINDOW.start_ns), Err(&fault));
        }
        assert_eq!((tally.errors.len(), tally.errors[OTHERS]), (MOST_WORDS + 1, 500));
        assert_eq!(tally.errors.values().sum::<u64>(), 1_000);
    }

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let mut values: Vec<u32> = (1..=20).rev().collect();
        assert_eq!((percentile(&mut values, 90), percentile(&mut values, 95)), (Some(18), Some(19)));
        assert_eq!((percentile(&mut [7], 95), percentile(&mut [], 95)), (Some(7), None));
    }

    #[test]
    fn seconds_are_told_once_and_the_last_may_be_shorter() {
        let course: LoadCourse<()> = LoadCourse::new(0, 1_100_000_000);
        course.begin(monotonic_ns());
        let mut told: Vec<(u64, u64)> = Vec::new();
        follow(&course, &AtomicBool::new(false), &|| true, &mut |turn| {
            if let Turn::Over { before, length_ns } = turn
                && before > told.last().map_or(0, |(before, _)| *before)
            {
                told.push((before, length_ns));
            }
        });
        assert_eq!(told, [(1, SECOND_NS), (2, 100_000_000)]);
        let mut seconds: Seconds<u32> = Seconds::default();
        [0, 1, 1, 2].into_iter().for_each(|number| *seconds.at(number) += 1);
        assert_eq!((seconds.take(2), seconds.take(9)), ([(0, 1), (1, 2)].into(), [(2, 1)].into()));
    }
}
