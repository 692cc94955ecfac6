//! Test disks of a study: what is behind them, what is in them, who serves them, and the folder they lie in.

pub(crate) mod backing;
pub(crate) mod backing_error;
pub(crate) mod disk;
pub(crate) mod images;
#[cfg(feature = "full")]
pub(crate) mod served;
