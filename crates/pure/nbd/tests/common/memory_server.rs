//! A driver of [`Connection`] over disks in memory, without a socket. It holds the connection to its bounds.
//!
//! Used by the tests beside it, and fed inventions by the fuzz target `nbd`.

#![allow(dead_code, clippy::unwrap_used, clippy::cast_possible_truncation)]

use std::collections::BTreeMap;

use virtbench_nbd::server::{Connection, Event, Export, Limits, Op, Request, ServerConfig, Tls, Violation};
use virtbench_nbd::{ErrorCode, Piece};

/// Two disks: `disk` of 64 KiB in blocks of 512 bytes, `frozen` of 8 KiB that is read-only.
pub fn exports() -> Vec<Export> {
    let disk = Export {
        name: "disk".into(),
        size_bytes: 65536,
        read_only: false,
        min_block_bytes: 512,
        preferred_block_bytes: 4096,
        is_withdrawn: false,
    };
    let frozen = Export { name: "frozen".into(), size_bytes: 8192, read_only: true, ..disk.clone() };
    vec![disk, frozen]
}

/// Small bounds, so that they are reached.
pub fn config(tls: Tls) -> ServerConfig {
    let limits = Limits {
        max_requests: 4,
        max_bytes: 16384,
        max_payload_bytes: 8192,
        negotiation_ns: 10_000,
        stall_ns: 1_000,
    };
    ServerConfig { limits, tls }
}

/// One client's server.
pub struct MemoryServer {
    pub connection: Connection,
    pub exports: Vec<Export>,
    pub disks: Vec<Vec<u8>>,
    pub export: usize,
    pub under_way: Vec<Request>,
    /// Requests in the order in which they came.
    pub log: Vec<Request>,
    pub sent: Vec<u8>,
    pub now_ns: u64,
    pub tls_started: bool,
    /// Requests are carried out as they come.
    pub eager: bool,
    buffers: BTreeMap<u32, Vec<u8>>,
    input: Vec<u8>,
    limits: Limits,
}

impl MemoryServer {
    pub fn new(config: &ServerConfig) -> Self {
        let exports = exports();
        let disk = |export: &Export| {
            let mut bytes = vec![0; export.size_bytes as usize];
            (0u8..).zip(bytes.chunks_mut(512)).for_each(|(n, sector)| sector.fill(n));
            bytes
        };
        Self {
            connection: Connection::new(config, 0),
            disks: exports.iter().map(disk).collect(),
            exports,
            export: usize::MAX,
            under_way: Vec::new(),
            log: Vec::new(),
            sent: Vec::new(),
            now_ns: 0,
            tls_started: false,
            eager: false,
            buffers: BTreeMap::new(),
            input: Vec::new(),
            limits: config.limits,
        }
    }

    /// Bytes have come. With `direct`, payload goes straight to its buffer.
    pub fn receive(&mut self, mut bytes: &[u8], direct: bool) -> Result<(), Violation> {
        if direct
            && self.input.is_empty()
            && let Some((slot, at, left)) = self.connection.wanted()
        {
            let count = left.min(bytes.len());
            self.buffers.get_mut(&slot).unwrap()[at..at + count].copy_from_slice(&bytes[..count]);
            self.connection.received(self.now_ns, count);
            bytes = &bytes[count..];
        }
        self.input.extend_from_slice(bytes);
        self.go_on()
    }

    fn go_on(&mut self) -> Result<(), Violation> {
        let input = std::mem::take(&mut self.input);
        let mut rest = &input[..];
        let ended = loop {
            let event = match self.connection.take(self.now_ns, &self.exports, &mut rest) {
                Ok(Some(event)) => event,
                Ok(None) => break Ok(()),
                Err(violation) => break Err(violation),
            };
            match event {
                Event::StartTls => self.tls_started = true,
                Event::Attached { export } => self.export = export,
                Event::Room { slot, len_bytes } => self.make_room(slot, len_bytes),
                Event::Data { slot, at_bytes, bytes } => {
                    let buffer = self.buffers.get_mut(&slot).unwrap();
                    buffer[at_bytes..at_bytes + bytes.len()].copy_from_slice(bytes);
                }
                Event::Request(request) => {
                    self.begin(request);
                    if self.eager {
                        self.complete(0, Ok(()));
                    }
                }
                Event::Goodbye => {}
            }
        };
        assert!(ended.is_err() || rest.is_empty() || self.connection.is_full() || self.is_leaving());
        self.input = rest.to_vec();
        ended
    }

