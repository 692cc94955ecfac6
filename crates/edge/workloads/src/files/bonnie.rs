//! Bonnie++'s tests.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use virtbench_engine::{Buffers, Positioned, monotonic_ns, thread_cpu_ns};
use virtbench_units::Random;
use virtbench_workload::files::{BonnieSpec, CharacterIo};

use crate::files::board::{Ended, Part};
use crate::files::calls::sync_files;
use crate::files::model::shuffle;
use crate::files::threads::Outside;
use crate::files::trials::{Trial, Trials};

/// The buffer that characters go through, as large as the C library's.
const CHARACTER_BUFFER: usize = 4096;
/// Single characters between two looks at whether the test is stopped.
const LOOK_BYTES: u64 = 4096;

/// Makes the tests in Bonnie++'s order.
pub(crate) fn perform(spec: &BonnieSpec, trials: &mut Trials<'_>) -> Result<(), Ended> {
    let path = trials.path("bonnie");
    let blocks = spec.file_bytes / spec.block_bytes;
    let mut buffers = trials.buffers(spec.block_bytes)?;
    let characters = spec.characters.filter(|_| !trials.direct());
    let reopen = |trials: &Trials<'_>, new| {
        trials.open(&path, new).map_err(|error| Ended::by("opening", &path, &error))
    };
    if let Some(kind) = characters {
        let file = reopen(trials, true)?;
        trials.test("write-character", &path, |trial| {
            write_characters(kind, file, spec, &mut buffers, trial)
        })?;
    }
    let file = reopen(trials, true)?;
    trials.test("write-block", &path, |trial| {
        write_blocks(&file, blocks, spec.block_bytes, &mut buffers, trial)
    })?;
    trials.test("rewrite-block", &path, |trial| {
        rewrite_blocks(&file, blocks, spec.block_bytes, &mut buffers, trial)
    })?;
    if let Some(kind) = characters {
        let file = reopen(trials, false)?;
        trials.test("read-character", &path, |trial| read_characters(kind, file, spec.file_bytes, trial))?;
    }
    trials.test("read-block", &path, |trial| {
        read_blocks(&file, blocks, spec.block_bytes, &mut buffers, trial)
    })?;
    if spec.seeks > 0 {
        let files = (0..spec.seekers).map(|_| reopen(trials, false)).collect::<Result<Vec<File>, Ended>>()?;
        let seed = trials.random.next_u64();
        trials.test("seeks", &path, |trial| seek(spec, files, blocks, seed, trial))?;
    }
    drop(file);
    fs::remove_file(&path).map_err(|error| Ended::by("deleting", &path, &error))?;
    if spec.small_files == 0 {
        return Ok(());
    }
    small_files(spec, trials, "sequential", false)?;
    small_files(spec, trials, "random", true)
}

fn write_characters(
    kind: CharacterIo,
    file: File,
    spec: &BonnieSpec,
    buffers: &mut Buffers,
    trial: &mut Trial<'_>,
) -> io::Result<()> {
    buffers.renew(0, buffers_len(spec));
    let text: Vec<u8> = buffers.slot(0)[..buffers_len(spec)].to_vec();
    let mut characters = text.iter().cycle();
    let mut write = |writer: &mut dyn FnMut(u8) -> io::Result<()>| -> io::Result<()> {
        let mut left = spec.file_bytes;
        while left > 0 {
            trial.check()?;
            let count = left.min(LOOK_BYTES);
            for _ in 0..count {
                writer(*characters.next().unwrap_or(&0))?;
            }
            trial.count(count, count);
            left -= count;
        }
        Ok(())
    };
    match kind {
        CharacterIo::Buffered => {
            let mut writer = BufWriter::with_capacity(CHARACTER_BUFFER, &file);
            write(&mut |byte| writer.write_all(&[byte]))?;
            writer.flush()?;
        }
        CharacterIo::Syscall => write(&mut |byte| (&file).write_all(&[byte]))?,
    }
    file.sync_all()
}

fn read_characters(kind: CharacterIo, file: File, bytes: u64, trial: &mut Trial<'_>) -> io::Result<()> {
    let mut reader: Box<dyn Read> = match kind {
        CharacterIo::Buffered => Box::new(BufReader::with_capacity(CHARACTER_BUFFER, file)),
        CharacterIo::Syscall => Box::new(file),
    };
    let mut left = bytes;
    let mut sum = 0u64;
    while left > 0 {
        trial.check()?;
        let count = left.min(LOOK_BYTES);
        let mut byte = [0];
        for _ in 0..count {
            reader.read_exact(&mut byte)?;
            sum = sum.wrapping_add(byte[0].into());
        }
        trial.count(count, count);
        left -= count;
    }
    // Nobody may conclude that what was read is not needed.
    std::hint::black_box(sum);
    Ok(())
}

#[allow(clippy::cast_possible_truncation)]
fn buffers_len(spec: &BonnieSpec) -> usize {
    spec.block_bytes as usize
}

/// Writes the file from its start to its end, and to the disk.
#[allow(clippy::cast_possible_truncation)]
pub(crate) fn write_blocks(
    file: &File,
    blocks: u64,
    block_bytes: u64,
    buffers: &mut Buffers,
    trial: &mut Trial<'_>,
) -> io::Result<()> {
    let len = block_bytes as usize;
    for block in 0..blocks {
        trial.make(|| buffers.renew(0, len));
        let data = &buffers.slot(0)[..len];
        trial.operate(block_bytes, || file.write_all_at(data, block * block_bytes))?;
    }
    file.sync_all()
}

