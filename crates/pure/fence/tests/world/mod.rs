//! A driver over simulated disks: carries out effects, checks every answer, crashes and recovers.

pub mod disk;
pub mod guests;
pub mod model;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use disk::{Disk, SECTOR};
use guests::{Buffer, Guest, Guests, Look, RUBBISH, value_of};
use model::Model;
use virtbench_fence::cache::{self, Image, Layout, MemoryLog};
use virtbench_fence::{
    Backing, BufferId, Completion, Config, Data, Device, DeviceIo, DeviceOp, DiskId, Effect, Fence, IoError,
    Op, Request, RequestId, Time,
};

#[derive(Clone)]
struct Outstanding {
    io: DeviceIo,
    write: u64,
    /// Checksum of what is written.
    crc: u32,
    covers: Vec<u64>,
}

pub struct World {
    pub config: Config,
    pub fence: Fence,
    pub disks: [Disk; 2],
    models: Vec<Model>,
    guests: Guests,
    outstanding: Vec<Outstanding>,
    scratch: Vec<[u8; 4096]>,
    pub now: u64,
    next: u64,
    /// Without, every checksum of data is 0: the order of things alone must keep the contract.
    pub checksums: bool,
    /// What reads that are submitted now see.
    look: Look,
    pub answered: u64,
    pub dispatched: u64,
    /// Requests answered with an error.
    pub failed: u64,
    /// Of each disk, whether an I/O of its partition has failed since the start: else none of its requests may.
    hurt: Vec<bool>,
    /// Of each disk, whether a flush may have to tell what was lost before a kill.
    untold: Vec<bool>,
    /// Bytes that went past the cache.
    pub bypassed_bytes: u64,
    /// What a process that is killed leaves.
    memory: Option<Arc<Vec<AtomicU64>>>,
    power_failures: u64,
}

pub fn image_of(config: &Config, fast: &Disk) -> Vec<Vec<u8>> {
    let Backing::Cached(cache) = &config.backing else { return Vec::new() };
    let layout = Layout::new(cache.partitions.blocks());
    let read = |at: u64, blocks: u32| fast.read(at as usize, blocks as usize * 4096);
    layout.partitions.iter().map(|part| read(part.log_offset_bytes, part.log_blocks)).collect()
}

impl World {
    pub fn new(config: Config) -> Self {
        let mut fast = Disk::new(config.fast.size_bytes as usize);
        if let Backing::Cached(cache) = &config.backing {
            for write in cache::format(&config, cache) {
                let at = write.offset_bytes as usize;
                fast.medium[at..at + write.bytes.len()].copy_from_slice(&write.bytes);
            }
        }
        let fence = Fence::new(config.clone()).unwrap();
        Self {
            disks: [Disk::new(config.slow.size_bytes as usize), fast],
            models: vec![Model::default(); config.disks.len()],
            guests: Guests::default(),
            outstanding: Vec::new(),
            scratch: vec![[0; 4096]; fence.scratch_blocks()],
            fence,
            now: 1,
            next: 0,
            checksums: true,
            look: Look::Usual,
            answered: 0,
            dispatched: 0,
            failed: 0,
            hurt: vec![false; config.disks.len()],
            untold: vec![false; config.disks.len()],
            bypassed_bytes: 0,
            memory: None,
            power_failures: 0,
            config,
        }
    }

    /// The same with a log in memory, of so many entries for a commit.
    pub fn with_memory(config: Config, entries: usize) -> Self {
        let mut world = Self::new(config);
        let Backing::Cached(cache) = &world.config.backing else { return world };
        let words = 8 + cache.partitions.blocks().len() * 2 * (4 + 4 * entries);
        world.memory = Some(Arc::new((0..words).map(|_| AtomicU64::new(0)).collect()));
        world.recover(true);
        world
    }

    fn memory_log(&self) -> Option<MemoryLog> {
        self.memory.clone().map(|words| MemoryLog::new(words, [7, self.power_failures]))
    }

    pub fn in_flight(&self) -> usize {
        self.outstanding.len()
    }

    /// On whose behalf the outstanding I/O at `index` is.
    pub fn whose(&self, index: usize) -> usize {
        self.outstanding[index].io.disk.index()
    }

    pub fn waiting(&self) -> usize {
        self.guests.len()
    }

    fn tick(&mut self) -> Time {
        self.now += 1;
        Time::from_ns(self.now)
    }

    pub fn submit(&mut self, disk: u16, op: Op, sector: u64, sectors: u32) {
        self.submit_in(Buffer::Own, disk, op, sector, sectors);
    }

