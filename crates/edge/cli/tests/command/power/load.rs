//! A client over NBD that keeps several requests in flight and a model of what must be there.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use virtbench_engine::nbd::{Connection, NbdAddress};
use virtbench_nbd::client::{Event, ReplyStream};
use virtbench_nbd::{Command, encode_request};

use super::Random;
use super::disk::SECTOR_BYTES;
use super::model::{Model, Written};

const IN_FLIGHT: u32 = 8;
/// Requests of one piece at most.
const MOST_SECTORS: usize = 64;
/// NBD_CMD_FLAG_FUA (proto.md, "Command flags"), in its place in a request.
const FUA: [u8; 2] = [0, 1];

enum Asked {
    Read { first: usize, count: usize, after_failure: bool },
    Write { written: Written, fua: bool },
    Flush(Vec<Written>),
}

struct InFlight {
    asked: Asked,
    read: Vec<u8>,
}

/// One connection to an export, with a part of its sectors for itself.
pub struct Client<'a> {
    connection: Connection,
    replies: ReplyStream,
    in_flight: Vec<Option<InFlight>>,
    model: &'a Mutex<Model>,
    part: std::ops::Range<usize>,
    unit: usize,
    /// Where its last write ends, from the beginning of its part, in units.
    next: usize,
}

/// The connection is over.
#[derive(Debug)]
pub struct Over;

impl<'a> Client<'a> {
    /// The `place`th of `of` connections.
    pub fn connect(socket: &Path, export: &str, model: &'a Mutex<Model>, place: usize, of: usize) -> Self {
        let connection = Connection::open(&NbdAddress::unix(socket, export)).unwrap();
        assert!(connection.export.can_multi_conn());
        let unit = (connection.export.min_block_bytes as usize).div_ceil(SECTOR_BYTES);
        let each = model.lock().unwrap().sectors() / of;
        let replies = ReplyStream::new(IN_FLIGHT);
        let in_flight = (0..IN_FLIGHT).map(|_| None).collect();
        Self { connection, replies, in_flight, model, part: place * each..(place + 1) * each, unit, next: 0 }
    }

    /// Reads everything and compares it with what a power failure may leave.
    pub fn check(&mut self) {
        let mut at = self.part.start;
        while at < self.part.end || self.replies.under_way() > 0 {
            let count = MOST_SECTORS.min(self.part.end.saturating_sub(at));
            if count > 0 && self.has_room() {
                self.begin(Asked::Read { first: at, count, after_failure: true }).unwrap();
                at += count;
            } else {
                self.take(&AtomicBool::new(false)).unwrap();
            }
        }
    }

    /// Random requests until the connection ends, which `failing` allows.
    pub fn run(&mut self, random: &mut Random, failing: &AtomicBool) -> Result<(), Over> {
        loop {
            if self.has_room() {
                self.step(random)?;
            }
            if !self.has_room() || random.below(4) == 0 {
                self.take(failing)?;
            }
        }
    }

    fn has_room(&self) -> bool {
        self.replies.under_way() < IN_FLIGHT as usize
    }

    /// Begins a random request, unless it would meet one that is in flight.
    fn step(&mut self, random: &mut Random) -> Result<(), Over> {
        let units = self.part.len() / self.unit;
        let near = if random.below(2) == 0 { units.min(64) } else { units };
        // Often behind the write before, so that some writes are long streams.
        let goes_on = self.next < units && random.below(3) == 0;
        let start = if goes_on { self.next } else { random.below(near) };
        let most = (MOST_SECTORS / self.unit).min(units - start);
        let (first, count) = (self.part.start + start * self.unit, (1 + random.below(most)) * self.unit);
        let kind = random.below(20);
        let overlaps = |asked: &Asked| match asked {
            Asked::Read { first: f, count: c, .. } => *f < first + count && first < f + c,
            Asked::Write { written: w, .. } => w.first < first + count && first < w.first + w.count,
            Asked::Flush(_) => false,
        };
        let busy = self.in_flight.iter().flatten().any(|in_flight| overlaps(&in_flight.asked));
        let asked = match kind {
            0 | 1 => Asked::Flush(self.model.lock().unwrap().begin_flush()),
            _ if busy => return Ok(()),
            2..=5 => Asked::Read { first, count, after_failure: false },
            _ => {
                self.next = start + count / self.unit;
                let written = self.model.lock().unwrap().begin(first, count, kind == 6);
                Asked::Write { written, fua: matches!(kind, 6..=8) && random.below(2) == 0 }
            }
        };
        self.begin(asked)
    }

