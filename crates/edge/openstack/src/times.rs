//! Where the time of an operation went, by looks at what it is for.

use std::time::Duration;

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
