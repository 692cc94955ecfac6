//! A vhost-user client made of anybody's bytes: messages, descriptors, rings, memory that comes and goes and changes while
//! requests are in flight, pages that a request names twice or several requests share. Nothing it does panics the daemon,
//! leaves a request behind or has other data cached than its devices hold.
//!
//! The fuzz target `vhost` feeds the same function. The daemon's own loop runs, on this thread, turn by turn.

#![allow(clippy::cast_possible_truncation, clippy::unwrap_used, clippy::missing_panics_doc, missing_docs)]

use crate::held;

use std::fs::File;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use held::HeldBackend;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use virtbench_fence::cache::{self, CacheConfig, CachePartitions, Image, Layout};
use virtbench_fence::{Backing, Config, DeviceConfig, DiskConfig, DiskId, Fence, SchedulerConfig};
use virtbench_fence_daemon::device::Backend;
use virtbench_fence_daemon::frontend::FrontEnd;
use virtbench_fence_daemon::frontend::listen::Listener;
use virtbench_fence_daemon::frontend::vhost_user::{Served, VhostUserBlk};
use virtbench_fence_daemon::metrics::Metrics;
use virtbench_fence_daemon::runtime::{Parts, Runtime, Stopper};

const DISK_BYTES: u64 = 32 * BLOCK;
const BLOCK: u64 = 4096;
const CACHE_BLOCKS: u32 = 20;
const MEMORY_BYTES: u64 = 64 << 10;
const REGIONS: u64 = 2;
/// Where the client itself would have its memory.
const USER: u64 = 0x7000_0000_0000;
const RING: u16 = 8;
const AVAILABLE: u64 = 0x1000;
const USED: u64 = 0x2000;
const HEADERS: u64 = 0x3000;
const STATUS: u64 = 0x3800;
const DATA: u64 = 0x4000;
/// VIRTIO_BLK_T_*.
const READ: u32 = 0;
const FLUSH: u32 = 4;
/// What a client does at most.
const MOST_OPS: usize = 48;
/// Turns after which the loop must have come to rest.
const MOST_TURNS: usize = 10_000;

struct World {
    runtime: Runtime,
    /// The slow and the fast one.
    devices: [HeldBackend; 2],
    socket: PathBuf,
    memory: File,
    kick: OwnedFd,
    call: OwnedFd,
    /// None of the kinds of descriptors that a client may share.
    strange: File,
}

impl World {
    fn new() -> Self {
        let socket = std::env::temp_dir().join(format!("virtbench-invent-{}", std::process::id()));
        let thread = format!("{:?}", std::thread::current().id());
        let socket = socket.with_extension(thread.replace(|c: char| !c.is_ascii_digit(), ""));
        let cache = CacheConfig {
            uuid: [7; 16],
            partitions: CachePartitions::Shared(CACHE_BLOCKS),
            free_target: 6,
            low_watermark: 1,
            scratch_blocks: 4,
            bypass_bytes: Vec::new(),
        };
        let config = Config {
            disks: vec![DiskConfig { uuid: [1; 16], offset_bytes: 0, size_bytes: DISK_BYTES }],
            slow: DeviceConfig { size_bytes: DISK_BYTES, depth: 4 },
            fast: DeviceConfig { size_bytes: Layout::new(&[CACHE_BLOCKS]).end_bytes, depth: 4 },
            backing: Backing::Cached(cache.clone()),
            scheduler: SchedulerConfig::Fifo,
            max_request_bytes: 8192,
        };
        let mut fast = vec![0; config.fast.size_bytes as usize];
        for write in cache::format(&config, &cache) {
            fast[write.offset_bytes as usize..][..write.bytes.len()].copy_from_slice(&write.bytes);
        }
        // Each sector of the slow device says where it is.
        let slow = (1..=DISK_BYTES / 512).flat_map(|sector| sector.to_le_bytes().repeat(64)).collect();
        let devices = [slow, fast].map(HeldBackend::new);
        let fence = Fence::new(config);
        let served = Served {
            disk: DiskId(0),
            name: "a".into(),
            size_bytes: DISK_BYTES,
            block_bytes: 512,
            queues: 2,
            read_only: false,
            export: None,
        };
        let front_end = VhostUserBlk::new(Listener::bind(&socket).unwrap(), served);
        let parts = Parts {
            fence: fence.unwrap(),
            write_through: vec![false],
            devices: devices.clone().map(|device| Some(Box::new(device) as Box<dyn Backend>)),
            front_ends: vec![Box::new(front_end) as Box<dyn FrontEnd>],
            requests_per_disk: 16,
            max_request_bytes: 8192,
            spin: Duration::ZERO,
            figures: Metrics::new(std::iter::once("a".to_owned()), 1),
        };
        let mut runtime = Runtime::new(parts, Stopper::new().unwrap()).unwrap();
        runtime.begin();
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let memory = File::from(memfd_create("invented", MemfdFlags::CLOEXEC).unwrap());
        Self {
            runtime,
            devices,
            socket,
            memory,
            kick: eventfd(0, flags).unwrap(),
            call: eventfd(0, flags).unwrap(),
            strange: File::open("/dev/null").unwrap(),
        }
    }

