//! A driver over simulated disks: carries out effects, checks every answer, crashes and recovers.

pub mod disk;
pub mod model;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use disk::{Disk, SECTOR};
use model::Model;
use virtbench_fence::cache::{self, Image, Layout, MemoryLog};
use virtbench_fence::{
    Backing, BufferId, Completion, Config, Data, Device, DeviceIo, DeviceOp, DiskId, Effect, Fence, IoError,
    Op, Request, RequestId, Time,
};

struct Guest {
    request: Request,
    began: u64,
    bytes: Vec<u8>,
    /// It sees what a crash has left: whatever that is must stay.
    first_look: bool,
}

#[derive(Clone)]
struct Outstanding {
    io: DeviceIo,
    write: u64,
    covers: Vec<u64>,
}

pub struct World {
    pub config: Config,
    pub fence: Fence,
    pub disks: [Disk; 2],
    models: Vec<Model>,
    guests: BTreeMap<u64, Guest>,
    outstanding: Vec<Outstanding>,
    scratch: Vec<[u8; 4096]>,
    pub now: u64,
    next: u64,
    /// Without, every checksum of data is 0: the order of things alone must keep the contract.
    pub checksums: bool,
    /// Reads that are submitted now see what a crash has left.
    first_look: bool,
    pub answered: u64,
    pub dispatched: u64,
    /// Requests answered with an error.
    pub failed: u64,
    /// Of each disk, whether an I/O of its partition has failed since the start: else none of its requests may.
    hurt: Vec<bool>,
    /// What a process that is killed leaves.
    memory: Option<Arc<Vec<AtomicU64>>>,
    power_failures: u64,
}

