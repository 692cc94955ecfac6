//! One thread's round.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use virtbench_engine::{Buffers, Positioned, monotonic_ns};
use virtbench_units::Random;
use virtbench_workload::files::{
    Action, Drawer, FileChoice, FileModel, FileSpec, Io, MAX_FDS, Quit, ThreadFlow,
};

use super::files::FileTree;
use crate::files::board::{Board, Ended, Tally};
use crate::files::threads::{Pacer, Phase, sleep_until};

/// Bytes of a mebibyte, what a bandwidth limit counts in.
const MIB: f64 = 1_048_576.0;

/// A file that a thread has open.
struct Open {
    file: std::fs::File,
    set: usize,
    index: u32,
    /// Where the next read or write that goes on begins.
    next: u64,
}

/// A step, made ready.
struct FlowOp {
    action: Action,
    kind: usize,
    iters: u32,
    size: Option<Drawer>,
}

/// The result of a step.
enum Outcome {
    /// It moved so many bytes.
    Done(u64),
    /// There was nothing to do it with: all files exist, or none does, or nothing is open.
    Nothing,
    /// The thread has come to its end.
    Over,
}

/// A thread of a model.
pub(crate) struct Flow {
    steps: Vec<FlowOp>,
    trees: Vec<Arc<FileTree>>,
    limits: Arc<Limits>,
    board: Arc<Board>,
    pacer: Pacer,
    quit: Quit,
    random: Random,
    buffer_bytes: usize,
    seed: u64,
}

/// What changes while a thread goes round.
struct Hands {
    open: Vec<Option<Open>>,
    buffers: Buffers,
    operations: u64,
    bytes: u64,
    /// Operations and bytes when a limit last took events for them.
    limited_operations: u64,
    limited_bytes: u64,
}

impl Flow {
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn new(
        spec: &FileSpec,
        model: &FileModel,
        thread: &ThreadFlow,
        trees: &[Arc<FileTree>],
        limits: &Arc<Limits>,
        phase: &Phase,
        number: u32,
        threads: u32,
        seed: u64,
    ) -> Self {
        let kinds = kinds(model);
        let step = |flowop: &virtbench_workload::files::Flowop| FlowOp {
            kind: kinds.iter().position(|kind| *kind == flowop.action.name()).unwrap_or_default(),
            size: flowop.action.io_size().map(virtbench_workload::files::Draw::drawer),
            action: flowop.action.clone(),
            iters: flowop.iters,
        };
        // Drawn sizes have no limit; what exceeds the buffer is moved in several calls.
        let most =
            thread.flow.iter().filter_map(|flowop| flowop.action.io_size()).map(|size| size.mean() * 2.0);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let buffer_bytes = most.fold(4096.0, f64::max).min(1_048_576.0) as usize;
        Self {
            steps: thread.flow.iter().map(step).collect(),
            trees: trees.to_vec(),
            limits: Arc::clone(limits),
            board: Arc::clone(&phase.board),
            pacer: Pacer::new(spec.pace, seed, number, threads, phase.start_ns),
            quit: model.quit,
            random: Random::new(seed),
            buffer_bytes,
            seed,
        }
    }

