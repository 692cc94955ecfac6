//! Clients of the model's: many connections to a few disks, every command, departures at any moment.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use virtbench_units::Random;

use super::raw::{self, FUA};
use super::register::{Content, Registers, Write};
use super::wire::{Answer, Wire, staging};

pub const EXPORTS: [&str; 2] = ["alpha", "beta"];
pub const SECTORS: usize = 4096;
const SECTOR_BYTES: usize = 512;
/// Connections to a disk at most.
const CONNECTIONS: u64 = 6;
/// Requests of a connection in flight at most.
const DEPTH: usize = 24;
/// Ranges of departed clients that are remembered.
const HAUNTED: usize = 32;
/// Events that pass between two looks at the sockets, at most.
const BURST: u64 = 48;

/// A request in flight.
#[derive(Debug)]
struct InFlight {
    command: u16,
    sectors: Range<usize>,
    /// It reaches beyond the end, and must fail.
    fails: bool,
}

struct Client {
    wire: Wire,
    disk: usize,
    connected: u64,
    /// Nothing of it was answered yet.
    is_new: bool,
    /// It has said goodbye, and waits for what it asked for before.
    leaves: bool,
    /// By cookie, which is the moment when it began.
    in_flight: BTreeMap<u64, InFlight>,
}

/// All clients, and what their disks may hold.
pub struct Clients {
    random: Random,
    disks: Vec<Registers>,
    clients: Vec<Client>,
    /// Where clients wrote who left unanswered: the place to look for what lands too late.
    haunted: Vec<Range<usize>>,
    now: u64,
    staging: Vec<u8>,
    /// Requests answered.
    pub answered: u64,
}

impl Clients {
    pub fn new(seed: u64) -> Self {
        let disks = EXPORTS.iter().map(|_| Registers::new(SECTORS)).collect();
        let random = Random::new(seed);
        let (clients, haunted) = (Vec::new(), Vec::new());
        Self { random, disks, clients, haunted, now: 1, staging: staging(), answered: 0 }
    }

