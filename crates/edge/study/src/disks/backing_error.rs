//! A backing that cannot be had.

use thiserror::Error;

/// A backing that cannot be had.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum BackingError {
    /// None of this name.
    #[error("there is no backing {name:?}: choose one of raw, qcow2, loop, overlay, nbd, fence")]
    Unknown {
        /// What was written.
        name: String,
    },
    /// One that this build leaves out.
    #[error(
        "the backing {name} is not in this build, which `make study` made: `make install` builds all of virtbench"
    )]
    NotInThisBuild {
        /// Its name.
        name: &'static str,
    },
    /// A setting it has not.
    #[error(
        "{backing} takes no {setting:?}: qcow2 takes cluster=SIZE and prealloc=off|metadata|falloc|full, overlay \
             takes cluster=SIZE, fence takes scheduler=NAME, slow=hdd|file, fast=ssd|file|none, \
             profile=spec|paper-fit, cache=PERCENT, slot=TIME, iops=N, attach=host|daemon and \
             throttle=on|blkio|off, the others take nothing"
    )]
    Setting {
        /// The backing.
        backing: String,
        /// What was written.
        setting: String,
    },
    /// A value that makes no sense.
    #[error("{name}={value} makes no sense: {expected}")]
    Value {
        /// The setting.
        name: &'static str,
        /// What was written.
        value: String,
        /// What is possible.
        expected: &'static str,
    },
}
