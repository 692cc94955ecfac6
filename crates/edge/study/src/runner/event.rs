//! What happens in a study, to be shown.

use std::path::Path;

use virtbench_record::{GuestsState, HostUse, Trial};

use crate::runner::estimate::Estimate;

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
    /// So many steps of a search are done, of which nobody knows yet how many it takes.
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
