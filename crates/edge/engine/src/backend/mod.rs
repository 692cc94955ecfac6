//! Ways of having operations carried out.

mod blocking;
#[cfg(feature = "network-targets")]
mod nbd;
mod null;
mod opened;
#[cfg(unix)]
mod psync;
#[cfg(unix)]
mod uring;
#[cfg(feature = "network-targets")]
mod vhost_user;
#[cfg(windows)]
mod windows;

use std::io;

use virtbench_workload::Op;

pub(crate) use blocking::Blocking;
pub(crate) use null::Null;
pub(crate) use opened::{Opened, Task};
#[cfg(unix)]
pub(crate) use uring::Uring as Queued;
#[cfg(windows)]
pub(crate) use windows::Queued;

/// An operation that is over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Completion {
    /// The slot it was queued in.
    pub slot: u32,
    /// Bytes moved, or a negated error number. A trim or a flush that succeeds moves none.
    pub result: i32,
}

/// Executes operations. Each operation occupies a slot from [`Backend::queue`] until its completion
/// is returned; the caller never reuses an occupied slot.
pub(crate) trait Backend {
    /// Whether [`Backend::drive`] performs operations on the calling thread, and may therefore not
    /// return for as long as the target does not answer.
    const BLOCKS: bool = false;

    /// Takes an operation. It may start at once or with the next [`Backend::drive`].
    ///
    /// `buffer` holds at least the operation's length and is neither moved nor touched until the
    /// completion; the caller owns it for as long as the backend lives.
    fn queue(&mut self, slot: u32, op: Op, buffer: *mut u8);

    /// Starts everything queued and appends completions, waiting for at least one unless the clock
    /// reaches `until_ns` first. Returns now and then without a completion, so that the caller
    /// can look at its stop flag.
    fn drive(&mut self, until_ns: Option<u64>, completions: &mut Vec<Completion>) -> io::Result<()>;
}

impl<B: Backend> Backend for &mut B {
    const BLOCKS: bool = B::BLOCKS;

    fn queue(&mut self, slot: u32, op: Op, buffer: *mut u8) {
        (**self).queue(slot, op, buffer);
    }

    fn drive(&mut self, until_ns: Option<u64>, completions: &mut Vec<Completion>) -> io::Result<()> {
        (**self).drive(until_ns, completions)
    }
}
