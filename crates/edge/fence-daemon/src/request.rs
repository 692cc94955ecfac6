//! What a client asks for, and what it is told.

use std::any::Any;
use std::rc::Rc;

use virtbench_fence::{DiskId, IoError};

use crate::memory::{Buffer, Segment};

/// What a client asks for. Ranges are the client's, of a virtual disk, in bytes, and of any length: longer requests
/// than the fence takes are handed to it in parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Fill the memory.
    Read,
    /// Store the memory; with `fua`, completed only when it is stable.
    Write {
        /// Stable before it is completed.
        fua: bool,
    },
    /// Make all writes stable that were completed before this was handed in. Offset and length are ignored.
    Flush,
    /// The range is no longer needed.
    Discard,
    /// Store zeroes; no memory goes with it.
    WriteZeroes {
        /// Stable before it is completed.
        fua: bool,
    },
}

/// A request of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The front end's name for it, given back in [`Done`].
    pub tag: u64,
    /// Which virtual disk.
    pub disk: DiskId,
    /// What to do.
    pub action: Action,
    /// Where on the virtual disk, a multiple of 512.
    pub offset_bytes: u64,
    /// How much, a multiple of 512.
    pub len_bytes: u64,
}

/// The memory of a request: as long as the request, or none.
#[derive(Debug)]
pub enum Memory {
    /// None: a flush, a discard, zeroes.
    None,
    /// A buffer of the daemon's own (`Host::buffer`), of which the first `len_bytes` of the
    /// request are used. It comes back in [`Done`].
    Owned(Buffer),
    /// Pieces of a client's memory.
    Shared {
        /// The pieces; take the list from `Host::segments`, it goes back there by itself.
        segments: Vec<Segment>,
        /// What keeps them mapped; dropped when the request is done.
        keep: Rc<dyn Any>,
    },
}

/// A request that is done.
#[derive(Debug)]
pub struct Done {
    /// The front end's name for it.
    pub tag: u64,
    /// How it went. After a failed write any part may be stored.
    pub result: Result<(), IoError>,
    /// The buffer of [`Memory::Owned`]; give it back (`Host::give`) when it is used up.
    pub buffer: Option<Buffer>,
}
