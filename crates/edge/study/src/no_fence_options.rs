//! In place of the settings of the fence in a build without it.

use std::fmt;

use crate::disks::backing_error::BackingError;

/// Disks of the fence's daemon, which this build has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FenceOptions {}

impl FenceOptions {
    /// The backing `fence` without any setting.
    pub(crate) fn plain() -> Result<Self, BackingError> {
        Err(BackingError::NotInThisBuild { name: "fence" })
    }

    pub(crate) fn set(&mut self, _name: &str, _value: &str) -> Result<bool, BackingError> {
        match *self {}
    }

    pub(crate) fn description(&self) -> String {
        match *self {}
    }

    pub(crate) fn is_on_host(&self) -> bool {
        match *self {}
    }

    pub(crate) fn is_limited_by_host(&self) -> bool {
        match *self {}
    }

    pub(crate) fn is_throttled(&self) -> bool {
        match *self {}
    }
}

impl fmt::Display for FenceOptions {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}