    pub fn submit_in(&mut self, buffer: Buffer, disk: u16, op: Op, sector: u64, sectors: u32) {
        let now = self.tick();
        self.next += 1;
        let request = Request {
            id: RequestId(self.next),
            disk: DiskId(disk),
            op,
            offset_bytes: sector * SECTOR as u64,
            len_bytes: sectors * SECTOR as u32,
            buffer: BufferId(self.next),
        };
        self.guests.begin(request, self.now, buffer, self.look, &mut self.models);
        self.fence.submit(now, request);
        self.effects();
    }

    /// The guest of the request in flight at `index` changes a sector of the request's memory.
    pub fn scribble(&mut self, index: usize, sector: usize) {
        self.next += 1;
        self.guests.scribble(index, sector, self.next, &mut self.models);
    }

    /// Lets the outstanding I/O at `index` complete.
    pub fn complete(&mut self, index: usize) {
        let now = self.tick();
        let Outstanding { io, write, crc, covers } = self.outstanding.remove(index);
        let device = io.device.index();
        let mut data_crc = crc;
        match io.op {
            DeviceOp::Read => {
                let bytes = self.disks[device].read(io.offset_bytes as usize, io.len_bytes as usize);
                data_crc = self.crc(&io, &bytes);
                self.arrive(&io, &bytes);
            }
            DeviceOp::Write | DeviceOp::Discard => self.disks[device].complete(write),
            DeviceOp::Flush => self.disks[device].flush(&covers),
        }
        self.fence.on_device(now, Completion { io: io.id, result: Ok(()), data_crc }).unwrap();
        self.effects();
    }

    /// Requests may fail from now on, though no I/O does.
    pub fn expect_failures(&mut self) {
        self.hurt.fill(true);
    }

    /// Lets the outstanding I/O at `index` fail.
    pub fn fail(&mut self, index: usize, mut chance: impl FnMut() -> bool) {
        let now = self.tick();
        let Outstanding { io, write, .. } = self.outstanding.remove(index);
        match io.op {
            DeviceOp::Read => self.arrive(&io, &vec![RUBBISH; io.len_bytes as usize]),
            DeviceOp::Write | DeviceOp::Discard => self.disks[io.device.index()].fail(write, &mut chance),
            DeviceOp::Flush
                if io.device == Device::Slow && matches!(self.config.backing, Backing::Cached(_)) =>
            {
                let lost = self.disks[0].lose(&mut chance);
                self.lose(&lost);
            }
            DeviceOp::Flush => {}
        }
        let shared =
            matches!(&self.config.backing, Backing::Cached(cache) if cache.partitions.blocks().len() == 1);
        for (disk, hurt) in self.hurt.iter_mut().enumerate() {
            *hurt |= shared || disk == io.disk.index();
        }
        let result = Err(IoError::Device(5));
        self.fence.on_device(now, Completion { io: io.id, result, data_crc: 0 }).unwrap();
        self.effects();
    }

    /// A sync of the slow device has lost these sectors, of which no cache has a copy.
    fn lose(&mut self, lost: &[(usize, Vec<u8>)]) {
        for (offset, bytes) in lost {
            let disk = self.config.disks.iter().position(|disk| {
                (disk.offset_bytes..disk.offset_bytes + disk.size_bytes).contains(&(*offset as u64))
            });
            let disk = disk.expect("a sector of a disk");
            let sector = (*offset as u64 - self.config.disks[disk].offset_bytes) / SECTOR as u64;
            self.models[disk].lose(sector, value_of(bytes));
        }
        let Backing::Cached(cache) = &self.config.backing else { return };
        for (disk, cutoff) in cache.bypass_bytes.iter().enumerate() {
            self.hurt[disk] |= cutoff.is_some();
            self.untold[disk] |= cutoff.is_some();
        }
    }

    /// Nothing is in flight: goes on to the deadline. False if there is none.
    pub fn wait(&mut self) -> bool {
        let Some(deadline) = self.fence.next_deadline() else { return false };
        self.now = self.now.max(deadline.ns());
        let now = self.tick();
        self.fence.on_timer(now);
        self.effects();
        true
    }

    /// Completes everything in the order `pick` chooses; panics if requests stay unanswered.
    pub fn settle(&mut self, mut pick: impl FnMut(usize) -> usize) {
        for _ in 0..100_000 {
            if self.guests.is_empty() {
                return;
            }
            if self.outstanding.is_empty() {
                let counts: Vec<_> = self.fence.cache_counts().collect();
                assert!(self.wait(), "requests wait and nothing will wake them: {counts:?}");
            } else {
                let index = pick(self.outstanding.len());
                self.complete(index);
            }
        }
        panic!("{} requests are starved", self.guests.len());
    }