    fn moment(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    /// Says and hears things until so many requests more are answered.
    pub fn work(&mut self, socket: &Path, requests: u64) {
        let until = self.answered + requests;
        while self.answered < until {
            for _ in 0..=self.random.below(BURST) {
                self.act(socket);
            }
            self.hear(false);
        }
    }

    fn act(&mut self, socket: &Path) {
        let most = CONNECTIONS * EXPORTS.len() as u64;
        let chosen = self.random.below(most) as usize;
        match self.random.below(400) {
            0 => {
                if chosen < self.clients.len() {
                    let disk = self.clients[chosen].disk;
                    self.depart(chosen);
                    self.follow(socket, disk);
                }
            }
            1 => {
                if let Some(client) = self.clients.get_mut(chosen).filter(|client| !client.leaves) {
                    client.leaves = true;
                    client.wire.say(&raw::request(raw::DISCONNECT, 0, 0, 0));
                }
            }
            _ if chosen >= self.clients.len() => {
                let disk = self.random.below(EXPORTS.len() as u64) as usize;
                self.connect(socket, disk);
            }
            _ => self.ask(chosen),
        }
    }

    fn connect(&mut self, socket: &Path, disk: usize) {
        let connected = self.moment();
        let wire = Wire::attach(socket, EXPORTS[disk], self.random.below(2) == 0);
        let in_flight = BTreeMap::new();
        self.clients.push(Client { wire, disk, connected, is_new: true, leaves: false, in_flight });
    }

    /// A client goes, perhaps in the middle of a request.
    fn depart(&mut self, place: usize) {
        let Client { mut wire, disk, in_flight, .. } = self.clients.swap_remove(place);
        if self.random.below(2) == 0 {
            wire.move_bytes(&mut self.staging);
        }
        drop(wire);
        let now = self.moment();
        for (begun, InFlight { command, sectors, fails }) in in_flight {
            match command {
                _ if fails => {}
                raw::READ => self.disks[disk].end_read(begun),
                raw::WRITE | raw::WRITE_ZEROES | raw::TRIM => {
                    self.haunted.push(sectors.clone());
                    self.disks[disk].leave(sectors, begun, now);
                }
                _ => {}
            }
        }
        let forgotten = self.haunted.len().saturating_sub(HAUNTED);
        self.haunted.drain(..forgotten);
    }

    /// The next client writes at once where the one before did.
    fn follow(&mut self, socket: &Path, disk: usize) {
        self.connect(socket, disk);
        let place = self.clients.len() - 1;
        for sectors in self.haunted.clone().into_iter().rev().take(DEPTH) {
            let start = sectors.start.saturating_sub(self.random.below(8) as usize);
            let sectors = start..(sectors.start + 1 + self.random.below(8) as usize).min(SECTORS);
            self.begin(place, 0, raw::WRITE, InFlight { command: raw::WRITE, sectors, fails: false });
        }
    }

    /// Every client goes.
    pub fn depart_all(&mut self) {
        while !self.clients.is_empty() {
            self.depart(0);
        }
    }

    fn ask(&mut self, place: usize) {
        let client = &self.clients[place];
        if client.leaves || client.in_flight.len() >= DEPTH {
            return;
        }
        let structured = client.wire.is_structured();
        let command = match self.random.below(100) {
            0..40 => raw::READ,
            40..82 => raw::WRITE,
            82..88 => raw::FLUSH,
            88..91 => raw::TRIM,
            91..97 => raw::WRITE_ZEROES,
            _ if structured => raw::BLOCK_STATUS,
            _ => raw::READ,
        };
        let sectors = match command {
            raw::FLUSH => 0..0,
            _ => self.somewhere(),
        };
        let fails = sectors.end > SECTORS;
        let flags = match command {
            raw::WRITE | raw::WRITE_ZEROES | raw::TRIM if self.random.below(8) == 0 => FUA,
            _ => 0,
        };
        self.begin(place, flags, command, InFlight { command, sectors, fails });
    }

    /// Short requests mostly, close together often, and beyond the end now and then.
    fn somewhere(&mut self) -> Range<usize> {
        let most = match self.random.below(200) {
            0..190 => 8,
            190..199 => 64,
            _ => 512,
        };
        let len = 1 + self.random.below(most) as usize;
        let span = if self.random.below(4) == 0 { SECTORS / 16 } else { SECTORS };
        let at = self.random.below(span as u64) as usize;
        match self.random.below(200) {
            0 => SECTORS - 1..SECTORS + len,
            _ => at.min(SECTORS - len)..at.min(SECTORS - len) + len,
        }
    }

    fn begin(&mut self, place: usize, flags: u16, command: u16, asked: InFlight) {
        let begun = self.moment();
        let Client { wire, disk, connected, in_flight, .. } = &mut self.clients[place];
        let InFlight { sectors, fails, .. } = &asked;
        let (at, len) = ((sectors.start * SECTOR_BYTES) as u64, (sectors.len() * SECTOR_BYTES) as u32);
        wire.say(&raw::flagged(flags, command, begun, at, len));
        let version = if command == raw::WRITE { begun as u32 } else { 0 };
        if command == raw::WRITE {
            wire.say(&payload(*disk, sectors.clone(), version));
        }
        let content = if command == raw::TRIM { Content::Anything } else { Content::Version(version) };
        match command {
            _ if *fails => {}
            raw::READ => self.disks[*disk].begin_read(begun),
            raw::WRITE | raw::WRITE_ZEROES | raw::TRIM => {
                let write = Write { content, begun, connected: *connected };
                self.disks[*disk].begin_write(sectors.clone(), write);
            }
            _ => {}
        }
        in_flight.insert(begun, asked);
    }

    /// Moves what can be moved, and takes in answers. With `wait`, not before something has moved.
    fn hear(&mut self, wait: bool) {
        let is_idle = self.clients.iter().all(|client| client.leaves || client.in_flight.len() >= DEPTH / 2);
        if wait || is_idle {
            self.wait();
        }
        let mut place = 0;
        while place < self.clients.len() {
            let client = &mut self.clients[place];
            let is_open = client.wire.move_bytes(&mut self.staging);
            let in_flight = &client.in_flight;
            let data_bytes = |cookie| match &in_flight[&cookie] {
                InFlight { command: raw::READ, sectors, .. } => sectors.len() * SECTOR_BYTES,
                _ => 0,
            };
            for answer in client.wire.answers(data_bytes) {
                self.answered(place, answer);
            }
            if is_open {
                place += 1;
                continue;
            }
            let gone = &self.clients[place];
            assert!(
                gone.leaves && gone.in_flight.is_empty(),
                "the server closed a connection that is in use"
            );
            self.clients.swap_remove(place);
        }
    }

    fn wait(&self) {
        let polled = self.clients.iter().map(|client| {
            let writes = if client.wire.has_output() { PollFlags::OUT } else { PollFlags::empty() };
            PollFd::new(client.wire.socket(), PollFlags::IN | writes)
        });
        let mut polled: Vec<PollFd<'_>> = polled.collect();
        let limit = Timespec { tv_sec: 60, tv_nsec: 0 };
        assert!(polled.is_empty() || poll(&mut polled, Some(&limit)).unwrap() > 0, "nothing is answered");
    }

    fn answered(&mut self, place: usize, answer: Answer) {
        let now = self.moment();
        let client = &mut self.clients[place];
        let registers = &mut self.disks[client.disk];
        if std::mem::take(&mut client.is_new) {
            registers.is_answered(client.connected, now);
        }
        let begun = answer.cookie;
        let asked = client.in_flight.remove(&begun).unwrap();
        self.answered += 1;
        assert_eq!(answer.error != 0, asked.fails, "{asked:?}: error {}", answer.error);
        match asked.command {
            _ if asked.fails => {}
            raw::READ => {
                for (sector, bytes) in asked.sectors.zip(answer.data.chunks_exact(SECTOR_BYTES)) {
                    let found = version(client.disk, sector, bytes)
                        .and_then(|version| registers.finds(sector, version, begun, now));
                    found.unwrap_or_else(|why| {
                        let disk = EXPORTS[client.disk];
                        panic!("{disk}, sector {sector}, read from {begun} to {now}: {why}")
                    });
                }
                registers.end_read(begun);
            }
            raw::WRITE | raw::WRITE_ZEROES | raw::TRIM => registers.end_write(asked.sectors, begun, now),
            _ => {}
        }
    }

    /// Reads all there is, when nothing else is in flight.
    pub fn read_all(&mut self, socket: &Path) {
        for disk in 0..EXPORTS.len() {
            self.connect(socket, disk);
            let place = self.clients.len() - 1;
            for start in (0..SECTORS).step_by(SECTORS / DEPTH.next_power_of_two()) {
                let sectors = start..start + SECTORS / DEPTH.next_power_of_two();
                self.begin(place, 0, raw::READ, InFlight { command: raw::READ, sectors, fails: false });
            }
        }
        while self.clients.iter().any(|client| !client.in_flight.is_empty()) {
            self.hear(true);
        }
    }
}

/// Each word of a sector says which sector of which disk it is, and who wrote it.
fn word(disk: usize, sector: usize, version: u32) -> [u8; 8] {
    (u64::from(version) << 32 | (disk as u64) << 24 | sector as u64).to_le_bytes()
}

fn payload(disk: usize, sectors: Range<usize>, version: u32) -> Vec<u8> {
    let words = sectors.flat_map(|sector| [word(disk, sector, version); SECTOR_BYTES / 8]);
    words.flatten().collect()
}

/// Which write's this sector is.
fn version(disk: usize, sector: usize, bytes: &[u8]) -> Result<u32, String> {
    let first = &bytes[..8];
    if bytes[8..] != bytes[..SECTOR_BYTES - 8] {
        let words: Vec<u64> =
            bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
        return Err(format!("it is torn: {words:x?}"));
    }
    let version = u32::from_le_bytes(first[4..].try_into().unwrap());
    if version != 0 && first != word(disk, sector, version) || version == 0 && first != [0; 8] {
        return Err(format!("another's bytes: {first:x?}"));
    }
    Ok(version)
}