    /// Goes round until the load is over, or the thread has come to its end.
    pub(crate) fn run(mut self) -> io::Result<()> {
        let board = Arc::clone(&self.board);
        let mut tally = board.tally();
        let mut hands = Hands {
            open: (0..MAX_FDS).map(|_| None).collect(),
            buffers: Buffers::new(1, self.buffer_bytes, self.seed)?,
            operations: 0,
            bytes: 0,
            limited_operations: 0,
            limited_bytes: 0,
        };
        let steps = std::mem::take(&mut self.steps);
        'rounds: loop {
            let before = hands.operations;
            for step in &steps {
                for _ in 0..step.iters {
                    if !self.step(step, &mut hands, &mut tally) {
                        break 'rounds;
                    }
                }
            }
            // A round in which nothing could be done would spin: all files exist, or none does.
            if hands.operations == before {
                break;
            }
        }
        for open in hands.open.into_iter().flatten() {
            self.trees[open.set].release(open.index);
        }
        if self.quit == Quit::FirstDone {
            board.finish();
        }
        Ok(())
    }

    /// Does one step; false when the thread is to end.
    fn step(&mut self, step: &FlowOp, hands: &mut Hands, tally: &mut Tally<'_>) -> bool {
        if !step.action.is_counted() {
            return self.wait(&step.action, hands);
        }
        let board = Arc::clone(&self.board);
        let Some(from_ns) = self.pacer.wait(&board) else { return false };
        match self.act(step, hands) {
            Ok(Outcome::Done(bytes)) => {
                let now_ns = monotonic_ns();
                hands.operations += 1;
                hands.bytes += bytes;
                tally.done(step.kind, now_ns, now_ns.saturating_sub(from_ns), bytes);
                true
            }
            Ok(Outcome::Nothing) => true,
            Ok(Outcome::Over) => false,
            Err(error) => {
                tally.failed(step.kind, &error);
                let path = self.trees.first().map(|tree| tree.path(0)).unwrap_or_default();
                if crate::files::board::is_full(&error) {
                    board.end(Ended::by(step.action.name(), path.parent().unwrap_or(&path), &error));
                }
                // What fails otherwise is counted, and the thread goes on.
                hands.operations += 1;
                true
            }
        }
    }

    /// Steps that only wait; false when the thread is to end.
    fn wait(&mut self, action: &Action, hands: &mut Hands) -> bool {
        let now_ns = monotonic_ns();
        if self.board.is_over(now_ns) {
            return false;
        }
        match action {
            Action::Delay { seconds } => {
                let delay_ns = seconds.drawer().next(&mut self.random).saturating_mul(1_000_000_000);
                sleep_until(&self.board, now_ns.saturating_add(delay_ns))
            }
            Action::EventLimit => self.limits.take(&self.board, 1.0, now_ns),
            Action::OpsLimit => {
                let events = hands.operations - hands.limited_operations;
                hands.limited_operations = hands.operations;
                self.limits.take(&self.board, events as f64, now_ns)
            }
            Action::BandwidthLimit => {
                let bytes = hands.bytes - hands.limited_bytes;
                hands.limited_bytes = hands.bytes;
                self.limits.take(&self.board, bytes as f64 / MIB, now_ns)
            }
            Action::FinishOnCount { count } => hands.operations < *count,
            Action::FinishOnBytes { bytes } => hands.bytes < *bytes,
            _ => true,
        }
    }

    fn act(&mut self, step: &FlowOp, hands: &mut Hands) -> io::Result<Outcome> {
        let io_bytes = step.size.as_ref().map_or(0, |size| size.next(&mut self.random));
        match &step.action {
            Action::CreateFile { set, fd } => self.create(usize::from(*set), *fd, hands),
            Action::OpenFile { set, fd } => self.open(usize::from(*set), *fd, false, hands),
            Action::CloseFile { fd } => {
                let Some(open) = hands.open[usize::from(*fd)].take() else { return Ok(Outcome::Nothing) };
                drop(open.file);
                self.trees[open.set].release(open.index);
                Ok(Outcome::Done(0))
            }
            Action::DeleteFile { set } => {
                let tree = &self.trees[usize::from(*set)];
                let Some(index) = tree.take_idle(&mut self.random) else { return Ok(Outcome::Nothing) };
                let deleted = std::fs::remove_file(tree.path(index));
                tree.absent_again(index);
                deleted.map(|()| Outcome::Done(0))
            }
            Action::StatFile { set } => {
                let tree = &self.trees[usize::from(*set)];
                let Some(index) = tree.hold_existing(&mut self.random) else { return Ok(Outcome::Nothing) };
                let found = std::fs::metadata(tree.path(index));
                tree.release(index);
                found.map(|_| Outcome::Done(0))
            }
            Action::ListDir { set } => {
                let folder = self.trees[usize::from(*set)].any_folder(&mut self.random);
                let mut bytes = 0;
                for entry in std::fs::read_dir(folder)? {
                    bytes += entry?.file_name().len() as u64;
                }
                Ok(Outcome::Done(bytes))
            }
            Action::Fsync { fd } => match &hands.open[usize::from(*fd)] {
                Some(open) => open.file.sync_all().map(|()| Outcome::Done(0)),
                None => Ok(Outcome::Nothing),
            },
            Action::ReadWholeFile { place, .. } => {
                self.with_open(*place, false, hands, |open, buffers| read_whole(open, buffers, io_bytes))
            }
            Action::WriteWholeFile { place, source, .. } => {
                let of_source = source.and_then(|fd| hands.open[usize::from(fd)].as_ref());
                let length = of_source.map(|open| self.trees[open.set].size(open.index));
                let trees = self.trees.clone();
                self.with_open(*place, false, hands, |open, buffers| {
                    let length = length.unwrap_or_else(|| trees[open.set].size(open.index));
                    write_range(open, buffers, 0, length, io_bytes)
                })
            }
            Action::AppendFile { place, random, .. } => {
                let mut bytes = io_bytes;
                if *random && bytes > 0 {
                    bytes = 1 + self.random.below(bytes);
                }
                self.with_open(*place, false, hands, |open, buffers| {
                    let end = open.file.metadata()?.len();
                    write_range(open, buffers, end, bytes, bytes)
                })
            }
            Action::Read { place, io } => self.part(*place, io, io_bytes, hands, read_range),
            Action::Write { place, io } => {
                let write = |open: &mut Open, buffers: &mut Buffers, offset, length| {
                    write_range(open, buffers, offset, length, length)
                };
                self.part(*place, io, io_bytes, hands, write)
            }
            _ => Ok(Outcome::Over),
        }
    }

    fn create(&mut self, set: usize, fd: u8, hands: &mut Hands) -> io::Result<Outcome> {
        self.close_if_open(fd, hands);
        let tree = &self.trees[set];
        let Some(index) = tree.take_absent(&mut self.random) else { return Ok(Outcome::Nothing) };
        match tree.open(index, true, false) {
            Ok(file) => {
                tree.created(index);
                hands.open[usize::from(fd)] = Some(Open { file, set, index, next: 0 });
                Ok(Outcome::Done(0))
            }
            Err(error) => {
                tree.absent_again(index);
                Err(error)
            }
        }
    }

    fn open(&mut self, set: usize, fd: u8, dsync: bool, hands: &mut Hands) -> io::Result<Outcome> {
        self.close_if_open(fd, hands);
        let tree = &self.trees[set];
        let Some(index) = tree.hold_existing(&mut self.random) else { return Ok(Outcome::Nothing) };
        match tree.open(index, false, dsync) {
            Ok(file) => {
                hands.open[usize::from(fd)] = Some(Open { file, set, index, next: 0 });
                Ok(Outcome::Done(0))
            }
            Err(error) => {
                tree.release(index);
                Err(error)
            }
        }
    }

    fn close_if_open(&self, fd: u8, hands: &mut Hands) {
        if let Some(open) = hands.open[usize::from(fd)].take() {
            self.trees[open.set].release(open.index);
        }
    }

    /// Does something with an open file, opened first where need be.
    fn with_open(
        &mut self,
        place: FileChoice,
        dsync: bool,
        hands: &mut Hands,
        act: impl FnOnce(&mut Open, &mut Buffers) -> io::Result<u64>,
    ) -> io::Result<Outcome> {
        let fd = usize::from(place.fd);
        if let (None, Some(set)) = (&hands.open[fd], place.set) {
            self.open(usize::from(set), place.fd, dsync, hands)?;
        }
        match &mut hands.open[fd] {
            Some(open) => act(open, &mut hands.buffers).map(Outcome::Done),
            None => Ok(Outcome::Nothing),
        }
    }

    /// A read or write of a part: at random, or going on and round.
    fn part(
        &mut self,
        place: FileChoice,
        io: &Io,
        length: u64,
        hands: &mut Hands,
        act: impl FnOnce(&mut Open, &mut Buffers, u64, u64) -> io::Result<u64>,
    ) -> io::Result<Outcome> {
        let mut random = Random::new(self.random.next_u64());
        self.with_open(place, io.dsync, hands, |open, buffers| {
            let size = open.file.metadata()?.len();
            let used = if io.working_set == 0 { size } else { size.min(io.working_set) };
            let length = length.max(1).min(used.max(1));
            let places = (used / length).max(1);
            let offset = if io.random {
                random.below(places) * length
            } else {
                let offset = if open.next + length > used { 0 } else { open.next };
                open.next = offset + length;
                offset
            };
            act(open, buffers, offset, length)
        })
    }
}

