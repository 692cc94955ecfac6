//! A vhost-user client made of anybody's bytes: messages, descriptors, rings, memory that comes and goes. Nothing it does
//! panics the daemon or leaves a request behind.
//!
//! The fuzz target `vhost` feeds the same function. The daemon's own loop runs, on this thread, turn by turn.

#![allow(clippy::cast_possible_truncation, clippy::unwrap_used, clippy::missing_panics_doc, missing_docs)]

use std::cell::RefCell;
use std::fs::File;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use virtbench_fence::{Backing, Config, DeviceConfig, DiskConfig, DiskId, Fence, SchedulerConfig};
use virtbench_fence_daemon::device::{Backend, NullBackend};
use virtbench_fence_daemon::frontend::FrontEnd;
use virtbench_fence_daemon::frontend::listen::Listener;
use virtbench_fence_daemon::frontend::vhost_user::{Served, VhostUserBlk};
use virtbench_fence_daemon::metrics::Figures;
use virtbench_fence_daemon::runtime::{Parts, Runtime, Stopper};

const DISK_BYTES: u64 = 1 << 20;
const MEMORY_BYTES: u64 = 64 << 10;
const REGIONS: u64 = 2;
/// Where the client itself would have its memory.
const USER: u64 = 0x7000_0000_0000;
const RING: u16 = 8;
const AVAILABLE: u64 = 0x1000;
const USED: u64 = 0x2000;
/// What a client does at most.
const MOST_OPS: usize = 24;
/// Turns after which the loop must have come to rest.
const MOST_TURNS: usize = 10_000;

struct World {
    runtime: Runtime,
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
        let disk = DiskConfig { uuid: [1; 16], offset_bytes: 0, size_bytes: DISK_BYTES };
        let device = DeviceConfig { size_bytes: DISK_BYTES, depth: 4 };
        let fence = Fence::new(Config {
            disks: vec![disk],
            slow: device,
            fast: DeviceConfig { size_bytes: 0, depth: 1 },
            backing: Backing::Slow,
            scheduler: SchedulerConfig::Fifo,
            max_request_bytes: 8192,
        });
        let served = Served {
            disk: DiskId(0),
            name: "a".into(),
            size_bytes: DISK_BYTES,
            block_bytes: 512,
            queues: 2,
            read_only: false,
        };
        let front_end = VhostUserBlk::new(Listener::bind(&socket).unwrap(), served);
        let parts = Parts {
            fence: fence.unwrap(),
            write_through: vec![false],
            devices: [Some(Box::new(NullBackend::new(DISK_BYTES)) as Box<dyn Backend>), None],
            front_ends: vec![Box::new(front_end) as Box<dyn FrontEnd>],
            requests_per_disk: 16,
            max_request_bytes: 8192,
            spin: Duration::ZERO,
            figures: Figures::new(std::iter::once("a".to_owned()), 0),
        };
        let mut runtime = Runtime::new(parts, Stopper::new().unwrap()).unwrap();
        runtime.begin();
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let memory = File::from(memfd_create("invented", MemfdFlags::CLOEXEC).unwrap());
        Self {
            runtime,
            socket,
            memory,
            kick: eventfd(0, flags).unwrap(),
            call: eventfd(0, flags).unwrap(),
            strange: File::open("/dev/null").unwrap(),
        }
    }

    /// The loop, until it has nothing to do.
    fn rest(&mut self) {
        for _ in 0..MOST_TURNS {
            // What the ring was asked for in one turn may be there in the next.
            if !self.runtime.turn().unwrap() && !self.runtime.turn().unwrap() {
                return;
            }
        }
        panic!("the loop does not come to rest");
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

    /// A request as a driver makes it.
    fn request(&mut self, source: &mut Source<'_>) {
        let kind = u32::from(source.byte() % 16);
        let sector = source.number();
        self.write(0x3000, &[&kind.to_le_bytes()[..], &[0; 4], &sector.to_le_bytes()].concat());
        let len = u32::from(source.half()) << 4;
        let into = if matches!(kind, 1 | 11 | 13) { 0 } else { 2 };
        let head = u16::from(source.byte() % 6);
        if source.byte().is_multiple_of(2) {
            self.descriptor(u64::from(head) * 16, 0x3000, 16, 1, head + 1);
            self.descriptor(u64::from(head + 1) * 16, 0x4000, len, 1 | into, head + 2);
            self.descriptor(u64::from(head + 2) * 16, 0x3800, 1, 2, 0);
        } else {
            self.descriptor(u64::from(head) * 16, 0x3100, 48, 4, 0);
            self.descriptor(0x3100, 0x3000, 16, 1, 1);
            self.descriptor(0x3110, 0x4000, len, 1 | into, 2);
            self.descriptor(0x3120, 0x3800, 1, 2, 0);
        }
        self.offer(head, 0);
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

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

/// Plays a client that does what the bytes say, and holds what must be so afterwards.
pub fn play(bytes: &[u8]) {
    WORLD.with_borrow_mut(|world| {
        let world = world.get_or_insert_with(World::new);
        let memory = world.memory.try_clone().unwrap();
        // As new where rings, tables and headers are: nothing of the client before is left in it.
        memory.set_len(MEMORY_BYTES).unwrap();
        memory.write_all_at(&[0; 0x4000], 0).unwrap();
        let (kick, call) = (world.kick.try_clone().unwrap(), world.call.try_clone().unwrap());
        let strange = world.strange.try_clone().unwrap();
        let mut client = Client {
            stream: UnixStream::connect(&world.socket).unwrap(),
            memory: &memory,
            kick: kick.as_fd(),
            call: call.as_fd(),
            strange: strange.as_fd(),
            available: 0,
        };
        let mut source = Source(bytes.iter());
        for _ in 0..MOST_OPS {
            let Some(op) = source.0.next() else { break };
            match op % 16 {
                0 | 1 => client.set_up(&mut source),
                2 => client.message(&mut source),
                3 => {
                    let payload: Vec<u8> = (0..source.byte() % 64).map(|_| source.byte()).collect();
                    client.send(source.byte().into(), source.byte().into(), &payload, &[]);
                }
                4 | 5 => {
                    let at = if *op > 127 { 0x3100 } else { 0 } + u64::from(source.byte() % 16) * 16;
                    let (address, len) = (source.address(), source.number() as u32);
                    client.descriptor(at, address, len, (source.byte() % 8).into(), source.byte().into());
                }
                6 => client.offer(source.half(), u16::from(source.byte() % 3)),
                7..=10 => client.request(&mut source),
                11 => {
                    let at = source.address();
                    let bytes: Vec<u8> = (0..source.byte() % 16).map(|_| source.byte()).collect();
                    client.write(at, &bytes);
                }
                12 => drop(rustix::io::write(&kick, &1u64.to_ne_bytes())),
                13 if source.byte().is_multiple_of(4) => {
                    memory.set_len(u64::from(source.byte()) << 8).unwrap()
                }
                14 => client.halves(11, u32::from(source.byte() % 3), 0),
                _ => world.rest(),
            }
        }
        world.rest();
        drop(client);
        world.rest();
        assert_eq!(world.runtime.pending(), 0, "a request was left behind");
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn no_vhost_client_panics_the_daemon_or_leaves_a_request(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            super::play(&bytes);
        }
    }
}