    fn begin(&mut self, asked: Asked) -> Result<(), Over> {
        let slot = self.in_flight.iter().position(Option::is_none).expect("room");
        let place = u32::try_from(slot).unwrap();
        let (command, first, count) = match &asked {
            Asked::Read { first, count, .. } => (Command::Read, *first, *count),
            Asked::Write { written, .. } if written.version.zeroes => {
                (Command::WriteZeroes, written.first, written.count)
            }
            Asked::Write { written, .. } => (Command::Write, written.first, written.count),
            Asked::Flush(_) => (Command::Flush, 0, 0),
        };
        let len = u32::try_from(count * SECTOR_BYTES).unwrap();
        let cookie = self.replies.expect(place, len, command == Command::Read);
        let mut bytes = encode_request(command, cookie, (first * SECTOR_BYTES) as u64, len).to_vec();
        if let Asked::Write { written, fua } = &asked {
            if *fua {
                bytes[4..6].copy_from_slice(&FUA);
            }
            if command == Command::Write {
                let header = bytes.len();
                bytes.resize(header + len as usize, 0);
                self.model.lock().unwrap().fill(*written, &mut bytes[header..]);
            }
        }
        let read = if command == Command::Read { vec![0; len as usize] } else { Vec::new() };
        self.in_flight[slot] = Some(InFlight { asked, read });
        self.send(&bytes)
    }

    fn send(&self, mut bytes: &[u8]) -> Result<(), Over> {
        while !bytes.is_empty() {
            match send(self.connection.as_fd(), bytes, SendFlags::NOSIGNAL) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::INTR) => {}
                Err(_) => return Err(Over),
            }
        }
        Ok(())
    }

    /// Takes some replies; an error is one only before power fails.
    fn take(&mut self, failing: &AtomicBool) -> Result<(), Over> {
        if self.replies.under_way() == 0 {
            return Ok(());
        }
        let mut staging = [0; 64 << 10];
        let count = match recv(self.connection.as_fd(), &mut staging[..], RecvFlags::empty()) {
            Ok((0, _)) => return Err(Over),
            Ok((count, _)) => count,
            Err(Errno::INTR | Errno::AGAIN) => return Ok(()),
            Err(_) => return Err(Over),
        };
        let Self { replies, in_flight, model, .. } = self;
        let mut model = model.lock().unwrap();
        let fed = replies.feed(&staging[..count], &mut |event| match event {
            Event::Data { slot, at, bytes } => {
                let read = &mut in_flight[slot as usize].as_mut().unwrap().read;
                read[at..at + bytes.len()].copy_from_slice(bytes);
            }
            Event::Done { slot, result } => {
                let InFlight { asked, read } = in_flight[slot as usize].take().unwrap();
                match asked {
                    _ if result < 0 => assert!(failing.load(Ordering::SeqCst), "error {result}"),
                    Asked::Read { first, after_failure: true, .. } => model.check_after_failure(first, &read),
                    Asked::Read { .. } if failing.load(Ordering::SeqCst) => {}
                    Asked::Read { first, .. } => model.check_now(first, &read),
                    Asked::Write { written, fua } => model.end(written, fua),
                    Asked::Flush(all) => model.settle(&all),
                }
            }
        });
        fed.map_err(|error| panic!("{error}"))
    }
}
