//! How many users saturate a database: the next number to try is decided without running anything.
//!
//! Users are doubled until the processors are saturated or throughput stops growing; then the steps between the best
//! number and its neighbours are tried. The answer is the least number that does as much as any, within the noise.

/// Below this share of idle time, in percent, processors are saturated ([Platform 2014], Table 4: 1.4 to 2.6 %).
pub const SATURATED_IDLE_PERCENT: f64 = 3.0;
/// Throughput that is less than this share above the best before has stopped growing.
const GROWTH: f64 = 0.05;
/// Numbers whose throughput differs by less than this share do the same.
const SAME: f64 = 0.02;
/// Doublings without growth after which nothing more is expected.
const FLAT: usize = 2;

/// What a number of users did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UsersPoint {
    /// The number.
    pub users: u32,
    /// Transactions per second.
    pub per_second: f64,
    /// Idle time of the side's processors, in percent of all of them; where it is known.
    pub idle_percent: Option<f64>,
}

/// Why the search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsersEnd {
    /// The processors are saturated.
    Saturated,
    /// More users do not do more, though processors are left: something else is the limit.
    NoGrowth,
    /// More users than this were not to be tried.
    MostUsers,
}

impl UsersEnd {
    /// As programs read it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Saturated => "saturated",
            Self::NoGrowth => "no_growth",
            Self::MostUsers => "most_users",
        }
    }
}

/// How many users saturate a side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UsersFound {
    /// The number with what it did.
    pub point: UsersPoint,
    /// Why more were not tried.
    pub end: UsersEnd,
}

/// The search.
#[derive(Debug, Clone)]
pub struct UsersSearch {
    most: u32,
    points: Vec<UsersPoint>,
}

impl UsersSearch {
    /// A search among 1 to `most` users, at least one.
    #[must_use]
    pub fn new(most: u32) -> Self {
        Self { most: most.max(1), points: Vec::new() }
    }

    /// The number to try next; `None` once the answer is known.
    #[must_use]
    pub fn next_users(&self) -> Option<u32> {
        let Some(last) = self.points.iter().map(|point| point.users).max() else { return Some(1) };
        if self.rising_end().is_none() {
            return Some(last.saturating_mul(2).min(self.most));
        }
        let best = self.best()?;
        let mut numbers: Vec<u32> = self.points.iter().map(|point| point.users).collect();
        numbers.sort_unstable();
        let at = numbers.iter().position(|users| *users == best.users)?;
        let below = at.checked_sub(1).map(|index| numbers[index]);
        let above = numbers.get(at + 1).copied();
        // Doubling leaves a factor of four around the best. A step to either side is enough: the curve is flat there.
        let gap = |low: u32, high: u32| (high - low > 1 && high >= 2 * low).then(|| u32::midpoint(low, high));
        above
            .and_then(|above| gap(best.users, above))
            .or_else(|| below.and_then(|below| gap(below, best.users)))
    }

    /// Takes in what the number of [`Self::next_users`] did.
    pub fn observe(&mut self, point: UsersPoint) {
        self.points.push(point);
    }

    /// Everything that was tried, by ascending number of users.
    #[must_use]
    pub fn points(&self) -> Vec<UsersPoint> {
        let mut points = self.points.clone();
        points.sort_by_key(|point| point.users);
        points
    }

    /// The answer so far; `None` before anything was tried.
    #[must_use]
    pub fn found(&self) -> Option<UsersFound> {
        let point = self.best()?;
        Some(UsersFound { point, end: self.rising_end().unwrap_or(UsersEnd::MostUsers) })
    }

    /// The least number that does as much as any.
    fn best(&self) -> Option<UsersPoint> {
        let most = self.points.iter().map(|point| point.per_second).fold(0.0, f64::max);
        self.points().into_iter().find(|point| point.per_second >= (1.0 - SAME) * most)
    }

    /// Why doubling has ended, if it has.
    fn rising_end(&self) -> Option<UsersEnd> {
        let points = self.points();
        let saturated =
            |point: &UsersPoint| point.idle_percent.is_some_and(|idle| idle < SATURATED_IDLE_PERCENT);
        let mut best: f64 = 0.0;
        let mut flat = 0;
        let mut was_saturated = false;
        for point in &points {
            let grows = point.per_second > (1.0 + GROWTH) * best;
            flat = if grows { 0 } else { flat + 1 };
            best = best.max(point.per_second);
            // Saturated processors may still do more with more users, which wait less for each other.
            if was_saturated && !grows {
                return Some(UsersEnd::Saturated);
            }
            was_saturated |= saturated(point);
            if flat >= FLAT {
                return Some(UsersEnd::NoGrowth);
            }
        }
        let last = points.last()?;
        (last.users >= self.most).then_some(if was_saturated {
            UsersEnd::Saturated
        } else {
            UsersEnd::MostUsers
        })
    }
}

#[cfg(test)]
#[path = "users_search_tests.rs"]
mod tests;
