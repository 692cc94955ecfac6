//! What sources of energy have in common.

use std::fmt::Debug;

use thiserror::Error;
use virtbench_record::PowerSample;

/// A source of energy, asked every second from before measuring to its end.
pub trait EnergySource: Debug + Send {
    /// Its name in records, such as `rapl`.
    fn name(&self) -> String;

    /// Asks it now, at a moment in nanoseconds since 1970. A source that takes long makes the next answer come later, and nothing
    /// else.
    ///
    /// # Errors
    /// It does not answer; the next time it may.
    fn ask(&mut self, unix_ns: u64) -> Result<(), NoEnergy>;

    /// Power that was read so far, at moments in nanoseconds since `begin_unix_ns`.
    ///
    /// # Errors
    /// Nothing was read; why not.
    fn samples(&mut self, begin_unix_ns: u64) -> Result<Vec<PowerSample>, NoEnergy>;
}

/// Why no energy can be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct NoEnergy(pub String);

/// The moment in nanoseconds since another one; at the ends of time where it is farther.
pub(super) fn since(unix_ns: u64, begin_unix_ns: u64) -> i64 {
    let difference = i128::from(unix_ns) - i128::from(begin_unix_ns);
    i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX })
}
