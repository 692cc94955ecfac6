//! What multiple of bytes direct I/O needs.

use std::fs::File;
use std::os::unix::fs::FileExt;

use memmap2::MmapMut;

/// The sizes tried, in bytes.
const CANDIDATES: [u32; 4] = [512, 1024, 2048, 4096];

/// The smallest unit in which `file`, opened for direct I/O, really can be read. Found by reading:
/// what file systems and devices announce and what they accept has differed too often.
/// A file too short to read from is taken for 4096.
pub(crate) fn direct_alignment(file: &File) -> u32 {
    let largest = CANDIDATES[CANDIDATES.len() - 1];
    let Ok(mut buffer) = MmapMut::map_anon(largest as usize) else { return largest };
    CANDIDATES
        .into_iter()
        .find(|unit| {
            let bytes = *unit as usize;
            file.read_at(&mut buffer[..bytes], u64::from(*unit)).is_ok()
        })
        .unwrap_or(largest)
}
