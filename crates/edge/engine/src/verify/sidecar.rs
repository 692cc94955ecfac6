//! The ledger beside the target, for `--verify-only`.
//!
//! A header page, little-endian: magic (8), format (4), state (4), seed (8), bytes of a block (8), of
//! the region (8), whether the load trims (4), CRC-32C of the rest of the file (4), identity of the
//! machine's boot (36), CRC-32C of what is above (4); at its end, the numbers of flushes. Then the
//! words of the blocks (`ledger.rs`).
//!
//! It is mapped while the load runs, so that a load that is killed leaves it as exact as it was: each
//! block's newest version, and the newest that was flushed. What was in flight may be there or not.
//! Only a machine that goes down takes it away, for nothing makes the words durable until the load
//! ends; the boot's identity tells. A load that ends flushes the target, and the ledger after it.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;
use virtbench_workload::LoadSpec;

use super::ledger::{HEADER_BYTES, Ledger, Memory, block_count, bytes_of, common_block_bytes};
use crate::system::{Lock, Positioned, boot_identity, lock as lock_file, sync_folder as sync, take_room};

const MAGIC: &[u8; 8] = b"vbledger";
const FORMAT: u32 = 1;
const RUNNING: u32 = 1;
const FINISHED: u32 = 2;
/// Bytes of the header that its checksum covers.
const COVERED_BYTES: usize = 84;
const BOOT: std::ops::Range<usize> = 48..84;
/// Bytes read at once for the checksum.
const CHUNK_BYTES: usize = 1 << 20;

/// Why a ledger cannot be used.
#[derive(Debug, Error)]
pub enum LedgerError {
    /// The system refuses.
    #[error("ledger {path}: cannot {action}: {source}; name another with --ledger", path = path.display())]
    Io {
        /// The ledger.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The file is something else.
    #[error("{path} is no ledger of virtbench: name another with --ledger", path = .0.display())]
    NotOne(PathBuf),
    /// A load is writing it.
    #[error("ledger {path} is in use by another load: wait for it", path = .0.display())]
    Busy(PathBuf),
    /// Its bytes are not those that were written.
    #[error("ledger {path} is damaged ({why}): nothing can be concluded from it; remove it to have blocks \
        judged by themselves", path = path.display())]
    Damaged {
        /// The ledger.
        path: PathBuf,
        /// In what way.
        why: &'static str,
    },
    /// It is of another load.
    #[error("ledger {path} is of another load ({theirs}), this one has {ours}: give the same --seed, --bs, \
        --align, --mix and --size, or remove it to have blocks judged by themselves", path = path.display())]
    Other {
        /// The ledger.
        path: PathBuf,
        /// What it is of.
        theirs: String,
        /// What was asked for.
        ours: String,
    },
    /// The machine went down before the load had ended.
    #[error("ledger {path}: the machine was restarted before its load had ended, so what it says is not known \
        to be complete; remove it to have blocks judged by themselves", path = .0.display())]
    Restarted(PathBuf),
}

/// Where the ledger of a load is kept, and the lock on it.
#[derive(Debug)]
pub(crate) struct Sidecar {
    path: PathBuf,
    file: File,
}

/// A header's fields.
#[derive(Debug, PartialEq, Eq)]
struct Header {
    state: u32,
    seed: u64,
    block_bytes: u64,
    region_bytes: u64,
    trims: bool,
    body_checksum: u32,
}

impl Header {
    fn for_load(spec: &LoadSpec, state: u32, body_checksum: u32) -> Self {
        let trims = spec.access.lines.iter().any(|line| line.trim_percent > 0.0);
        let (seed, block_bytes, region_bytes) = (spec.seed, common_block_bytes(spec), spec.region_bytes);
        Self { state, seed, block_bytes, region_bytes, trims, body_checksum }
    }

    fn encode(&self) -> io::Result<Vec<u8>> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(FORMAT.to_le_bytes());
        bytes.extend(self.state.to_le_bytes());
        [self.seed, self.block_bytes, self.region_bytes]
            .iter()
            .for_each(|word| bytes.extend(word.to_le_bytes()));
        bytes.extend(u32::from(self.trims).to_le_bytes());
        bytes.extend(self.body_checksum.to_le_bytes());
        bytes.extend(boot_identity()?);
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        Ok(bytes)
    }

    /// The header in these bytes, and whether the machine has been up since it was written.
    fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<(Self, bool), &'static str> {
        let mut word = [0; 4];
        let mut short = |at: usize| {
            word.copy_from_slice(&bytes[at..at + 4]);
            u32::from_le_bytes(word)
        };
        let [format, state, trims, body_checksum, checksum] = [8, 12, 40, 44, COVERED_BYTES].map(&mut short);
        let [seed, block_bytes, region_bytes] =
            [16, 24, 32].map(|at| u64::from(short(at)) | u64::from(short(at + 4)) << 32);
        if crc32c::crc32c(&bytes[..COVERED_BYTES]) != checksum {
            return Err("its header does not match its checksum");
        }
        if format != FORMAT || ![RUNNING, FINISHED].contains(&state) {
            return Err("it is of a format that this version does not know");
        }
        let same_boot = boot_identity().is_ok_and(|now| bytes[BOOT] == now);
        Ok((Self { state, seed, block_bytes, region_bytes, trims: trims != 0, body_checksum }, same_boot))
    }

    /// What it is of, for a message.
    fn words(&self) -> String {
        let Self { seed, block_bytes, region_bytes, .. } = self;
        format!("seed {seed}, blocks of {block_bytes} bytes over {region_bytes} bytes")
    }
}