fn image_of(config: &Config, fast: &Disk) -> Vec<Vec<u8>> {
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
            guests: BTreeMap::new(),
            outstanding: Vec::new(),
            scratch: vec![[0; 4096]; fence.scratch_blocks()],
            fence,
            now: 1,
            next: 0,
            checksums: true,
            first_look: false,
            answered: 0,
            dispatched: 0,
            failed: 0,
            hurt: vec![false; config.disks.len()],
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
        let now = self.tick();
        self.next += 1;
        let mut bytes = vec![0xee; sectors as usize * SECTOR];
        if op == Op::Write {
            for (index, chunk) in bytes.chunks_mut(SECTOR).enumerate() {
                let sector = sector + index as u64;
                let value = self.next << 24 | u64::from(disk) << 16 | sector;
                self.models[usize::from(disk)].begin_write(sector, value, self.now);
                chunk.copy_from_slice(&value.to_le_bytes().repeat(SECTOR / 8));
            }
        }
        let request = Request {
            id: RequestId(self.next),
            disk: DiskId(disk),
            op,
            offset_bytes: sector * SECTOR as u64,
            len_bytes: sectors * SECTOR as u32,
            buffer: BufferId(self.next),
        };
        self.guests.insert(self.next, Guest { request, began: self.now, bytes, first_look: self.first_look });
        self.fence.submit(now, request);
        self.effects();
    }

    /// Lets the outstanding I/O at `index` complete.
    pub fn complete(&mut self, index: usize) {
        let now = self.tick();
        let Outstanding { io, write, covers } = self.outstanding.remove(index);
        let device = io.device.index();
        let (at, len) = (io.offset_bytes as usize, io.len_bytes as usize);
        let mut data_crc = 0;
        match io.op {
            DeviceOp::Read => {
                let bytes = self.disks[device].read(at, len);
                if io.wants_crc && self.checksums {
                    data_crc = crc32c::crc32c(&bytes);
                }
                self.memory(io.data, len).copy_from_slice(&bytes);
            }
            DeviceOp::Write => {
                if io.wants_crc && self.checksums {
                    data_crc = crc32c::crc32c(self.memory(io.data, len));
                }
                self.disks[device].complete(write);
            }
            DeviceOp::Flush => self.disks[device].flush(&covers),
            DeviceOp::Discard => {}
        }
        self.fence.on_device(now, Completion { io: io.id, result: Ok(()), data_crc }).unwrap();
        self.effects();
    }

    /// Lets the outstanding I/O at `index` fail.
    pub fn fail(&mut self, index: usize, mut chance: impl FnMut() -> bool) {
        let now = self.tick();
        let Outstanding { io, write, .. } = self.outstanding.remove(index);
        match io.op {
            DeviceOp::Read => self.memory(io.data, io.len_bytes as usize).fill(0xdd),
            DeviceOp::Write => self.disks[io.device.index()].fail(write, &mut chance),
            DeviceOp::Flush | DeviceOp::Discard => {}
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

    /// Nothing is under way: goes on to the deadline. False if there is none.
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

    fn memory(&mut self, data: Data, len: usize) -> &mut [u8] {
        match data {
            Data::Guest { buffer, at_bytes } => {
                let guest =
                    self.guests.get_mut(&buffer.0).expect("the buffer of a request that was answered");
                &mut guest.bytes[at_bytes as usize..at_bytes as usize + len]
            }
            Data::Scratch { block, at_bytes } => {
                &mut self.scratch[block as usize][at_bytes as usize..at_bytes as usize + len]
            }
            Data::Core | Data::None => &mut [],
        }
    }

    fn effects(&mut self) {
        while let Some(effect) = self.fence.poll_effect() {
            match effect {
                Effect::Dispatch(io) => self.dispatch(io),
                Effect::Copy { from, to, len_bytes } => {
                    let bytes = self.memory(from, len_bytes as usize).to_vec();
                    self.memory(to, len_bytes as usize).copy_from_slice(&bytes);
                }
                Effect::Complete { request, result } => self.answer(request, result.err()),
            }
        }
        assert_eq!(self.fence.outstanding(), self.guests.len(), "a request was lost");
    }

    fn dispatch(&mut self, io: DeviceIo) {
        self.dispatched += 1;
        let device = io.device.index();
        let (mut write, mut covers) = (0, Vec::new());
        match io.op {
            DeviceOp::Write => {
                let bytes = match self.fence.bytes(io.id) {
                    Some(bytes) => bytes.to_vec(),
                    None => self.memory(io.data, io.len_bytes as usize).to_vec(),
                };
                assert_eq!(bytes.len(), io.len_bytes as usize);
                self.check_place(&io);
                write = self.disks[device].write(io.offset_bytes as usize, bytes);
            }
            DeviceOp::Flush => covers = self.disks[device].covered(),
            DeviceOp::Read | DeviceOp::Discard => {}
        }
        self.outstanding.push(Outstanding { io, write, covers });
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
        let now = {
            self.now += 1;
            self.now
        };
        let Guest { request, began, bytes, first_look } = self.guests.remove(&id.0).expect("answered twice");
        self.answered += 1;
        self.failed += u64::from(error.is_some());
        assert!(
            error.is_none() || self.hurt[request.disk.index()],
            "{request:?}: {error:?} though none of its I/Os failed"
        );
        let model = &mut self.models[request.disk.index()];
        for (index, chunk) in bytes.chunks(SECTOR).enumerate() {
            let sector = request.offset_bytes / SECTOR as u64 + index as u64;
            let value = u64::from_le_bytes(chunk[..8].try_into().unwrap());
            match request.op {
                Op::Write => model.end_write(sector, value, now, error.is_some()),
                Op::Read if error.is_none() => {
                    assert!(chunk.chunks(8).all(|part| part == &chunk[..8]), "a torn sector was read");
                    let checked = match first_look {
                        true => model.check_crash(sector, value),
                        false => model.check_read(sector, value, began),
                    };
                    checked.unwrap_or_else(|e| panic!("disk {}: {e}", request.disk.0));
                }
                Op::Read | Op::Flush | Op::Discard => {}
            }
        }
        if request.op == Op::Flush && error.is_none() {
            model.flushed(began);
        }
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
        self.models.iter_mut().for_each(|model| model.fail_power(self.now));
        self.power_failures += 1;
        self.recover(true);
    }

    /// The process is killed; `stored` says of each sector under way whether it takes effect. The next one recovers the
    /// cache, and with `twice` is killed itself before it has written anything.
    pub fn kill(&mut self, twice: bool, mut stored: impl FnMut() -> bool) {
        self.disks.iter_mut().for_each(|disk| disk.kill(&mut stored));
        self.guests.clear();
        self.outstanding.clear();
        self.hurt.fill(false);
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
        let (fence, write) = Fence::recover(self.config.clone(), &image).unwrap();
        self.fence = fence;
        if begins {
            let id = self.disks[1].write(write.offset_bytes as usize, write.bytes);
            self.disks[1].complete(id);
            let all = self.disks[1].covered();
            self.disks[1].flush(&all);
        }
    }

    /// No power failure leaves what an inspection takes for a fault, nor a block with other data than its entry says.
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
        }
    }

    /// A guest sees a block after a crash, before anything but reads has completed, if the fence lets it. What it saw
    /// must stay.
    pub fn peek(&mut self, disk: u16, block: u64) {
        self.first_look = true;
        self.submit(disk, Op::Read, block * 8, 8);
        self.first_look = false;
        while let Some(read) = self.outstanding.iter().position(|at| at.io.op == DeviceOp::Read) {
            self.complete(read);
        }
    }

    /// Reads every disk whole and holds what is found against what may have survived.
    pub fn verify(&mut self) {
        for disk in 0..self.config.disks.len() {
            self.first_look = true;
            for block in 0..self.config.disks[disk].size_bytes / 4096 {
                self.submit(disk as u16, Op::Read, block * 8, 8);
                self.settle(|_| 0);
            }
            self.first_look = false;
            self.models[disk].after_crash();
        }
    }
}
