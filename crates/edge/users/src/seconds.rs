//! What happens in each second of measuring, told soon after it is over.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use virtbench_engine::monotonic_ns;

use crate::course::LoadCourse;

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