    fn load(&self, data: Data, len: usize) -> Vec<u8> {
        match data {
            Data::Guest { buffer, at_bytes } => self.guests.load(buffer.0, at_bytes as usize, len),
            Data::Scratch { block, at_bytes } => {
                self.scratch[block as usize][at_bytes as usize..at_bytes as usize + len].to_vec()
            }
            Data::Core | Data::Pieces | Data::None => Vec::new(),
        }
    }

    fn store(&mut self, data: Data, bytes: &[u8]) {
        match data {
            Data::Guest { buffer, at_bytes } => {
                self.guests.store(buffer.0, at_bytes as usize, bytes, &mut self.models);
            }
            Data::Scratch { block, at_bytes } => {
                let at = at_bytes as usize;
                self.scratch[block as usize][at..at + bytes.len()].copy_from_slice(bytes);
            }
            Data::Core | Data::Pieces | Data::None => {}
        }
    }

    /// A device has read something.
    fn arrive(&mut self, io: &DeviceIo, bytes: &[u8]) {
        let mut pieces = vec![(io.data, io.len_bytes)];
        if io.data == Data::Pieces {
            pieces.clear();
            self.fence.pieces(io.id, |data, len_bytes| pieces.push((data, len_bytes)));
        }
        let mut at = 0;
        for (data, len_bytes) in pieces {
            let until = at + len_bytes as usize;
            self.store(data, &bytes[at..until]);
            at = until;
        }
        assert_eq!(at, bytes.len(), "the pieces are not all of it: {io:?}");
    }

    fn crc(&self, io: &DeviceIo, bytes: &[u8]) -> u32 {
        if io.wants_crc && self.checksums { crc32c::crc32c(bytes) } else { 0 }
    }

    fn effects(&mut self) {
        while let Some(effect) = self.fence.poll_effect() {
            match effect {
                Effect::Dispatch(io) => self.dispatch(io),
                Effect::Copy { from, to, len_bytes } => {
                    let bytes = self.load(from, len_bytes as usize);
                    self.store(to, &bytes);
                }
                Effect::Complete { request, result } => self.answer(request, result.err()),
            }
        }
        assert_eq!(self.fence.outstanding(), self.guests.len(), "a request was lost");
    }

    fn dispatch(&mut self, io: DeviceIo) {
        self.dispatched += 1;
        let device = io.device.index();
        let (mut write, mut crc, mut covers) = (0, 0, Vec::new());
        match io.op {
            DeviceOp::Write => {
                let bytes = match self.fence.bytes(io.id) {
                    Some(bytes) => bytes.to_vec(),
                    None => self.load(io.data, io.len_bytes as usize),
                };
                assert_eq!(bytes.len(), io.len_bytes as usize);
                crc = self.crc(&io, &bytes);
                self.check_place(&io);
                let is_past = io.device == Device::Slow && matches!(self.config.backing, Backing::Cached(_));
                let is_guests = is_past && matches!(io.data, Data::Guest { .. });
                self.bypassed_bytes += if is_guests { u64::from(io.len_bytes) } else { 0 };
                write = self.disks[device].write_of(is_guests, io.offset_bytes as usize, bytes);
            }
            DeviceOp::Flush => covers = self.disks[device].covered(),
            DeviceOp::Discard => {
                self.check_place(&io);
                write = self.disks[device].write(io.offset_bytes as usize, vec![0; io.len_bytes as usize]);
            }
            DeviceOp::Read => {}
        }
        self.outstanding.push(Outstanding { io, write, crc, covers });
    }

    /// No disk's I/O touches another's partition.
    fn check_place(&self, io: &DeviceIo) {
        if io.device == Device::Slow {
            let disk = &self.config.disks[io.disk.index()];
            let end = io.offset_bytes + u64::from(io.len_bytes);
            assert!(
                io.offset_bytes >= disk.offset_bytes && end <= disk.offset_bytes + disk.size_bytes,
                "{io:?}"
            );
        }
    }

    fn answer(&mut self, id: RequestId, error: Option<IoError>) {
        self.now += 1;
        let Guest { request, .. } = self.guests.end(id.0, self.now, error.is_some(), &mut self.models);
        self.answered += 1;
        self.failed += u64::from(error.is_some());
        assert!(
            error.is_none() || self.hurt[request.disk.index()],
            "{request:?}: {error:?} though none of its I/Os failed"
        );
    }

    /// Power fails. `crash` says what of each device's unflushed writes survives; then the cache is recovered and every
    /// disk is read through.
    pub fn crash(&mut self, crash: impl FnMut(usize, &mut Disk)) {
        self.fail_power(crash);
        self.verify();
    }

    /// Power fails and the cache is recovered.
    pub fn fail_power(&mut self, mut crash: impl FnMut(usize, &mut Disk)) {
        for (index, disk) in self.disks.iter_mut().enumerate() {
            crash(index, disk);
        }
        self.guests.clear();
        self.outstanding.clear();
        self.hurt.fill(false);
        self.untold.fill(false);
        self.models.iter_mut().for_each(|model| model.fail_power(self.now));
        self.power_failures += 1;
        self.recover(true);
    }