/// Begins the ledger of a load at `path`, in place of that of an earlier load.
///
/// # Errors
/// The file is something else or in use, or there is no room for it.
pub(crate) fn begin(path: &Path, spec: &LoadSpec, blocks: usize) -> Result<(Ledger, Sidecar), LedgerError> {
    let failed = |action| move |source| LedgerError::Io { path: path.to_owned(), action, source };
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(failed("open it"))?;
    lock(&file, path, Lock::Exclusive)?;
    let mut magic = [0; 8];
    let len = file.metadata().map_err(failed("look it up"))?.len();
    if len > 0 && (file.read_exact_at(&mut magic, 0).is_err() || magic != *MAGIC) {
        return Err(LedgerError::NotOne(path.to_owned()));
    }
    file.set_len(0).map_err(failed("empty it"))?;
    // Room is taken now: a store into a mapped hole of a full file system would kill the load.
    take_room(&file, bytes_of(blocks) as u64).map_err(failed("take room for it"))?;
    let header =
        Header::for_load(spec, RUNNING, 0).encode().map_err(failed("find out about this boot for it"))?;
    file.write_all_at(&header, 0).map_err(failed("write it"))?;
    file.sync_all().map_err(failed("make it durable"))?;
    sync_folder(path).map_err(failed("make its folder durable"))?;
    let memory = Memory::mapped(&file, blocks).map_err(failed("map it"))?;
    Ok((Ledger::with_memory(spec, memory), Sidecar { path: path.to_owned(), file }))
}

impl Sidecar {
    /// Makes the ledger durable: the load is over.
    pub(crate) fn finish(&self, ledger: &Ledger, spec: &LoadSpec) -> Result<(), LedgerError> {
        let failed = |action| move |source| LedgerError::Io { path: self.path.clone(), action, source };
        ledger.memory().sync().map_err(failed("write it"))?;
        let body_checksum = body_checksum(&self.file).map_err(failed("read it"))?;
        let header = Header::for_load(spec, FINISHED, body_checksum).encode().map_err(failed("write it"))?;
        self.file.write_all_at(&header, 0).map_err(failed("write it"))?;
        self.file.sync_all().map_err(failed("make it durable"))
    }
}

/// A ledger that an earlier load left, and a note if that load was killed; `None` where there is none.
///
/// # Errors
/// It is damaged, of another load, in use, or not a ledger.
pub(crate) fn load(path: &Path, spec: &LoadSpec) -> Result<Option<(Ledger, Option<String>)>, LedgerError> {
    let failed = |action| move |source| LedgerError::Io { path: path.to_owned(), action, source };
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed("open it"))?,
    };
    lock(&file, path, Lock::Shared)?;
    let damaged = |why| LedgerError::Damaged { path: path.to_owned(), why };
    let mut bytes = [0; HEADER_BYTES];
    let len = file.metadata().map_err(failed("look it up"))?.len();
    if len < HEADER_BYTES as u64 || file.read_exact_at(&mut bytes, 0).is_err() || !bytes.starts_with(MAGIC) {
        return Err(LedgerError::NotOne(path.to_owned()));
    }
    let (theirs, same_boot) = Header::decode(&bytes).map_err(damaged)?;
    let ours = Header { trims: theirs.trims, ..Header::for_load(spec, theirs.state, theirs.body_checksum) };
    if theirs != ours {
        return Err(LedgerError::Other { path: path.to_owned(), theirs: theirs.words(), ours: ours.words() });
    }
    let blocks = block_count(spec).map_err(|_| damaged("it is too large"))?;
    if len != bytes_of(blocks) as u64 {
        return Err(damaged("it has another length than its header says"));
    }
    let note = match theirs.state {
        FINISHED if body_checksum(&file).map_err(failed("read it"))? == theirs.body_checksum => None,
        FINISHED => return Err(damaged("it does not match its checksum")),
        _ if !same_boot => return Err(LedgerError::Restarted(path.to_owned())),
        _ => Some(
            "the load that wrote the ledger was killed: what it had flushed must be there, what it sent later may be"
                .to_owned(),
        ),
    };
    let memory = Memory::copied(&file, blocks).map_err(failed("map it"))?;
    Ok(Some((Ledger::with_memory(spec, memory).of_trims(theirs.trims), note)))
}

fn lock(file: &File, path: &Path, kind: Lock) -> Result<(), LedgerError> {
    lock_file(file, kind).map_err(|_| LedgerError::Busy(path.to_owned()))
}

fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    sync(folder)
}

/// The checksum of everything that changes while a load runs.
fn body_checksum(file: &File) -> io::Result<u32> {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut at = HEADER_BYTES as u64 - 8;
    let mut checksum = 0;
    loop {
        match file.read_at(&mut chunk, at) {
            Ok(0) => return Ok(checksum),
            Ok(count) => {
                checksum = crc32c::crc32c_append(checksum, &chunk[..count]);
                at += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
