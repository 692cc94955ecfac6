//! Other ways to share a device, behind the same seam, to compare with.

mod fifo;

pub use fifo::Fifo;
