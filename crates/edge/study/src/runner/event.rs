//! What happens in a study, to be shown: how long it takes, said before it begins, and each step of it.

use std::fmt;
use std::path::Path;

use virtbench_record::{GuestsState, HostUse, Trial};
use virtbench_units::format_duration_ns;

/// What happens.
#[derive(Debug)]
pub enum Event<'a> {
    /// What a user should know.
    Remark(&'a str),
    /// The run folder is open, and this process writes into it.
    Opened(&'a Path),
    /// Files or devices are being made.
    Making {
        /// What is being made.
        what: &'a str,
        /// How much of it is done.
        done: u64,
        /// Of how much.
        total: u64,
    },
    /// Everything is ready, and measuring begins.
    Planned(&'a Estimate),
    /// Something is being done.
    Doing(&'a str),
    /// So much of all the work is done, in parts that take about as long as each other.
    Done {
        /// Parts done, of this and earlier sittings.
        done: u64,
        /// Parts in all.
        total: u64,
    },
    /// So many steps of a search are done, whose number is not known yet.
    Searched {
        /// Steps done, of this and earlier sittings.
        done: u64,
        /// There are no more than these.
        most: u64,
    },
    /// The machine of this name is being started.
    Starting(&'a str),
    /// What guests without a load cost is being measured.
    Idling(GuestsState),
    /// A measurement begins.
    Measuring {
        /// Measurements done so far, of this and earlier sittings.
        done: usize,
        /// What is measured.
        what: &'a str,
    },
    /// A measurement is in the folder, with what the host did meanwhile, if it was sampled.
    Recorded(Option<&'a HostUse>),
    /// A trial of a prediction is in the folder.
    Tried(&'a Trial),
}

/// Who is told what happens.
pub trait Observer {
    /// Something happens.
    fn event(&mut self, event: Event<'_>);

    /// Measuring has ended: what was noticed and belongs into the record.
    fn notes(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// Nobody is told.
impl Observer for () {
    fn event(&mut self, _: Event<'_>) {}
}

/// What happens, in words.
#[cfg(test)]
impl Observer for Vec<String> {
    fn event(&mut self, event: Event<'_>) {
        self.push(format!("{event:?}"));
    }
}

/// What is to be measured, and about how long that takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Estimate {
    /// Measurements, of this and earlier sittings.
    pub measurements: usize,
    /// How many machines take part in them, where they run beside each other.
    pub machines: Option<usize>,
    /// How long all of it takes, in nanoseconds; nothing where some measurement takes as long as it takes.
    pub total_ns: Option<u64>,
    /// When each measurement begins and, last, when the last one ends, in nanoseconds, where measurements do not take
    /// equally long.
    pub moments_ns: Option<Vec<u64>>,
    /// Whether there are so many at most, as in a search.
    pub is_bound: bool,
    /// What takes time besides, of which nothing is known yet.
    pub besides: Option<String>,
}

impl Estimate {
    /// So many measurements that take so long together, in nanoseconds.
    pub(crate) fn of_total(measurements: usize, total_ns: u64) -> Self {
        let (machines, moments_ns, is_bound, besides) = (None, None, false, None);
        Self { measurements, machines, total_ns: Some(total_ns), moments_ns, is_bound, besides }
    }

    /// The same of a run that measures nothing anew.
    #[must_use]
    pub fn of_nothing(self) -> Self {
        Self { measurements: 0, total_ns: Some(0), besides: None, ..self }
    }

    /// The same, as the most that there can be.
    pub(crate) fn at_most(self) -> Self {
        Self { is_bound: true, ..self }
    }

    /// The same, and something whose length is not known yet.
    pub(crate) fn beside(self, what: String) -> Self {
        Self { besides: Some(what), ..self }
    }

    /// Measurements of several machines that take as long as given, in nanoseconds; nothing for what takes as long as it
    /// takes.
    pub(crate) fn of_each(each_ns: &[Option<u64>], machines: usize) -> Self {
        let mut moments = vec![0u64];
        let mut last_ns = 0u64;
        let known = each_ns.iter().all(|takes_ns| {
            let Some(takes_ns) = takes_ns else { return false };
            last_ns = last_ns.saturating_add(*takes_ns);
            moments.push(last_ns);
            true
        });
        Self {
            measurements: each_ns.len(),
            machines: Some(machines),
            total_ns: known.then_some(last_ns),
            moments_ns: known.then_some(moments),
            is_bound: false,
            besides: None,
        }
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = if self.is_bound { "at most " } else { "" };
        write!(f, "{bound}{} measurements", self.measurements)?;
        if let Some(machines) = self.machines {
            write!(f, " of {machines} VMs")?;
        }
        match self.total_ns {
            Some(total_ns) => {
                let whole_ns = total_ns.div_ceil(1_000_000_000).saturating_mul(1_000_000_000);
                let about = if self.is_bound { "at most" } else { "about" };
                write!(f, ", {about} {}", format_duration_ns(whole_ns))?;
            }
            None => f.write_str("; each takes as long as its tests take")?,
        }
        self.besides.iter().try_for_each(|what| write!(f, " and {what}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_to_do_takes_no_time() {
        assert_eq!(Estimate::of_each(&[], 2).to_string(), "0 measurements of 2 VMs, about 0s");
        assert_eq!(Estimate::of_total(0, 0).to_string(), "0 measurements, about 0s");
    }

    #[test]
    fn what_takes_as_long_as_it_takes_leaves_the_whole_unknown() {
        let estimate = Estimate::of_each(&[Some(1), None], 3);
        assert_eq!((estimate.total_ns, estimate.moments_ns.as_ref()), (None, None));
        assert_eq!(estimate.to_string(), "2 measurements of 3 VMs; each takes as long as its tests take");
        assert_eq!(Estimate::of_total(3, 1_500_000_000).to_string(), "3 measurements, about 2s");
    }
}
