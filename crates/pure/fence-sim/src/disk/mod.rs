//! Models of the devices: how long one command takes, given those before it.
//!
//! A device serves one command at a time, as the prototype's did ([VirtualFence 2013], section 6.3: a batch is
//! handed over and waited for). What it holds beyond that one waits in a [`Queue`]; a [`Station`] is the two
//! together. The simulator asks it in virtual time, the daemon's emulated devices in real time.

mod hdd;
mod queue;
mod ssd;
mod station;

#[cfg(test)]
#[path = "curves_tests.rs"]
mod curves_tests;

pub use hdd::{Hdd, HddModel, SeekCurve};
pub use queue::{Command, Order, Queue};
pub use ssd::{Ssd, SsdModel, SsdProfile};
pub use station::{CONTROL_NS, Model, Station};

use thiserror::Error;

/// A disk model that describes no disk.
#[derive(Debug, Error, Clone, PartialEq)]
#[error("{option} {value}: {wants}")]
pub struct DiskError {
    option: &'static str,
    value: f64,
    wants: &'static str,
}

/// Refuses what is not a number above zero.
fn positive(option: &'static str, value: f64, wants: &'static str) -> Result<(), DiskError> {
    if value.is_finite() && value > 0.0 { Ok(()) } else { Err(DiskError { option, value, wants }) }
}

/// Refuses what is not a number from zero up.
fn not_negative(option: &'static str, value: f64, wants: &'static str) -> Result<(), DiskError> {
    if value.is_finite() && value >= 0.0 { Ok(()) } else { Err(DiskError { option, value, wants }) }
}

/// Milliseconds, which are not negative, as whole nanoseconds; what is not a sensible time saturates.
#[inline]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates
fn ms_to_ns(milliseconds: f64) -> u64 {
    (milliseconds * 1e6 + 0.5) as u64
}