    fn is_leaving(&mut self) -> bool {
        self.connection.take(self.now_ns, &self.exports, &mut &[0u8; 28][..]) == Ok(None)
    }

    fn make_room(&mut self, slot: u32, len_bytes: u32) {
        assert!(slot < self.limits.max_requests && len_bytes <= self.limits.max_payload_bytes);
        assert!(self.buffers.insert(slot, vec![0; len_bytes as usize]).is_none(), "the slot was in use");
        let held: usize = self.buffers.values().map(Vec::len).sum();
        assert!(held as u64 <= self.limits.max_bytes, "{held} bytes are held");
    }

    fn begin(&mut self, request: Request) {
        if request.op == Op::Read {
            self.make_room(request.slot, request.len_bytes);
        }
        let export = &self.exports[self.export];
        if request.op != Op::Flush {
            let end = request.offset_bytes.checked_add(request.len_bytes.into()).unwrap();
            assert!(end <= export.size_bytes && request.len_bytes > 0, "{request:?}");
            assert!(request.offset_bytes.is_multiple_of(512) && request.len_bytes.is_multiple_of(512));
            assert!(request.op == Op::Read || !export.read_only, "{request:?}");
        }
        assert!(self.under_way.iter().all(|other| other.slot != request.slot));
        assert!(self.under_way.len() < self.limits.max_requests as usize);
        self.under_way.push(request);
        self.log.push(request);
    }

    /// Carries out the request at this place among those in flight.
    pub fn complete(&mut self, place: usize, result: Result<(), ErrorCode>) {
        let request = self.under_way.remove(place);
        let disk = &mut self.disks[self.export];
        let from = request.offset_bytes as usize;
        let range = from..from + request.len_bytes as usize;
        match request.op {
            _ if result.is_err() => {}
            Op::Read => self.buffers.get_mut(&request.slot).unwrap().copy_from_slice(&disk[range]),
            Op::Write => disk[range].copy_from_slice(&self.buffers[&request.slot]),
            Op::WriteZeroes { .. } => disk[range].fill(0),
            Op::Flush | Op::Trim => {}
        }
        assert!(self.connection.complete(self.now_ns, request.slot, result), "{request:?}");
    }

    /// Sends at most so many bytes, and goes on with what had to wait.
    pub fn send(&mut self, most: usize) -> Result<(), Violation> {
        self.send_only(most);
        self.go_on()
    }

    /// Sends at most so many bytes.
    pub fn send_only(&mut self, most: usize) {
        let mut bytes = Vec::new();
        for piece in self.connection.pieces() {
            match piece {
                Piece::Header(header) => bytes.extend_from_slice(header),
                Piece::Data { of, at, len } => bytes.extend_from_slice(&self.buffers[&of][at..at + len]),
            }
        }
        bytes.truncate(most);
        let buffers = &mut self.buffers;
        self.connection.sent(self.now_ns, bytes.len(), |slot| drop(buffers.remove(&slot)));
        self.sent.extend(bytes);
    }

    /// Completes and sends everything, in order, until nothing more happens.
    pub fn settle(&mut self) -> Result<(), Violation> {
        while !self.under_way.is_empty() || self.connection.has_output() {
            if !self.under_way.is_empty() {
                self.complete(0, Ok(()));
            }
            self.send(usize::MAX)?;
        }
        Ok(())
    }

    /// Takes what was sent.
    pub fn take_sent(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.sent)
    }
}
