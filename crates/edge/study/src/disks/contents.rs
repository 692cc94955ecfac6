//! What is on a disk before anything is measured.

use virtbench_lab::Filesystem;

/// What is on a disk before anything is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// Every block was written.
    Written,
    /// An empty file system, or nothing at all. What is not written takes no room yet.
    Empty(Option<Filesystem>),
}
