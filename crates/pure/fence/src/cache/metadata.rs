//! The cache's metadata on the fast device: where it lies and what its bytes mean.
//!
//! Two superblocks, then for each partition a ring of log blocks and its data blocks. A log block is 128 entries of 32
//! bytes, 16 a sector, none across two; the first is the block's header. An entry is never rewritten in place: a later
//! one with a higher generation takes its place.
//!
//! Log block p of the ring repeats the live entries of data blocks 63 c to 63 c + 62, where c is p modulo the number of
//! such chunks. The ring has two blocks a chunk, so that what a log block says has been repeated, and the repetition is
//! stable, before it is overwritten, even if a commit names every data block. Nothing in memory remembers where in the
//! log a block's entry is.
//!
//! A single bit of the log that has flipped is flipped back: every entry has a sum of its own, the block one of another
//! polynomial, and both must be right afterwards, so that nothing but what was written can come out.

use crate::config::DiskConfig;

/// Disks a superblock has room for.
pub(super) const MOST_DISKS: usize = 128;

/// Bytes of an entry; 512 is a multiple.
pub(super) const ENTRY_BYTES: usize = 32;

/// New entries of a log block at most. As many places are for entries that repeat what older log blocks say, so that
/// those may be overwritten; one is the header's.
pub(super) const NEW_PER_LOG_BLOCK: u32 = 63;

/// Commits and generations are numbered below: a number that is not was never written by a cache.
const NUMBERS: u64 = 1 << 63;

const MAGIC: &[u8; 8] = b"vbfence2";

/// Of versions that summed the log otherwise: they must not take a cache of this one for theirs.
const EARLIER_MAGIC: &[u8; 8] = b"vbfence1";

const SUPERBLOCK_BYTES: usize = 4096;

/// Where things lie on the fast device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Of each partition.
    pub partitions: Vec<PartitionLayout>,
    /// The first byte behind the cache.
    pub end_bytes: u64,
}

/// One partition's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionLayout {
    /// First byte of the log.
    pub log_offset_bytes: u64,
    /// Blocks of the log.
    pub log_blocks: u32,
    /// First byte of the data.
    pub data_offset_bytes: u64,
    /// Blocks of data.
    pub blocks: u32,
}

impl Layout {
    /// Partitions of so many data blocks.
    #[must_use]
    pub fn new(blocks: &[u32]) -> Self {
        let mut at = 2 * SUPERBLOCK_BYTES as u64;
        let mut partitions = Vec::new();
        for &blocks in blocks {
            let log_blocks = 2 * chunks(blocks);
            let data_offset_bytes = at + u64::from(log_blocks) * 4096;
            partitions.push(PartitionLayout { log_offset_bytes: at, log_blocks, data_offset_bytes, blocks });
            at = data_offset_bytes + u64::from(blocks) * 4096;
        }
        Self { partitions, end_bytes: at }
    }
}

/// Chunks that so many data blocks are repeated in.
pub(super) const fn chunks(blocks: u32) -> u32 {
    blocks.div_ceil(NEW_PER_LOG_BLOCK)
}

/// The first entry of a log block: which commit it belongs to, and whether it is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogHeader {
    /// Number of the commit.
    pub(super) commit: u64,
    /// Number of the last commit before it that was written whole; those between were cut off.
    pub(super) after: u64,
    /// Which of the commit's blocks, of how many.
    pub(super) index: u32,
    pub(super) count: u32,
}

impl LogHeader {
    /// Writes itself into the beginning of a block whose entries are in place.
    pub(super) fn seal(&self, identity: Identity, block: &mut [u8]) {
        let body_crc = body_sum(&block[ENTRY_BYTES..]);
        block[0..8].copy_from_slice(&self.commit.to_le_bytes());
        block[8..12].copy_from_slice(&self.index.to_le_bytes());
        block[12..16].copy_from_slice(&self.count.to_le_bytes());
        block[16..20].copy_from_slice(&body_crc.to_le_bytes());
        block[20..28].copy_from_slice(&self.after.to_le_bytes());
        let crc = identity.sum(&block[..28]);
        block[28..32].copy_from_slice(&crc.to_le_bytes());
    }

    /// Whether the entries behind a header are those that it was written for. Caches before 2026-11-22 took a CRC-32C for
    /// their sum.
    pub(super) fn is_whole(block: &[u8]) -> bool {
        let (body, sum) = (&block[ENTRY_BYTES..], u32_at(block, 16));
        body_sum(body) == sum || crc32c::crc32c(body) == sum
    }

    /// The same whatever has become of the entries behind it.
    pub(super) fn peek(identity: Identity, block: &[u8]) -> Option<Self> {
        let whole = identity.sum(&block[..28]) == u32_at(block, 28);
        let (commit, after) = (u64_at(block, 0), u64_at(block, 20));
        let (index, count) = (u32_at(block, 8), u32_at(block, 12));
        (whole && commit < NUMBERS && after < commit).then_some(Self { commit, after, index, count })
    }
}