fn read_whole(open: &mut Open, buffers: &mut Buffers, io_bytes: u64) -> io::Result<u64> {
    let slot = buffers.slot(0);
    let step = if io_bytes == 0 { slot.len() } else { chunk(io_bytes, slot.len()) };
    let mut offset = 0;
    loop {
        match open.file.read_at(&mut slot[..step], offset)? {
            0 => return Ok(offset),
            count => offset += count as u64,
        }
    }
}

fn read_range(open: &mut Open, buffers: &mut Buffers, offset: u64, length: u64) -> io::Result<u64> {
    let slot = buffers.slot(0);
    let mut done = 0;
    while done < length {
        let step = chunk(length - done, slot.len());
        match open.file.read_at(&mut slot[..step], offset + done)? {
            0 => break,
            count => done += count as u64,
        }
    }
    Ok(done)
}

fn write_range(
    open: &mut Open,
    buffers: &mut Buffers,
    offset: u64,
    length: u64,
    io_bytes: u64,
) -> io::Result<u64> {
    let whole = buffers.slot(0).len();
    let mut done = 0;
    while done < length {
        let step = chunk(if io_bytes == 0 { length - done } else { io_bytes.min(length - done) }, whole);
        buffers.renew(0, step);
        open.file.write_all_at(&buffers.slot(0)[..step], offset + done)?;
        done += step as u64;
    }
    Ok(done)
}

