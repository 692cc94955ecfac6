//! Whether this process is to stop, for waits that no argument reaches: a login or a boot may take two minutes, deep within a start.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static FLAG: OnceLock<&'static AtomicBool> = OnceLock::new();

/// Has logins and boots end as soon as `flag` is set. The first flag counts.
pub fn stop_starts_on(flag: &'static AtomicBool) {
    let _ = FLAG.set(flag);
}

/// Whether that was asked for.
pub(crate) fn is_requested() -> bool {
    FLAG.get().is_some_and(|flag| flag.load(Ordering::Relaxed))
}
