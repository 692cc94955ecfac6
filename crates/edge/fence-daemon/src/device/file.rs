//! A file, a block device or a loop device, through the ring.

use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::AsRawFd;

use io_uring::opcode;
use io_uring::types::{Fd, FsyncFlags};
use virtbench_fence::{Device, DeviceOp, IoError, Time};

use super::{Backend, Facts, Finished, Io};
use crate::ring::Ring;

/// A file opened for direct I/O.
#[derive(Debug)]
pub struct FileBackend {
    device: Device,
    file: File,
    facts: Facts,
    /// Bytes that the I/O of each slot is to move.
    expected: Vec<u32>,
    finished: VecDeque<Finished>,
}

impl FileBackend {
    /// The device of a fence that this file is.
    #[must_use]
    pub const fn new(device: Device, file: File, facts: Facts) -> Self {
        Self { device, file, facts, expected: Vec::new(), finished: VecDeque::new() }
    }
}

impl Backend for FileBackend {
    fn facts(&self) -> Facts {
        self.facts
    }

    fn start(&mut self, _now: Time, io: &Io<'_>, ring: &mut Ring) {
        let fd = Fd(self.file.as_raw_fd());
        let pieces = u32::try_from(io.segments.len()).unwrap_or(u32::MAX);
        let list = io.segments.as_ptr().cast::<libc::iovec>();
        let entry = match (io.op, io.segments) {
            (DeviceOp::Read, [one]) => {
                opcode::Read::new(fd, one.base(), io.len_bytes).offset(io.offset_bytes).build()
            }
            (DeviceOp::Write, [one]) => {
                opcode::Write::new(fd, one.base(), io.len_bytes).offset(io.offset_bytes).build()
            }
            (DeviceOp::Read, _) => opcode::Readv::new(fd, list, pieces).offset(io.offset_bytes).build(),
            (DeviceOp::Write, _) => opcode::Writev::new(fd, list, pieces).offset(io.offset_bytes).build(),
            (DeviceOp::Flush, _) => opcode::Fsync::new(fd).flags(FsyncFlags::DATASYNC).build(),
            // Punching a hole discards on block devices too.
            (DeviceOp::Discard, _) => opcode::Fallocate::new(fd, io.len_bytes.into())
                .offset(io.offset_bytes)
                .mode(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE)
                .build(),
        };
        let index = io.slot as usize;
        if self.expected.len() <= index {
            self.expected.resize(index + 1, 0);
        }
        self.expected[index] =
            if matches!(io.op, DeviceOp::Read | DeviceOp::Write) { io.len_bytes } else { 0 };
        // SAFETY: memory and list stay where they are until the I/O is finished (`Io::segments`); `Segment` is an iovec.
        unsafe { ring.push_device(self.device, io.slot, entry) };
    }

    fn on_ring(&mut self, _now: Time, slot: u32, result: i32, _ring: &mut Ring) {
        let expected = self.expected.get(slot as usize).copied().unwrap_or(0);
        let result = match u32::try_from(result) {
            Ok(moved) if moved == expected => Ok(()),
            Ok(_) => Err(IoError::Device(libc::EIO)),
            Err(_) => Err(IoError::Device(-result)),
        };
        self.finished.push_back(Finished { slot, result });
    }

    fn finished(&mut self) -> Option<Finished> {
        self.finished.pop_front()
    }
}

/// Reads leave memory as it is ([`Backend::leaves_memory`]), writes go nowhere.
#[derive(Debug)]
pub struct NullBackend {
    size_bytes: u64,
    finished: VecDeque<Finished>,
}

impl NullBackend {
    /// A device of so many bytes.
    #[must_use]
    pub const fn new(size_bytes: u64) -> Self {
        Self { size_bytes, finished: VecDeque::new() }
    }
}

impl Backend for NullBackend {
    fn facts(&self) -> Facts {
        Facts { size_bytes: self.size_bytes, block_bytes: 512, memory_alignment: 1 }
    }

    fn start(&mut self, _now: Time, io: &Io<'_>, _ring: &mut Ring) {
        self.finished.push_back(Finished { slot: io.slot, result: Ok(()) });
    }

    fn on_ring(&mut self, _now: Time, _slot: u32, _result: i32, _ring: &mut Ring) {}

    fn leaves_memory(&self) -> bool {
        true
    }

    fn finished(&mut self) -> Option<Finished> {
        self.finished.pop_front()
    }
}
