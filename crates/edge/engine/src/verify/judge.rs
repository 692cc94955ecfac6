//! Is a block what it should be, and if not, in what way?
//!
//! What a sector of a verified block says about itself.
//!
//! Each 512 bytes, little-endian: magic (8), seed of the run (8), offset of the sector (8), version
//! of the block (4), CRC-32C of all else (4), then 480 bytes that follow from seed, offset and
//! version. A sector is what devices promise to write whole, so a torn block shows at its seams.

use virtbench_record::{Damage, DamagedBlock, Verification};
use virtbench_units::SeedSequence;

use super::ledger::{Claim, Ledger};

/// When a block was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// While the load was running: an old version is stale.
    During,
    /// After it: an old version is what is left, the newer one is lost.
    After,
    /// In another process, perhaps after the target was killed: what was flushed must be there, what
    /// was sent after that may be, whole or in part.
    Later,
}

/// Judges every block of `data`, which was read at `offset`, against the ledger.
pub(super) fn judge(data: &[u8], offset: u64, ledger: &Ledger, moment: Moment, found: &mut Verification) {
    each_block(data, offset, ledger.block_bytes(), |block, offset| {
        if moment == Moment::Later {
            return judge_later(block, offset, ledger, found);
        }
        let Some(expected) = ledger.expected(offset, moment == Moment::During) else {
            found.blocks_unknown += 1;
            return;
        };
        let sectors = sectors(block, ledger.seed(), offset);
        let verdict = if expected == 0 { stray(&sectors) } else { compare(&sectors, expected, moment) };
        note(verdict, expected > 0, offset, found);
    });
}

fn judge_later(block: &[u8], offset: u64, ledger: &Ledger, found: &mut Verification) {
    let Some(claim) = ledger.claim_after(offset) else {
        found.blocks_unknown += 1;
        return;
    };
    let sectors = sectors(block, ledger.seed(), offset);
    let verdict = match claim {
        Claim { stable: 0, .. } => stray(&sectors),
        Claim { stable, newest } if stable == newest => compare(&sectors, stable, Moment::After),
        claim => compare_range(&sectors, claim),
    };
    note(verdict, claim.stable > 0, offset, found);
}

/// A block of which a version was flushed and newer ones were sent: each sector may be of any of them.
fn compare_range(sectors: &[Sector], Claim { stable, newest }: Claim) -> Option<(Damage, String)> {
    let version = |sector: &Sector| match sector {
        Sector::Ours { version } => Some(*version),
        _ => None,
    };
    let Some(versions) = sectors.iter().map(version).collect::<Option<Vec<u32>>>() else {
        // One that is missing altogether, misplaced, corrupt or foreign is so whatever is expected.
        return compare(sectors, stable, Moment::After);
    };
    let wrong: Vec<u32> = versions.iter().copied().filter(|v| !(stable..=newest).contains(v)).collect();
    let first = wrong.first()?;
    let words = format!("version {stable} was flushed and {newest} sent, the block holds version {first}");
    Some((if wrong.len() == versions.len() { Damage::Lost } else { Damage::Torn }, words))
}

/// Judges every block of `data` by itself, as where the version that it should be is unknown.
pub(super) fn judge_alone(data: &[u8], offset: u64, seed: u64, block_bytes: u64, found: &mut Verification) {
    each_block(data, offset, block_bytes, |block, offset| {
        let sectors = sectors(block, seed, offset);
        let unmarked = sectors.iter().all(|sector| *sector == Sector::Unmarked);
        let verdict = if unmarked { None } else { consistent(&sectors).err() };
        note(verdict, !unmarked, offset, found);
    });
}

fn each_block(data: &[u8], offset: u64, block_bytes: u64, mut act: impl FnMut(&[u8], u64)) {
    let size = usize::try_from(block_bytes).unwrap_or(usize::MAX);
    for (block, at) in data.chunks_exact(size).zip(0u64..) {
        act(block, offset + at * block_bytes);
    }
}

fn sectors(block: &[u8], seed: u64, offset: u64) -> Vec<Sector> {
    let sectors = block.chunks_exact(SECTOR).zip(0u64..);
    sectors.map(|(sector, at)| inspect(sector, seed, offset + at * SECTOR as u64)).collect()
}

fn note(verdict: Option<(Damage, String)>, known: bool, offset: u64, found: &mut Verification) {
    if known || verdict.is_some() {
        found.blocks_checked += 1;
    } else {
        found.blocks_unknown += 1;
    }
    if let Some((damage, words)) = verdict {
        found.add(DamagedBlock { offset, damage, words });
    }
}

/// A block that this run never wrote may hold anything, except what the run wrote for another place.
fn stray(sectors: &[Sector]) -> Option<(Damage, String)> {
    sectors.iter().find_map(|sector| match sector {
        Sector::Elsewhere { offset } => {
            Some((Damage::Misplaced, format!("holds what was written for offset {offset}")))
        }
        _ => None,
    })
}

fn compare(sectors: &[Sector], expected: u32, moment: Moment) -> Option<(Damage, String)> {
    let old = if moment == Moment::During { Damage::Stale } else { Damage::Lost };
    let unmarked = sectors.iter().filter(|sector| **sector == Sector::Unmarked).count();
    // Before its first write a block has no header, so that one without is an old version too.
    if expected == 1 && unmarked == sectors.len() {
        return Some((old, "version 1 was acknowledged, the block holds no header at all".into()));
    }
    let ours = sectors.iter().any(|sector| matches!(sector, Sector::Ours { .. }));
    if expected == 1 && unmarked > 0 && ours {
        return Some((
            Damage::Torn,
            format!("version 1 is missing in {unmarked} of {} sectors", sectors.len()),
        ));
    }
    match consistent(sectors) {
        Ok(version) if version == expected => None,
        Ok(version) => {
            Some((old, format!("version {expected} was acknowledged, the block holds version {version}")))
        }
        Err(damage) => Some(damage),
    }
}

