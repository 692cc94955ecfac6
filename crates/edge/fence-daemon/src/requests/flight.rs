//! Device I/Os in flight: the memory of each, and what is copied and summed on the way.
//!
//! Data goes straight between a guest's memory and a device, except where its checksum counts: what is summed must be
//! what is stored, and a guest may change its memory at any time. Such blocks go through memory of our own, as does
//! what is not aligned for the device, and what the core itself writes. A read in pieces goes to guests and to scratch at
//! once.

use virtbench_fence::{BufferId, Data, DeviceIo, DeviceOp, Fence};

use super::table::Table;
use crate::device::{Facts, Finished};
use crate::memory::{self, Buffer, Pool, Segment};
use crate::request::{Action, Memory};

const SCRATCH_BYTES: usize = 4096;
/// Pieces of one I/O that the kernel takes (`UIO_MAXIOV`).
const MOST_PIECES: usize = 1024;

/// Where the memory that the core names is found.
pub(super) struct Sources<'a> {
    pub(super) fence: &'a Fence,
    pub(super) requests: &'a Table,
}

impl Sources<'_> {
    #[inline]
    fn is_clients(&self, data: Data) -> bool {
        let Data::Guest { buffer, .. } = data else { return false };
        let pending = self.requests.get(name(buffer).0);
        pending.is_some_and(|pending| matches!(pending.memory, Memory::Shared { .. }))
    }

    /// Tells `each` where the data of an I/O is, and how many bytes are there, piece by piece.
    #[inline]
    fn places(&self, io: &DeviceIo, mut each: impl FnMut(Data, usize)) {
        match io.data {
            Data::Pieces => self.fence.pieces(io.id, |data, len_bytes| each(data, len_bytes as usize)),
            data => each(data, io.len_bytes as usize),
        }
    }
}

#[derive(Debug, Default)]
struct Flight {
    io: Option<DeviceIo>,
    segments: Vec<Segment>,
    /// Memory of our own in place of what the I/O names.
    bounce: Option<Buffer>,
    /// It goes straight to a client's memory.
    clients: bool,
    /// Of what is being written.
    crc: u32,
}

/// All of them, by slot.
#[derive(Debug)]
pub(super) struct Flights {
    flights: Vec<Flight>,
    own: Own,
    /// A list used by copies.
    list: Vec<Segment>,
}

/// Memory of our own that I/Os may name, and what devices want of any.
#[derive(Debug)]
struct Own {
    facts: [Facts; 2],
    scratch: Buffer,
    scratch_blocks: usize,
    zeroes: Buffer,
}

impl Flights {
    pub(super) fn new(scratch_blocks: usize, max_request_bytes: usize, facts: [Facts; 2]) -> Self {
        Self {
            flights: Vec::new(),
            own: Own {
                facts,
                scratch: Buffer::zeroed(scratch_blocks * SCRATCH_BYTES),
                scratch_blocks,
                zeroes: Buffer::zeroed(max_request_bytes),
            },
            list: Vec::new(),
        }
    }

    /// Takes an I/O in. False if there is no such memory.
    #[inline]
    pub(super) fn begin(&mut self, sources: &Sources<'_>, pool: &mut Pool, io: DeviceIo) -> bool {
        let index = io.id.slot() as usize;
        if self.flights.len() <= index {
            self.flights.resize_with(index + 1, Flight::default);
        }
        let flight = &mut self.flights[index];
        flight.io = Some(io);
        flight.segments.clear();
        flight.clients = false;
        self.own.prepare(sources, pool, &io, flight)
    }

    /// The memory of an I/O that was taken in, in the form that its device wants.
    #[inline]
    pub(super) fn segments(&self, slot: u32) -> &[Segment] {
        &self.flights[slot as usize].segments
    }

    /// Zeroes the memory of a read that its device will leave as it is, unless it is the client's own.
    pub(super) fn blank(&self, slot: u32) {
        let Some(flight) = self.flights.get(slot as usize) else { return };
        if !flight.clients && flight.io.is_some_and(|io| io.op == DeviceOp::Read) {
            flight.segments.iter().for_each(memory::zero);
        }
    }

    /// Copies at once.
    pub(super) fn copy(&mut self, sources: &Sources<'_>, from: Data, to: Data, len_bytes: u32) {
        let len = len_bytes as usize;
        let mut list = std::mem::take(&mut self.list);
        list.clear();
        match (from, to) {
            (from, Data::Scratch { block, at_bytes }) => {
                let at = block as usize * SCRATCH_BYTES + at_bytes as usize;
                if self.own.locate(sources, from, len, &mut list)
                    && let Some(to) = self.own.scratch.get_mut(at..at + len)
                {
                    memory::gather(&list, to);
                }
            }
            (Data::Scratch { block, at_bytes }, to) => {
                let at = block as usize * SCRATCH_BYTES + at_bytes as usize;
                if self.own.locate(sources, to, len, &mut list)
                    && let Some(from) = self.own.scratch.get(at..at + len)
                {
                    memory::scatter(from, &list);
                }
            }
            _ => debug_assert!(false, "the core copies to or from scratch: {from:?} {to:?}"),
        }
        self.list = list;
    }