    /// The process is killed; `stored` says of each sector in flight whether it takes effect. The next one recovers the
    /// cache, and with `twice` is killed itself before it has written anything.
    pub fn kill(&mut self, twice: bool, mut stored: impl FnMut() -> bool) {
        self.disks.iter_mut().for_each(|disk| disk.kill(&mut stored));
        self.guests.clear();
        self.outstanding.clear();
        self.hurt.clone_from(&self.untold);
        self.models.iter_mut().for_each(|model| model.kill(self.now));
        if twice {
            self.recover(false);
        }
        self.recover(true);
    }

    /// A new fence over what is there; `begins` says whether it comes to write its superblock and to sync.
    fn recover(&mut self, begins: bool) {
        let logs = image_of(&self.config, &self.disks[1]);
        if logs.is_empty() {
            self.fence = Fence::new(self.config.clone()).unwrap();
            return;
        }
        let superblocks = self.disks[1].read(0, 8192);
        let memory = self.memory_log();
        let image = Image { superblocks: &superblocks, logs: &logs, memory: memory.as_ref() };
        self.inspect(&image);
        let (fence, writes) = Fence::recover(self.config.clone(), &image).unwrap();
        self.fence = fence;
        if begins {
            let all = self.disks[0].covered();
            self.disks[0].flush(&all);
        }
        for write in writes.into_iter().filter(|_| begins) {
            let id = self.disks[1].write(write.offset_bytes as usize, write.bytes);
            self.disks[1].complete(id);
            let all = self.disks[1].covered();
            self.disks[1].flush(&all);
        }
    }

    /// No power failure leaves what an inspection takes for a fault, nor a block with other data than its entry says, nor
    /// a clean one that is not what the slow device has.
    fn inspect(&self, image: &Image<'_>) {
        let found = cache::inspect(image).unwrap();
        assert!(found.faults.is_empty() && found.more_faults == 0, "{:?}", found.faults);
        for (place, partition) in found.partitions.iter().enumerate() {
            let held = partition.clean + partition.dirty;
            assert_eq!(held + partition.free + partition.retiring, partition.blocks);
            for live in found.live(place).filter(|_| self.checksums) {
                let data = self.disks[1].read(live.fast_offset_bytes as usize, 4096);
                assert_eq!(crc32c::crc32c(&data), live.data_crc, "{live:?}");
            }
            for live in found.live(place).filter(|live| !live.dirty) {
                let disk = &self.config.disks[usize::from(live.disk)];
                let cached = self.disks[1].read(live.fast_offset_bytes as usize, 4096);
                let slow = self.disks[0].read((disk.offset_bytes + live.disk_offset_bytes) as usize, 4096);
                assert!(cached == slow, "{live:?}: the slow device has something else");
            }
        }
    }

    /// A guest sees a block after a crash, before anything but reads has completed, if the fence lets it. What it saw
    /// must stay.
    pub fn peek(&mut self, disk: u16, block: u64) {
        self.look = Look::Crashed;
        self.submit(disk, Op::Read, block * 8, 8);
        self.look = Look::Usual;
        while let Some(read) = self.outstanding.iter().position(|at| at.io.op == DeviceOp::Read) {
            self.complete(read);
        }
    }

    /// Reads every disk whole and holds what is found against what may have survived.
    pub fn verify(&mut self) {
        self.read_through(Look::Crashed);
        self.models.iter_mut().for_each(Model::after_crash);
    }

    /// Lets everything settle and become stable. What is found then stays, unless a device has failed.
    pub fn calm(&mut self, mut pick: impl FnMut(usize) -> usize) {
        self.settle(&mut pick);
        let failed = self.failed;
        for disk in 0..self.config.disks.len() {
            self.submit(disk as u16, Op::Flush, 0, 0);
        }
        self.settle(&mut pick);
        let stable = failed == self.failed;
        self.read_through(if stable { Look::Settled } else { Look::Usual });
    }

    /// Block by block; of what has settled one sector of each again.
    fn read_through(&mut self, look: Look) {
        for disk in 0..self.config.disks.len() {
            for block in 0..self.config.disks[disk].size_bytes / 4096 {
                self.look = look;
                self.submit(disk as u16, Op::Read, block * 8, 8);
                self.settle(|_| 0);
                self.look = Look::Usual;
                if look != Look::Crashed {
                    self.submit(disk as u16, Op::Read, block * 8 + (block + 3) % 8, 1);
                    self.settle(|_| 0);
                }
            }
        }
    }
}