/// Sum of a log block's entries. It is of another polynomial (CRC-32) than the entries' own sums (CRC-32C): a CRC of bytes
/// that end with their own CRC does not depend on them, so that a block of which a part is older would have the same sum.
fn body_sum(entries: &[u8]) -> u32 {
    crc32fast::hash(entries)
}

/// What an entry says of its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Clean,
    Dirty,
    /// Nothing in it any more.
    Tombstone,
}

/// What the log says of one data block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) generation: u64,
    pub(super) key: u64,
    pub(super) block: u32,
    pub(super) data_crc: u32,
    pub(super) kind: Kind,
}

impl Entry {
    pub(super) fn encode(&self, identity: Identity, bytes: &mut [u8; ENTRY_BYTES]) {
        bytes[0..8].copy_from_slice(&self.generation.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.key.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.block.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.data_crc.to_le_bytes());
        let kind = match self.kind {
            Kind::Clean => 1u32,
            Kind::Dirty => 2,
            Kind::Tombstone => 3,
        };
        bytes[24..28].copy_from_slice(&kind.to_le_bytes());
        let crc = identity.sum(&bytes[..28]);
        bytes[28..32].copy_from_slice(&crc.to_le_bytes());
    }

    /// `None` for whatever this cache did not write whole.
    pub(super) fn decode(identity: Identity, bytes: &[u8; ENTRY_BYTES]) -> Option<Self> {
        let kind = match u32_at(bytes, 24) {
            1 => Kind::Clean,
            2 => Kind::Dirty,
            3 => Kind::Tombstone,
            _ => return None,
        };
        if identity.sum(&bytes[..28]) != u32_at(bytes, 28) {
            return None;
        }
        let (generation, key) = (u64_at(bytes, 0), u64_at(bytes, 8));
        (generation < NUMBERS).then_some(Self {
            generation,
            key,
            block: u32_at(bytes, 16),
            data_crc: u32_at(bytes, 20),
            kind,
        })
    }
}

/// The cache's identity goes into the sum of every entry, so that those of an earlier cache on the same device are void.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity(u32);

impl Identity {
    /// The cache's.
    pub(super) fn new(uuid: &[u8; 16]) -> Self {
        Self(crc32c::crc32c(uuid))
    }

    fn sum(self, bytes: &[u8]) -> u32 {
        crc32c::crc32c_append(self.0, bytes)
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// Which cache this is and whose. Two copies, each 4 KiB; the valid one with the higher sequence counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Superblock {
    pub(super) sequence: u64,
    pub(super) uuid: [u8; 16],
    /// Identity and size of each disk, in the order of their ids.
    pub(super) disks: Vec<([u8; 16], u64)>,
    /// Data blocks of each partition.
    pub(super) partitions: Vec<u32>,
    /// The log of each partition has a whole commit: a cache that is started the first time writes one.
    pub(super) begun: bool,
}

impl Superblock {
    pub(super) fn new(sequence: u64, uuid: [u8; 16], disks: &[DiskConfig], partitions: &[u32]) -> Self {
        let disks = disks.iter().map(|disk| (disk.uuid, disk.size_bytes)).collect();
        Self { sequence, uuid, disks, partitions: partitions.to_vec(), begun: false }
    }