    /// The loop, until it has nothing to do but to wait for devices.
    fn look(&mut self) {
        for _ in 0..MOST_TURNS {
            // What the ring was asked for in one turn may be there in the next.
            if !self.runtime.turn().unwrap() && !self.runtime.turn().unwrap() {
                return;
            }
        }
        panic!("the loop does not come to rest");
    }

    /// Lets the device I/O of this number, round and round, be done. False if none is in flight.
    fn release(&self, number: usize) -> bool {
        let [slow, fast] = self.devices.each_ref().map(HeldBackend::in_flight);
        if slow + fast == 0 {
            return false;
        }
        match number % (slow + fast) {
            index if index < slow => self.devices[0].release(index),
            index => self.devices[1].release(index - slow),
        }
        true
    }

    /// The loop and the devices, until they have nothing to do.
    fn rest(&mut self) {
        for _ in 0..MOST_TURNS {
            self.look();
            if !self.release(0) {
                return;
            }
        }
        panic!("the devices do not come to rest");
    }

    /// Everything has settled: the disk reads twice the same, and as the devices have it. What is cached has its checksum,
    /// and what is clean is on the slow device.
    fn check(&mut self, client: &mut Client<'_>) {
        client.set_up(&mut Source([].iter()));
        self.rest();
        client.ask(self, FLUSH, 0, 0);
        let found = client.read_all(self);
        client.ask(self, FLUSH, 0, 0);
        let [slow, fast] = &self.devices;
        let mut holds = slow.read(0, DISK_BYTES as usize);
        let log = &Layout::new(&[CACHE_BLOCKS]).partitions[0];
        let logs = [fast.read(log.log_offset_bytes, log.log_blocks as usize * BLOCK as usize)];
        let image = Image { superblocks: &fast.read(0, 8192), logs: &logs, memory: None };
        for live in cache::inspect(&image).unwrap().live(0) {
            let cached = fast.read(live.fast_offset_bytes, BLOCK as usize);
            assert_eq!(crc32c::crc32c(&cached), live.data_crc, "{live:?}");
            let block = &mut holds[live.disk_offset_bytes as usize..][..BLOCK as usize];
            assert!(live.dirty || block == cached, "{live:?}: the slow device has something else");
            block.copy_from_slice(&cached);
        }
        assert!(found == holds, "the disk reads as something else than its devices hold");
        assert!(client.read_all(self) == found, "the disk is not twice the same");
    }
}

/// Bytes that end in zeros.
struct Source<'a>(std::slice::Iter<'a, u8>);

