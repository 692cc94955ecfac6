//! Environments as they are named on the command line.

use virtbench_study::{NamedEnvironment, find_environments, find_homes};

use crate::exit::{Failure, Kind};

/// The environments that are named.
///
/// # Errors
/// One is none, or the file of names cannot be read.
pub fn named(texts: &[String]) -> Result<Vec<NamedEnvironment>, Failure> {
    find_environments(texts).map_err(|error| Failure::new(Kind::Usage, error))
}

/// The environments that machines live in, each as often as it takes machines in a row.
///
/// # Errors
/// As [`named`].
pub fn spread(texts: &[String]) -> Result<Vec<NamedEnvironment>, Failure> {
    find_homes(texts).map_err(|error| Failure::new(Kind::Usage, error))
}
