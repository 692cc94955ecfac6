//! How fast a storage is, as a guest sees it.

use serde::{Deserialize, Serialize};

/// One storage of VMs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StorageSpeed {
    /// Its name, such as `virtio-blk,iops=500`.
    pub storage: String,
    /// Reads.
    pub read: OperationSpeed,
    /// Writes.
    pub write: OperationSpeed,
    /// How long a flush takes after one write, in nanoseconds.
    pub flush_ns: f64,
}

/// How fast it does one kind of operation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OperationSpeed {
    /// How long one of 4 KiB takes that is alone, in nanoseconds.
    pub latency_ns: f64,
    /// How many of 4 KiB it does a second, many at once.
    pub per_second: f64,
    /// How many bytes a second, in large operations one after the other.
    pub bytes_per_second: f64,
}

impl StorageSpeed {
    /// Whether a storage can be so.
    ///
    /// # Errors
    /// The first figure that cannot be, in words.
    pub fn check(&self) -> Result<(), String> {
        let of = |speed: &OperationSpeed| [speed.latency_ns, speed.per_second, speed.bytes_per_second];
        let figures = of(&self.read).into_iter().chain(of(&self.write));
        match figures.chain([self.flush_ns]).find(|figure| !(figure.is_finite() && *figure > 0.0)) {
            Some(figure) => Err(format!("{}: {figure} is not above zero", self.storage)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storage_that_takes_no_time_is_none() {
        let speed = OperationSpeed { latency_ns: 1e5, per_second: 1e4, bytes_per_second: 1e8 };
        let storage = StorageSpeed { storage: "ide".into(), read: speed, write: speed, flush_ns: 1e6 };
        assert_eq!(storage.check(), Ok(()));
        let other = StorageSpeed { flush_ns: 0.0, ..storage.clone() };
        assert_eq!(other.check(), Err("ide: 0 is not above zero".into()));
        let slow = OperationSpeed { per_second: f64::NAN, ..speed };
        assert!(StorageSpeed { write: slow, ..storage }.check().is_err());
    }
}