#[allow(clippy::cast_possible_truncation)]
fn rewrite_blocks(
    file: &File,
    blocks: u64,
    block_bytes: u64,
    buffers: &mut Buffers,
    trial: &mut Trial<'_>,
) -> io::Result<()> {
    let len = block_bytes as usize;
    for block in 0..blocks {
        let data = &mut buffers.slot(0)[..len];
        let offset = block * block_bytes;
        trial.operate(block_bytes, || {
            file.read_exact_at(data, offset)?;
            data[0] = data[0].wrapping_add(1);
            file.write_all_at(data, offset)
        })?;
    }
    file.sync_all()
}

#[allow(clippy::cast_possible_truncation)]
fn read_blocks(
    file: &File,
    blocks: u64,
    block_bytes: u64,
    buffers: &mut Buffers,
    trial: &mut Trial<'_>,
) -> io::Result<()> {
    let data = &mut buffers.slot(0)[..block_bytes as usize];
    for block in 0..blocks {
        trial.operate(block_bytes, || file.read_exact_at(data, block * block_bytes))?;
    }
    Ok(())
}

/// Seekers take seeks from one pile until it is empty.
fn seek(
    spec: &BonnieSpec,
    files: Vec<File>,
    blocks: u64,
    seed: u64,
    trial: &mut Trial<'_>,
) -> io::Result<()> {
    let pile = AtomicU32::new(spec.seeks);
    let outside = trial.outside();
    let results: Vec<io::Result<Part>> = thread::scope(|scope| {
        let start = |(file, number): (File, u64)| {
            let pile = &pile;
            scope.spawn(move || seeker(spec, &file, blocks, seed ^ number, pile, outside))
        };
        let seekers: Vec<_> = files.into_iter().zip(1u64..).map(start).collect();
        let panicked = || io::Error::other("a seeker panicked; this is a defect of virtbench");
        seekers.into_iter().map(|seeker| seeker.join().unwrap_or_else(|_| Err(panicked()))).collect()
    });
    for result in results {
        trial.merge(&result?);
    }
    trial.check()
}

#[allow(clippy::cast_possible_truncation)]
fn seeker(
    spec: &BonnieSpec,
    file: &File,
    blocks: u64,
    seed: u64,
    pile: &AtomicU32,
    outside: &Outside<'_>,
) -> io::Result<Part> {
    let mut random = Random::new(seed);
    let len = spec.block_bytes as usize;
    let mut buffers = Buffers::new(1, len, seed)?;
    let (mut part, begin_cpu) = (Part::new("seeks"), thread_cpu_ns());
    let take = |left: u32| left.checked_sub(1);
    while !(outside.is_over)() && pile.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
        let offset = random.below(blocks) * spec.block_bytes;
        let data = &mut buffers.slot(0)[..len];
        let begin_ns = monotonic_ns();
        file.read_exact_at(data, offset)?;
        if random.below(100) < spec.seek_write_percent.into() {
            data[0] = data[0].wrapping_add(1);
            file.write_all_at(data, offset)?;
        }
        part.latency.record(monotonic_ns() - begin_ns);
        part.operations += 1;
        part.bytes += spec.block_bytes;
    }
    // A seeker of Bonnie++'s closes its file before it looks at the clock, and each close is a sync.
    file.sync_all()?;
    let end_cpu = thread_cpu_ns();
    part.cpu_ns = Some([end_cpu[0] - begin_cpu[0], end_cpu[1] - begin_cpu[1]]);
    Ok(part)
}

/// Creates, looks up and deletes small files: in the order of their names, or in none. What was created or deleted counts once the disk has
/// it: Bonnie++ ends these tests with a `sync`.
fn small_files(spec: &BonnieSpec, trials: &mut Trials<'_>, order: &str, random: bool) -> Result<(), Ended> {
    let folder = trials.path(order);
    fs::create_dir(&folder).map_err(|error| Ended::by("making", &folder, &error))?;
    let scatter = trials.random.next_u64();
    // A random order of names is one in which their beginning says nothing of their number.
    let path = |number: u32| -> PathBuf {
        let begin = u64::from(number).wrapping_add(scatter).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        folder.join(if random { format!("{begin:08x}{number:08}") } else { format!("{number:08}") })
    };
    let mut numbers: Vec<u32> = (0..spec.small_files).collect();
    let mut buffers = trials.buffers(spec.small_file_bytes.max(1))?;
    trials.test(&format!("create-{order}"), &folder, |trial| {
        for &number in &numbers {
            trial.operate(spec.small_file_bytes, || {
                create(&path(number), spec.small_file_bytes, &mut buffers)
            })?;
        }
        sync_files(&folder)
    })?;
    if random {
        shuffle(&mut numbers, &mut trials.random);
    }
    trials.test(&format!("stat-{order}"), &folder, |trial| {
        numbers.iter().try_for_each(|&number| trial.operate(0, || fs::metadata(path(number)).map(|_| ())))
    })?;
    if random {
        shuffle(&mut numbers, &mut trials.random);
    }
    trials.test(&format!("delete-{order}"), &folder, |trial| {
        numbers.iter().try_for_each(|&number| trial.operate(0, || fs::remove_file(path(number))))?;
        sync_files(&folder)
    })
}

#[allow(clippy::cast_possible_truncation)]
fn create(path: &Path, bytes: u64, buffers: &mut Buffers) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    if bytes > 0 {
        buffers.renew(0, bytes as usize);
        file.write_all(&buffers.slot(0)[..bytes as usize])?;
    }
    Ok(())
}
