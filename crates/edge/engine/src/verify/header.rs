//! What a sector of a verified block says about itself.
//!
//! Each 512 bytes, little-endian: magic (8), seed of the run (8), offset of the sector (8), version
//! of the block (4), CRC-32C of all else (4), then 480 bytes that follow from seed, offset and
//! version. A sector is what devices promise to write whole, so a torn block shows at its seams.

use virtbench_units::SeedSequence;

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