impl Source<'_> {
    fn byte(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    fn half(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// Small numbers mostly; now and then one near the end of what there is, or a power of two.
    fn number(&mut self) -> u64 {
        match self.byte() {
            255 => u64::MAX - u64::from(self.byte()),
            254 => 1 << (self.byte() % 64),
            253 => u64::from(u32::MAX) - u64::from(self.byte()),
            small => u64::from(small),
        }
    }

    /// An address in or near the memory.
    fn address(&mut self) -> u64 {
        match self.byte() {
            200.. => self.number(),
            byte => u64::from(byte) << 8 | u64::from(self.byte() & 0xf0),
        }
    }
}

struct Client<'a> {
    stream: UnixStream,
    memory: &'a File,
    kick: BorrowedFd<'a>,
    call: BorrowedFd<'a>,
    strange: BorrowedFd<'a>,
    available: u16,
}

impl Client<'_> {
    fn send(&self, code: u32, flags: u32, payload: &[u8], fds: &[BorrowedFd<'_>]) {
        let header = [code, flags, payload.len() as u32].map(u32::to_ne_bytes).concat();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(fds));
        }
        let pieces = [IoSlice::new(&header), IoSlice::new(payload)];
        // A connection that has been closed takes nothing.
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let _ = sendmsg(&self.stream, &pieces, &mut control, flags);
    }

    fn words(&self, code: u32, words: &[u64], fds: &[BorrowedFd<'_>]) {
        let payload: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.send(code, 1, &payload, fds);
    }

    fn halves(&self, code: u32, index: u32, value: u32) {
        self.words(code, &[u64::from(value) << 32 | u64::from(index)], &[]);
    }

    /// What a client says before it works, with as much changed as the bytes ask for.
    fn set_up(&self, source: &mut Source<'_>) {
        let choice = source.byte();
        let memory = self.memory.as_fd();
        let features = if choice & 1 == 0 { u64::MAX } else { 1 << 32 | 1 << 30 | source.number() };
        self.words(3, &[], &[]);
        self.words(2, &[features], &[]);
        self.words(16, &[u64::MAX], &[]);
        if choice & 2 == 0 {
            let half = MEMORY_BYTES / REGIONS;
            let region = |at: u64| [at, half, USER + at, at];
            let words: Vec<u64> = [vec![REGIONS], region(0).to_vec(), region(half).to_vec()].concat();
            self.words(5, &words, &[memory, memory]);
        } else {
            let words = [1, 0, MEMORY_BYTES.wrapping_add(source.number()), USER, source.number() & 0xfff];
            self.words(5, &words, &[memory]);
        }
        if choice & 4 != 0 {
            // In-flight memory of ours: asked for, or another.
            let shape = u64::from(RING) << 16 | 2;
            self.words(31, &[0, 0, shape], &[]);
            if choice & 8 != 0 {
                self.words(32, &[MEMORY_BYTES, 0, shape], &[memory]);
            }
        }
        if choice & 16 != 0 {
            // A way back, which leads to the daemon itself or is none.
            let strange = choice & 32 != 0;
            self.words(21, &[], &[if strange { self.strange } else { self.stream.as_fd() }]);
        }
        let ring = u32::from(choice >> 4 & 1);
        self.halves(8, ring, if choice & 32 == 0 { RING.into() } else { source.half().into() });
        self.halves(10, ring, if choice & 64 == 0 { 0 } else { source.half().into() });
        let at = if choice & 128 == 0 { 0 } else { source.address() };
        let [table, used, available] = [0, USED, AVAILABLE].map(|place| (USER + place).wrapping_add(at));
        self.words(9, &[ring.into(), table, used, available, 0], &[]);
        self.words(13, &[ring.into()], &[self.call]);
        self.words(12, &[ring.into()], &[self.kick]);
        self.halves(18, ring, 1);
    }

    fn write(&self, at: u64, bytes: &[u8]) {
        if at.saturating_add(bytes.len() as u64) <= MEMORY_BYTES {
            self.memory.write_all_at(bytes, at).unwrap();
        }
    }

    fn descriptor(&self, at: u64, address: u64, len: u32, flags: u16, next: u16) {
        let bytes =
            [&address.to_le_bytes()[..], &len.to_le_bytes(), &flags.to_le_bytes(), &next.to_le_bytes()];
        self.write(at, &bytes.concat());
    }

    fn offer(&mut self, head: u16, more: u16) {
        let place = u64::from(self.available % RING);
        self.write(AVAILABLE + 4 + place * 2, &head.to_le_bytes());
        self.available = self.available.wrapping_add(1).wrapping_add(more);
        self.write(AVAILABLE + 2, &self.available.to_le_bytes());
    }

    fn kick(&self) {
        // A client that has kicked very often is heard all the same.
        let _ = rustix::io::write(self.kick, &1u64.to_ne_bytes());
    }

    /// A request as a driver makes it, for one head's descriptors; of those with data two may be of one page.
    fn request(&mut self, source: &mut Source<'_>) {
        let kind = match source.byte() {
            byte @ 0..224 => u32::from(byte % 2),
            byte => u32::from(byte % 16),
        };
        let len = match source.byte() {
            byte @ 0..224 => 512 << (byte % 5),
            _ => u32::from(source.half()) << 4,
        };
        let sector = source.number();
        let data = DATA + 512 * u64::from(source.byte() % 4);
        let header = self.header(kind, sector);
        let into = if matches!(kind, 1 | 11 | 13) { 0 } else { 2 };
        let head = u16::from(source.byte() % 5);
        let table = u64::from(head) * 16;
        match source.byte() % 4 {
            0 => {
                self.descriptor(table, 0x3100, 48, 4, 0);
                self.descriptor(0x3100, header, 16, 1, 1);
                self.descriptor(0x3110, data, len, 1 | into, 2);
                self.descriptor(0x3120, STATUS, 1, 2, 0);
            }
            1 => self.chain(head, header, &[(data, len)], into),
            // A page named twice, or half of it.
            2 => self.chain(head, header, &[(data, len / 2), (data, len / 2)], into),
            _ => self.chain(head, header, &[(data, len / 2), (data + u64::from(len / 4), len / 2)], into),
        }
        self.offer(head, 0);
    }

    /// A place of its own for what comes before the data, so that several requests are in flight.
    fn header(&self, kind: u32, sector: u64) -> u64 {
        let header = HEADERS + 32 * u64::from(self.available % RING);
        self.write(header, &[&kind.to_le_bytes()[..], &[0; 4], &sector.to_le_bytes()].concat());
        header
    }

    fn chain(&self, head: u16, header: u64, data: &[(u64, u32)], into: u16) {
        let mut pieces = vec![(header, 16, 0)];
        pieces.extend(data.iter().map(|(address, len)| (*address, *len, into)));
        for (place, (address, len, into)) in (head..).zip(&pieces) {
            self.descriptor(u64::from(place) * 16, *address, *len, 1 | into, place + 1);
        }
        self.descriptor((u64::from(head) + pieces.len() as u64) * 16, STATUS, 1, 2, 0);
    }

    /// A request of an honest client, which must go well.
    fn ask(&mut self, world: &mut World, kind: u32, sector: u64, len: u32) {
        let header = self.header(kind, sector);
        self.write(STATUS, &[0xff]);
        let data = [(DATA, len)];
        self.chain(0, header, if len == 0 { &[] } else { &data }, 2);
        self.offer(0, 0);
        self.kick();
        world.rest();
        let mut status = [0xff];
        self.memory.read_exact_at(&mut status, STATUS).unwrap();
        assert_eq!(status, [0], "request {kind} at sector {sector}");
    }

    fn read_all(&mut self, world: &mut World) -> Vec<u8> {
        let mut disk = vec![0; DISK_BYTES as usize];
        for (sector, part) in (0..).step_by(16).zip(disk.chunks_mut(8192)) {
            self.ask(world, READ, sector, 8192);
            self.memory.read_exact_at(part, DATA).unwrap();
        }
        disk
    }

    fn message(&self, source: &mut Source<'_>) {
        let code = u32::from(source.byte() % 48);
        let words: Vec<u64> = (0..source.byte() % 8).map(|_| source.number()).collect();
        let memory = self.memory.as_fd();
        let fds = [self.kick, memory, self.strange, self.call];
        let count = usize::from(source.byte() % 4);
        let from = usize::from(source.byte() % 2);
        self.words(code, &words, &fds[from..(from + count).min(4)]);
    }
}

