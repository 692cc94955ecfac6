//! Sizes as they are told.

/// So many bytes, as a person reads them.
pub fn on_disk(bytes: u64) -> String {
    format!("{:.0} MiB", bytes as f64 / f64::from(1 << 20))
}