    /// The copy it belongs to.
    pub(super) const fn offset_bytes(&self) -> u64 {
        self.sequence % 2 * SUPERBLOCK_BYTES as u64
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(SUPERBLOCK_BYTES);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&self.sequence.to_le_bytes());
        bytes.extend_from_slice(&self.uuid);
        bytes.extend_from_slice(&(self.disks.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&(self.partitions.len() as u64).to_le_bytes());
        for (uuid, size_bytes) in &self.disks {
            bytes.extend_from_slice(uuid);
            bytes.extend_from_slice(&size_bytes.to_le_bytes());
        }
        for blocks in &self.partitions {
            bytes.extend_from_slice(&blocks.to_le_bytes());
        }
        bytes.extend_from_slice(&u32::from(self.begun).to_le_bytes());
        bytes.resize(SUPERBLOCK_BYTES - 4, 0);
        let crc = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// `None` for a copy that was never written, or not whole.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let body = bytes.get(..SUPERBLOCK_BYTES - 4)?;
        if bytes.len() < SUPERBLOCK_BYTES
            || ![MAGIC, EARLIER_MAGIC].iter().any(|magic| body.starts_with(*magic))
        {
            return None;
        }
        if crc32c::crc32c(body) != u32_at(bytes, SUPERBLOCK_BYTES - 4) {
            return None;
        }
        let count = |at| usize::try_from(u64_at(body, at)).ok().filter(|&count| count <= MOST_DISKS);
        let (disk_count, partition_count) = (count(32)?, count(40)?);
        let mut uuid = [0; 16];
        uuid.copy_from_slice(&body[16..32]);
        let disk = |index: usize| {
            let at = 48 + index * 24;
            let mut uuid = [0; 16];
            uuid.copy_from_slice(&body[at..at + 16]);
            (uuid, u64_at(body, at + 16))
        };
        let partitions_at = 48 + disk_count * 24;
        Some(Self {
            sequence: u64_at(body, 8),
            uuid,
            disks: (0..disk_count).map(disk).collect(),
            partitions: (0..partition_count).map(|index| u32_at(body, partitions_at + index * 4)).collect(),
            begun: u32_at(body, partitions_at + partition_count * 4) == 1,
        })
    }
}

/// Whether a superblock is of a version that sums the log otherwise.
pub(super) fn is_of_earlier_version(bytes: &[u8]) -> bool {
    bytes.starts_with(EARLIER_MAGIC) && Superblock::decode(bytes).is_some()
}

const LOG_BLOCK_BYTES: usize = 4096;

/// Blocks without a header that are tried at most. A log of an earlier cache has many, and a flip spoils one.
const MOST_WITHOUT_HEADER: usize = 8;

/// Blocks of a log as they were before a bit of each flipped, by their place.
pub(super) fn repaired(
    identity: Identity,
    log: &[u8],
    headers: &[Option<LogHeader>],
) -> Vec<(usize, Vec<u8>)> {
    let is_spoilt = |(place, header): (usize, &Option<LogHeader>)| {
        let block = log.get(place * LOG_BLOCK_BYTES..(place + 1) * LOG_BLOCK_BYTES)?;
        (header.is_none() && block.iter().any(|byte| *byte != 0)).then_some((place, block))
    };
    let mut without_header = 0;
    let mut repair = |(place, block): (usize, &[u8])| {
        if LogHeader::peek(identity, block).is_some() {
            return entry_repaired(identity, block).map(|block| (place, block));
        }
        without_header += 1;
        let may_try = without_header <= MOST_WITHOUT_HEADER;
        may_try.then(|| header_repaired(identity, block)).flatten().map(|block| (place, block))
    };
    headers.iter().enumerate().filter_map(is_spoilt).filter_map(&mut repair).collect()
}

fn header_repaired(identity: Identity, block: &[u8]) -> Option<Vec<u8>> {
    let mut block = block.to_vec();
    flipped_until(&mut block, 0, |block| {
        LogHeader::peek(identity, block).is_some() && LogHeader::is_whole(block)
    })
    .then_some(block)
}

/// With one entry that is none, and the header right.
fn entry_repaired(identity: Identity, block: &[u8]) -> Option<Vec<u8>> {
    let entries = block.as_chunks::<ENTRY_BYTES>().0;
    let is_foreign = |entry: &[u8; ENTRY_BYTES]| {
        entry.iter().any(|byte| *byte != 0) && Entry::decode(identity, entry).is_none()
    };
    let mut foreign = (1..entries.len()).filter(|&place| is_foreign(&entries[place]));
    let (Some(place), None) = (foreign.next(), foreign.next()) else { return None };
    let mut block = block.to_vec();
    flipped_until(&mut block, place * ENTRY_BYTES, |block| {
        !is_foreign(&block.as_chunks::<ENTRY_BYTES>().0[place]) && LogHeader::is_whole(block)
    })
    .then_some(block)
}

/// Flips one bit after the other of the entry at `from`, until `is_right`.
fn flipped_until(block: &mut [u8], from: usize, is_right: impl Fn(&[u8]) -> bool) -> bool {
    for bit in 0..ENTRY_BYTES * 8 {
        let (at, mask) = (from + bit / 8, 1 << (bit % 8));
        block[at] ^= mask;
        if is_right(block) {
            return true;
        }
        block[at] ^= mask;
    }
    false
}

#[cfg(test)]
#[path = "metadata_tests.rs"]
mod metadata_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::metadata::Kind;

    fn block(identity: Identity) -> Vec<u8> {
        let mut bytes = vec![0; LOG_BLOCK_BYTES];
        for (place, entry) in bytes.as_chunks_mut::<ENTRY_BYTES>().0.iter_mut().enumerate().skip(1).take(9) {
            let (generation, block) = (place as u64 + 5, 3);
            Entry { generation, key: 7, block, data_crc: 9, kind: Kind::Dirty }.encode(identity, entry);
        }
        LogHeader { commit: 5, after: 4, index: 0, count: 1 }.seal(identity, &mut bytes);
        bytes
    }

    #[test]
    fn any_one_bit_is_flipped_back_and_two_are_not() {
        let identity = Identity::new(&[3; 16]);
        let whole = block(identity);
        let header = |block: &[u8]| {
            let whole = LogHeader::peek(identity, block).filter(|_| LogHeader::is_whole(block));
            vec![whole]
        };
        for bit in 0..LOG_BLOCK_BYTES * 8 {
            let mut spoilt = whole.clone();
            spoilt[bit / 8] ^= 1 << (bit % 8);
            let back = repaired(identity, &spoilt, &header(&spoilt));
            assert_eq!(back, [(0, whole.clone())], "bit {bit}");
            let other = (bit * 7919 + 13) % (LOG_BLOCK_BYTES * 8);
            if other == bit {
                continue;
            }
            spoilt[other / 8] ^= 1 << (other % 8);
            let back = repaired(identity, &spoilt, &header(&spoilt));
            assert!(back.iter().all(|(_, block)| *block == whole), "bits {bit} and {other}");
        }
        assert_eq!(repaired(identity, &whole, &header(&whole)), []);
    }
}