    /// An I/O is over: what it was, and the checksum of its data if it wants one. `None` if there was none in that slot.
    #[inline]
    pub(super) fn end(
        &mut self,
        sources: &Sources<'_>,
        pool: &mut Pool,
        finished: Finished,
    ) -> Option<(DeviceIo, u32)> {
        let index = finished.slot as usize;
        let io = self.flights.get_mut(index)?.io.take()?;
        let reads = io.op == DeviceOp::Read;
        let mut crc = self.flights[index].crc;
        if io.wants_crc && reads {
            crc = self.own.crc(&io, &self.flights[index]);
        }
        if let Some(bounce) = self.flights[index].bounce.take() {
            if reads && finished.result.is_ok() {
                self.arrive(sources, &io, &bounce[..io.len_bytes as usize]);
            }
            pool.give(bounce);
        }
        Some((io, crc))
    }

    /// Brings what was read into other memory to where it belongs.
    fn arrive(&mut self, sources: &Sources<'_>, io: &DeviceIo, bytes: &[u8]) {
        let Self { own, list, .. } = self;
        let mut rest = bytes;
        sources.places(io, |data, len| {
            let (piece, after) = rest.split_at(len.min(rest.len()));
            rest = after;
            list.clear();
            if data != Data::None && own.locate(sources, data, len, list) {
                memory::scatter(piece, list);
            }
        });
    }
}

impl Own {
    #[inline]
    fn prepare(&self, sources: &Sources<'_>, pool: &mut Pool, io: &DeviceIo, flight: &mut Flight) -> bool {
        let len = io.len_bytes as usize;
        let writes = io.op == DeviceOp::Write;
        if io.data == Data::Core {
            let Some(bytes) = sources.fence.bytes(io.id) else { return false };
            let mut bounce = pool.take(len);
            bounce[..len].copy_from_slice(bytes);
            bounce_with(flight, bounce, len);
            return bytes.len() == len;
        }
        let mut found = true;
        sources.places(io, |data, len| found &= self.locate(sources, data, len, &mut flight.segments));
        if !found {
            return false;
        }
        let foreign = matches!(io.data, Data::Guest { .. } | Data::Pieces);
        if foreign && (io.wants_crc || !self.fits(io.device.index(), &flight.segments)) {
            let mut bounce = pool.take(len);
            if writes {
                memory::gather(&flight.segments, &mut bounce[..len]);
            }
            bounce_with(flight, bounce, len);
        }
        if io.wants_crc && writes {
            flight.crc = self.crc(io, flight);
        }
        flight.clients = flight.bounce.is_none() && sources.is_clients(io.data);
        true
    }

    /// Whether a device takes memory as it is.
    #[inline]
    fn fits(&self, device: usize, segments: &[Segment]) -> bool {
        let Facts { block_bytes, memory_alignment, .. } = self.facts[device];
        let (block, memory) = (block_bytes as usize - 1, memory_alignment as usize - 1);
        let one = |segment: &Segment| segment.base() as usize & memory == 0 && segment.len() & block == 0;
        segments.len() <= MOST_PIECES && segments.iter().all(one)
    }

    /// Appends the pieces that hold `len` bytes of `data`; false if there are not so many.
    #[inline]
    fn locate(&self, sources: &Sources<'_>, data: Data, len: usize, out: &mut Vec<Segment>) -> bool {
        match data {
            Data::None => true,
            Data::Core | Data::Pieces => false,
            Data::Scratch { block, at_bytes } => {
                let block = block as usize;
                let at = block * SCRATCH_BYTES + at_bytes as usize;
                let inside = block < self.scratch_blocks && at_bytes as usize + len <= SCRATCH_BYTES;
                inside && memory::slice(&[self.scratch.segment()], at, len, out)
            }
            Data::Guest { buffer, at_bytes } => {
                let (index, base) = name(buffer);
                let Some(pending) = sources.requests.get(index) else { return false };
                let at = base + at_bytes as usize;
                match &pending.memory {
                    Memory::Shared { segments, .. } => memory::slice(segments, at, len, out),
                    Memory::Owned(buffer) => memory::slice(&[buffer.segment()], at, len, out),
                    // From the beginning: one place is as good as another.
                    Memory::None => {
                        let zeroes = matches!(pending.request.action, Action::WriteZeroes { .. });
                        zeroes && memory::slice(&[self.zeroes.segment()], 0, len, out)
                    }
                }
            }
        }
    }

    /// Of memory that is ours: bounced, or scratch.
    fn crc(&self, io: &DeviceIo, flight: &Flight) -> u32 {
        let len = io.len_bytes as usize;
        match (&flight.bounce, io.data) {
            (Some(bounce), _) => crc32c::crc32c(&bounce[..len]),
            (None, Data::Scratch { block, at_bytes }) => {
                let at = block as usize * SCRATCH_BYTES + at_bytes as usize;
                self.scratch.get(at..at + len).map_or(0, crc32c::crc32c)
            }
            _ => 0,
        }
    }
}

/// Replaces the memory of a flight.
fn bounce_with(flight: &mut Flight, bounce: Buffer, len: usize) {
    flight.segments.clear();
    memory::slice(&[bounce.segment()], 0, len, &mut flight.segments);
    flight.bounce = Some(bounce);
}

/// The request behind a buffer's name, and where in its memory the part begins.
#[allow(clippy::cast_possible_truncation)] // halves of a word
const fn name(buffer: BufferId) -> (u32, usize) {
    (buffer.0 as u32, (buffer.0 >> 32) as usize)
}