/// Plays a client that does what the bytes say, and holds what must be so afterwards.
pub fn play(bytes: &[u8]) {
    let mut world = World::new();
    let memory = world.memory.try_clone().unwrap();
    let (kick, call) = (world.kick.try_clone().unwrap(), world.call.try_clone().unwrap());
    let strange = world.strange.try_clone().unwrap();
    let socket = world.socket.clone();
    let connect = || Client {
        stream: UnixStream::connect(&socket).unwrap(),
        memory: &memory,
        kick: kick.as_fd(),
        call: call.as_fd(),
        strange: strange.as_fd(),
        available: 0,
    };
    memory.set_len(MEMORY_BYTES).unwrap();
    let mut client = connect();
    let mut source = Source(bytes.iter());
    let (honest, hasty) = (source.byte() % 4 > 0, source.byte() % 4 == 0);
    if honest {
        client.set_up(&mut Source([].iter()));
    }
    for _ in 0..MOST_OPS {
        let Some(op) = source.0.next() else { break };
        act(&mut world, &mut client, *op, &mut source);
    }
    if !hasty {
        world.rest();
    }
    // It may have given the daemon this end of its own connection, which would stay open.
    client.stream.shutdown(Shutdown::Both).unwrap();
    drop(client);
    world.rest();
    assert_eq!(world.runtime.pending(), 0, "a request was left behind");
    // As new, where rings, tables and headers are.
    memory.set_len(MEMORY_BYTES).unwrap();
    memory.write_all_at(&[0; DATA as usize], 0).unwrap();
    world.check(&mut connect());
}

