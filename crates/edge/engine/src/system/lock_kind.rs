//! How a file is locked.

/// Who may hold a file at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lock {
    /// By one alone.
    Exclusive,
    /// By any that only look.
    Shared,
}