/// The one version of all sectors, or in what way they do not make a block.
fn consistent(sectors: &[Sector]) -> Result<u32, (Damage, String)> {
    let mut versions = Vec::new();
    let mut foreign = None;
    for (index, sector) in sectors.iter().enumerate() {
        match sector {
            Sector::Ours { version } => versions.push(*version),
            Sector::Foreign { seed } => foreign = Some(*seed),
            Sector::Elsewhere { offset } => {
                let words = format!("sector {index} holds what was written for offset {offset}");
                return Err((Damage::Misplaced, words));
            }
            Sector::BadChecksum => {
                return Err((Damage::Corrupt, format!("sector {index} does not match its checksum")));
            }
            Sector::Unmarked => return Err((Damage::Corrupt, format!("sector {index} has no header"))),
        }
    }
    let [oldest, newest] = [versions.iter().min(), versions.iter().max()].map(Option::<&u32>::copied);
    match (oldest, newest, foreign) {
        (Some(oldest), Some(newest), None) if oldest == newest => Ok(oldest),
        (Some(oldest), Some(newest), None) => {
            Err((Damage::Torn, format!("its sectors are of versions {oldest} to {newest}")))
        }
        (Some(version), _, Some(seed)) => Err((
            Damage::Torn,
            format!("some sectors are of version {version}, others of the run with seed {seed}"),
        )),
        (None, _, Some(seed)) => Err((
            Damage::Foreign,
            format!(
                "holds a block of the run with seed {seed}: that run wrote it since, or this run's write never arrived"
            ),
        )),
        _ => Err((Damage::Corrupt, "it has no sector".into())),
    }
}

/// Bytes of a sector.
pub(crate) const SECTOR: usize = 512;

const MAGIC: [u8; 8] = *b"vbverify";

const HEADER: usize = 32;

const CHECKSUM: std::ops::Range<usize> = 28..HEADER;

/// What a sector turns out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sector {
    /// Of this run and in its place.
    Ours {
        /// The version of its block.
        version: u32,
    },
    /// Of this run, but written for another place.
    Elsewhere {
        /// The place, in bytes from the target's start.
        offset: u64,
    },
    /// Of a run with another seed.
    Foreign { seed: u64 },
    /// It has a header, and does not match its checksum.
    BadChecksum,
    /// It has no header.
    Unmarked,
}

/// Fills a block at `offset` with sectors of this version.
pub(crate) fn fill(block: &mut [u8], seed: u64, offset: u64, version: u32) {
    let mut at = offset;
    for sector in block.chunks_exact_mut(SECTOR) {
        sector[..8].copy_from_slice(&MAGIC);
        sector[8..16].copy_from_slice(&seed.to_le_bytes());
        sector[16..24].copy_from_slice(&at.to_le_bytes());
        sector[24..28].copy_from_slice(&version.to_le_bytes());
        let mut payload = SeedSequence::new(seed ^ at.rotate_left(17) ^ u64::from(version).rotate_left(47));
        for word in sector[HEADER..].as_chunks_mut::<8>().0 {
            *word = payload.next_seed().to_le_bytes();
        }
        let sum = checksum(sector);
        sector[CHECKSUM].copy_from_slice(&sum.to_le_bytes());
        at += SECTOR as u64;
    }
}

/// What the sector found at `offset` turns out to be, in the eyes of the run with this seed.
pub(crate) fn inspect(sector: &[u8], seed: u64, offset: u64) -> Sector {
    if sector[..8] != MAGIC {
        return Sector::Unmarked;
    }
    let word = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&sector[at..at + 8]);
        u64::from_le_bytes(bytes)
    };
    // The checksum fills the upper half of the last word, the version the lower.
    let [version, sum] = [word(24) & 0xffff_ffff, word(24) >> 32];
    if u64::from(checksum(sector)) != sum {
        return Sector::BadChecksum;
    }
    if word(8) != seed {
        return Sector::Foreign { seed: word(8) };
    }
    if word(16) != offset {
        return Sector::Elsewhere { offset: word(16) };
    }
    Sector::Ours { version: u32::try_from(version).unwrap_or(u32::MAX) }
}

fn checksum(sector: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&sector[..CHECKSUM.start]), &sector[HEADER..])
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod judge_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sector_tells_what_it_is() {
        let mut block = vec![0; 2 * SECTOR];
        fill(&mut block, 7, 4096, 3);
        let second = &block[SECTOR..];
        assert_eq!(inspect(&block[..SECTOR], 7, 4096), Sector::Ours { version: 3 });
        assert_eq!(inspect(second, 7, 4096 + 512), Sector::Ours { version: 3 });
        assert_eq!(inspect(second, 7, 0), Sector::Elsewhere { offset: 4608 });
        assert_eq!(inspect(second, 8, 4608), Sector::Foreign { seed: 7 });
        assert_eq!(inspect(&[0; SECTOR], 7, 0), Sector::Unmarked);
    }

    #[test]
    fn any_flipped_bit_is_found() {
        let mut block = vec![0; SECTOR];
        fill(&mut block, 7, 0, 1);
        for bit in 0..SECTOR * 8 {
            block[bit / 8] ^= 1 << (bit % 8);
            assert!(!matches!(inspect(&block, 7, 0), Sector::Ours { .. }), "bit {bit}");
            block[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