fn act(world: &mut World, client: &mut Client<'_>, op: u8, source: &mut Source<'_>) {
    match op % 32 {
        0 => client.set_up(source),
        1 => client.message(source),
        2 => {
            let payload: Vec<u8> = (0..source.byte() % 64).map(|_| source.byte()).collect();
            client.send(source.byte().into(), source.byte().into(), &payload, &[]);
        }
        3 => {
            let at = if op > 127 { 0x3100 } else { 0 } + u64::from(source.byte() % 16) * 16;
            let (address, len) = (source.address(), source.number() as u32);
            client.descriptor(at, address, len, (source.byte() % 8).into(), source.byte().into());
        }
        4 => client.offer(source.half(), u16::from(source.byte() % 3)),
        5 => {
            let at = source.address();
            let bytes: Vec<u8> = (0..source.byte() % 16).map(|_| source.byte()).collect();
            client.write(at, &bytes);
        }
        6 if source.byte().is_multiple_of(4) => {
            client.memory.set_len(u64::from(source.byte()) << 8).unwrap();
        }
        7 => client.halves(11, u32::from(source.byte() % 3), 0),
        8 => client.kick(),
        9..=16 => {
            client.request(source);
            client.kick();
        }
        17..=20 => {
            let at = DATA + 512 * u64::from(source.byte() % 16);
            client.write(at, &[source.byte(); 512]);
        }
        21..=25 => drop(world.release(source.byte().into())),
        26..=29 => world.look(),
        _ => world.rest(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn no_vhost_client_panics_the_daemon_or_leaves_a_request(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
            super::play(&bytes);
        }
    }
}
