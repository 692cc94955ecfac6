//! What a guest says it no longer needs leaves the cache without being written back, and the slow device discards it.
//!
//! Other contents may come back until the trim is answered; from then on what is read stays until it is written. So:
//!
//! 1. What is cached and has a stable entry is retired. What is being changed stays as it is.
//! 2. Two commits later no entry on the device names a block of the range any more, not even one that was evicted before.
//!    Else a crash would bring back an entry that says what the slow device no longer has.
//! 3. The slow device discards what is not cached, and makes that stable; then the trim is answered.
//!
//! Until then nothing of the range is put into the cache by a read, nor evicted.

use super::block_op::{BlockOp, Part, Phase};
use super::commit_state::{CommitStep, Trim};
use super::table::{self, LOCKED, ON_LOG, PENDING, State, WRITING};
use super::{BLOCK_BYTES, Partition};
use crate::ports::Ports;
use crate::types::{BufferId, Data, DeviceOp, IoError, Request, Time};

#[allow(clippy::cast_possible_truncation)] // 4096
const BLOCK: u32 = BLOCK_BYTES as u32;
/// Blocks of one I/O at most.
const MOST_BLOCKS: u32 = 1 << 16;

impl Partition {
    pub(super) fn trim(&mut self, request: &Request, ports: &mut Ports) {
        let index = ports.begin_request(request.id, 1);
        let first = request.offset_bytes.div_ceil(BLOCK_BYTES);
        let end = (request.offset_bytes + u64::from(request.len_bytes)) / BLOCK_BYTES;
        if first >= end || self.settling || self.refusal(true).is_some() {
            // The contents may stay.
            return ports.part_done(index, Ok(()));
        }
        let (from, to) = (table::key(request.disk.0, first), table::key(request.disk.0, end));
        for key in from..to {
            ports.steps += 1;
            if let Some(block) = self.table.find(key).filter(|&block| self.can_be_dropped(block)) {
                let dirty = self.table.state(block) == State::Dirty;
                self.give_up(block);
                if dirty {
                    // Until its tombstone is stable it is repeated as what it is.
                    self.table.set_state(block, State::Superseded);
                }
            }
        }
        self.trims_begun += 1;
        let (id, round) = (self.trims_begun, Some(self.round_after_next()));
        self.trims.push(Trim { id, request: index, from, to, round, ios: 0 });
    }

    /// Whether a block belongs to a trim that is not answered.
    pub(super) fn is_trimmed(&self, key: u64) -> bool {
        self.trims.iter().any(|trim| (trim.from..trim.to).contains(&key))
    }

    /// When the tombstone of a block that is retired now is stable. The commit that is under way does not count.
    fn round_after_next(&self) -> u64 {
        self.commit.rounds + 2 + u64::from(self.commit.step != CommitStep::Idle)
    }

    /// A block is retired: trims that were to be carried out before its tombstone is stable wait for that too.
    pub(super) fn delay_trims(&mut self, key: u64) {
        let after = self.round_after_next();
        for trim in self.trims.iter_mut().filter(|trim| (trim.from..trim.to).contains(&key)) {
            trim.round = trim.round.map(|round| round.max(after));
        }
    }

    /// Whether a trim needs a commit.
    pub(super) fn trims_wait(&self) -> bool {
        self.trims.iter().any(|trim| trim.round.is_some())
    }

    /// A round of commits is over: has the slow device discard what may be discarded now.
    pub(super) fn discard(&mut self, now: Time, ports: &mut Ports) {
        for place in 0..self.trims.len() {
            let Trim { id, from, to, round, .. } = self.trims[place];
            if round.is_none_or(|round| self.commit.rounds < round) {
                continue;
            }
            self.trims[place].round = None;
            let mut run: Option<(u64, u32)> = None;
            for key in from..to {
                ports.steps += 1;
                let free = self.table.find(key).is_none();
                match &mut run {
                    Some((_, blocks)) if free && *blocks < MOST_BLOCKS => *blocks += 1,
                    _ => {
                        self.discard_run(now, (place, id), run.take(), ports);
                        run = free.then_some((key, 1));
                    }
                }
            }
            self.discard_run(now, (place, id), run, ports);
        }
        self.end_trims(ports, Ok(()), |trim| trim.round.is_none() && trim.ios == 0);
    }

    fn discard_run(
        &mut self,
        now: Time,
        (place, id): (usize, u64),
        run: Option<(u64, u32)>,
        ports: &mut Ports,
    ) {
        let Some((key, blocks)) = run else { return };
        self.trims[place].ios += 1;
        let part = Part { within: 0, len_bytes: blocks * BLOCK };
        self.trim_io(now, (Phase::Trim, DeviceOp::Discard), (id, key), part, ports);
    }

    fn trim_io(
        &mut self,
        now: Time,
        (step, op): (Phase, DeviceOp),
        (id, key): (u64, u64),
        part: Part,
        ports: &mut Ports,
    ) {
        // No memory is in it: the trim's name.
        let index = self.ops.insert(BlockOp { buffer: BufferId(id), ..BlockOp::own(step, key) });
        let io = self.slow_io(self.owner(index), key, op, part, Data::None);
        ports.enqueue(now, io);
    }

    /// The slow device has discarded a run, or has made everything stable.
    pub(super) fn on_trim(&mut self, now: Time, op: BlockOp, result: Result<(), IoError>, ports: &mut Ports) {
        let Some(trim) = self.trims.iter_mut().find(|trim| trim.id == op.buffer.0) else { return };
        trim.ios -= 1;
        if trim.ios > 0 {
            return;
        }
        let id = trim.id;
        if op.step == Phase::TrimSync {
            return self.end_trims(ports, result, |trim| trim.id == id);
        }
        // What a discard that failed has done must be stable too. What it has not done is as it was, which is as good.
        trim.ios = 1;
        let nothing = Part { within: 0, len_bytes: 0 };
        self.trim_io(now, (Phase::TrimSync, DeviceOp::Flush), (id, op.key), nothing, ports);
    }

    /// Answers those that `are_over`.
    fn end_trims(
        &mut self,
        ports: &mut Ports,
        result: Result<(), IoError>,
        are_over: impl Fn(&Trim) -> bool,
    ) {
        self.trims.retain(|trim| {
            let over = are_over(trim);
            if over {
                ports.part_done(trim.request, result);
            }
            !over
        });
    }

    /// No commit is to be expected: the contents stay.
    pub(super) fn abandon_trims(&mut self, ports: &mut Ports) {
        self.end_trims(ports, Ok(()), |trim| trim.round.is_some());
    }

    /// Whether nothing is under way with a block, and its entry is stable.
    fn can_be_dropped(&self, block: u32) -> bool {
        matches!(self.table.state(block), State::Clean | State::Dirty)
            && self.table.has(block, ON_LOG)
            && !self.table.has(block, LOCKED | WRITING | PENDING)
            && self.table.generation(block) < self.commit.stable_generation
    }
}
