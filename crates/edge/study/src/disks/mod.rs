//! Test disks of a study: what is behind them, what is in them, who serves them, and the folder they lie in.

pub(crate) mod backing;
pub(crate) mod backing_error;
pub(crate) mod contents;
pub(crate) mod disk;
pub(crate) mod images;
pub(crate) mod named_folder;
#[cfg(feature = "full")]
pub(crate) mod served;
pub(crate) mod study_folder;
