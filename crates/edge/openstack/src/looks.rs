//! How often a cloud is looked at, what a look costs it, and where the time of an operation went by those looks.

use std::collections::VecDeque;
use std::time::Duration;

use virtbench_https::Polling;

/// Looks whose lengths are remembered.
const REMEMBERED: usize = 8;

/// How often an operation is looked at until it is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pace {
    /// Ever less often, with looks that answer for all who wait: the cloud spends at most a twentieth of its time on them.
    #[default]
    Sparing,
    /// Each client by itself, whatever that costs the cloud: as other tools look.
    Steady {
        /// From the answer to the call to the first look.
        first: Duration,
        /// From one look to the next.
        then: Duration,
    },
}

impl Pace {
    /// How long nobody looks after a call.
    pub(crate) fn first(self) -> Duration {
        match self {
            Self::Sparing => Duration::ZERO,
            Self::Steady { first, .. } => first,
        }
    }

    /// Until the next look, where one costs so much.
    pub(crate) fn pause(self, polling: &Polling, cost: Duration) -> Duration {
        match self {
            Self::Sparing => polling.pause(cost),
            Self::Steady { then, .. } => then,
        }
    }
}

/// How long an operation is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Until the cloud says that it is over.
    Done,
    /// Until its effect is seen: a guest that starts is heard of.
    Seen,
}

/// What a look costs a cloud: the least that one of the last ones took. Whatever others took longer, they lay in a queue.
#[derive(Debug, Default)]
pub(crate) struct Cost {
    last: VecDeque<Duration>,
}

impl Cost {
    /// Remembers one, and says what one costs.
    pub fn of(&mut self, answered_in: Duration) -> Duration {
        if self.last.len() == REMEMBERED {
            self.last.pop_front();
        }
        self.last.push_back(answered_in);
        self.last.iter().min().copied().unwrap_or(answered_in)
    }
}

/// Where the time of an operation went. Its end is known to one look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperationTimes {
    /// What this program needed.
    pub client: Duration,
    /// Until the cloud had answered.
    pub accepted: Duration,
    /// While a host was looked for, and seen to be.
    pub scheduling: Duration,
    /// While it was carried out, and seen to be.
    pub running: Duration,
    /// Until its end was known.
    pub done: Duration,
    /// Until its effect was seen; nothing where nobody can see it.
    pub seen: Option<Duration>,
    /// Between the last look that found it under way and the one that found it over: so much earlier it may have ended.
    pub uncertainty: Duration,
    /// How often something was asked again.
    pub retries: u32,
    /// Whether the cloud accepted it.
    pub was_accepted: bool,
    /// Whether it ended.
    pub was_over: bool,
    /// The first request, by which the cloud's logs name it.
    pub request: Option<String>,
}

impl OperationTimes {
    /// All but this program's own.
    pub(crate) fn elsewhere(&self) -> Duration {
        self.accepted + self.scheduling + self.running + self.done + self.seen.unwrap_or_default()
    }
}

/// What looks found, from the first on.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    /// Until the last look that found a host being looked for.
    scheduling: Duration,
    /// Until the last look that found it under way.
    under_way: Duration,
}

impl Parts {
    pub fn saw(&mut self, at: Duration, schedules: bool) {
        self.under_way = at;
        if schedules {
            self.scheduling = at;
        }
    }

    pub fn add_to(&self, times: &mut OperationTimes, whole: Duration) {
        times.scheduling += self.scheduling;
        times.running += self.under_way.saturating_sub(self.scheduling);
        times.done += whole.saturating_sub(self.under_way);
        times.uncertainty += whole.saturating_sub(self.under_way);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_costs_what_the_fastest_of_the_last_ones_took() {
        let ms = Duration::from_millis;
        let mut cost = Cost::default();
        assert_eq!((cost.of(ms(40)), cost.of(ms(20)), cost.of(ms(200))), (ms(40), ms(20), ms(20)));
        let later: Vec<Duration> = (0..REMEMBERED).map(|_| cost.of(ms(60))).collect();
        assert_eq!(
            (later[0], later[REMEMBERED - 1]),
            (ms(20), ms(60)),
            "what was fast long ago is forgotten"
        );
    }

    #[test]
    fn a_steady_pace_is_what_was_asked_for() {
        let (ms, polling) = (Duration::from_millis, Polling::start());
        let steady = Pace::Steady { first: ms(1000), then: ms(50) };
        assert_eq!((steady.first(), steady.pause(&polling, ms(40))), (ms(1000), ms(50)));
        assert_eq!((Pace::Sparing.first(), Pace::Sparing.pause(&polling, ms(40))), (ms(0), ms(760)));
    }

    #[test]
    fn the_parts_of_the_time_make_the_whole() {
        let ms = Duration::from_millis;
        let (mut parts, mut times) = (Parts::default(), OperationTimes::default());
        for (at, schedules) in [(10, true), (40, true), (90, false)] {
            parts.saw(ms(at), schedules);
        }
        parts.add_to(&mut times, ms(140));
        assert_eq!((times.scheduling, times.running, times.done), (ms(40), ms(50), ms(50)));
        assert_eq!((times.elsewhere(), times.uncertainty), (ms(140), ms(50)));
    }
}