#[allow(clippy::cast_possible_truncation)]
fn chunk(bytes: u64, most: usize) -> usize {
    bytes.min(most as u64) as usize
}

/// The kinds of operations that a model counts, each once.
pub(crate) fn kinds(model: &FileModel) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    let steps = model.processes.iter().flat_map(|process| &process.threads).flat_map(|thread| &thread.flow);
    for action in steps.map(|step| &step.action).filter(|action| action.is_counted()) {
        if !kinds.contains(&action.name()) {
            kinds.push(action.name());
        }
    }
    kinds
}

/// How long unused events are kept, in nanoseconds.
const KEPT_NS: f64 = 100_000_000.0;

/// Events at a fixed rate, shared by all threads.
#[derive(Debug)]
pub(crate) struct Limits {
    /// Nanoseconds between two events; nothing where nothing is limited.
    gap_ns: Option<f64>,
    /// When the next event comes.
    next_ns: AtomicU64,
}

impl Limits {
    /// So many events a second, from a moment of the clock on.
    pub(crate) fn new(per_second: Option<f64>, start_ns: u64) -> Self {
        Self { gap_ns: per_second.map(|rate| 1e9 / rate), next_ns: AtomicU64::new(start_ns) }
    }

    /// Takes so many events and waits for the last of them; false if the load is over before.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub(crate) fn take(&self, board: &Board, events: f64, now_ns: u64) -> bool {
        let Some(gap_ns) = self.gap_ns else { return true };
        let length_ns = (gap_ns * events) as u64;
        let earliest_ns = now_ns.saturating_sub(KEPT_NS as u64);
        let after = |next: u64| Some(next.max(earliest_ns) + length_ns);
        let before = self
            .next_ns
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, after)
            .unwrap_or_else(|next| next);
        sleep_until(board, before.max(earliest_ns) + length_ns)
    }
}
