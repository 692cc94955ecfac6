//! The files of a virtual machine: how long each is and where it lies.

use rand_distr::{Distribution, Gamma};
use virtbench_units::Random;

use super::personality::{AccessKind, Personality};

const BLOCK: u64 = 4096;

/// Shape of Filebench's file sizes (`cvar-gamma`, gamma 1.5).
const SIZE_SHAPE: f64 = 1.5;

/// Files spread evenly over a virtual disk, as a file system spreads directories over its groups.
#[derive(Debug, Clone)]
pub struct FileSet {
    /// Bytes from the start of one file to that of the next.
    stride: u64,
    /// Lengths in bytes, whole blocks.
    lens: Vec<u32>,
}

impl FileSet {
    /// `files` files of a personality over `disk_bytes`. At least one; none longer than its stride.
    #[must_use]
    pub fn new(personality: Personality, files: u32, disk_bytes: u64, seed: u64) -> Self {
        let files = files.max(1);
        let stride = (disk_bytes / u64::from(files) / BLOCK * BLOCK).max(BLOCK);
        let mean = personality.mean_file_bytes() as f64;
        let mut random = Random::new(seed);
        let sizes = Gamma::new(SIZE_SHAPE, mean / SIZE_SHAPE).ok();
        let lens = (0..files)
            .map(|_| {
                let bytes = sizes.as_ref().map_or(mean, |sizes| sizes.sample(&mut random));
                whole_blocks(bytes).min(stride).try_into().unwrap_or(u32::MAX / 4096 * 4096)
            })
            .collect();
        Self { stride, lens }
    }

    /// Draws a file.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // below the number of files
    pub fn draw(&self, random: &mut Random) -> u32 {
        random.below(self.lens.len() as u64) as u32
    }

    /// First byte and length of an access to a file, both in whole blocks.
    #[inline]
    #[must_use]
    pub fn range(&self, file: u32, kind: AccessKind, random: &mut Random) -> (u64, u64) {
        let begin = u64::from(file) * self.stride;
        let len = u64::from(self.lens[file as usize]);
        match kind {
            AccessKind::ReadWhole | AccessKind::WriteWhole => (begin, len),
            // The last bytes written lie anywhere in the last block; what is appended begins there, or
            // in the file's last blocks where there is no room behind it.
            AccessKind::Append(most) => {
                let bytes = whole_blocks(1.0 + random.unit() * f64::from(most)).min(self.stride);
                let at = (len - BLOCK).min(self.stride - bytes);
                (begin + at, bytes)
            }
        }
    }

    /// All blocks of the files, in units of 4 KiB.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.lens.iter().map(|len| u64::from(*len) / BLOCK).sum()
    }

    /// Every file's first byte and length.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        (0u64..).zip(&self.lens).map(|(file, len)| (file * self.stride, u64::from(*len)))
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates
fn whole_blocks(bytes: f64) -> u64 {
    (bytes as u64).div_ceil(BLOCK).max(1) * BLOCK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_as_long_as_filebench_s() {
        let mut random = Random::new(1);
        for (personality, want) in
            [(Personality::Fileserver, 90.0), (Personality::Mailserver, 14.0), (Personality::Webserver, 18.0)]
        {
            let files = FileSet::new(personality, 20_000, 40 << 30, 2);
            let (mut bytes, mut accesses) = (0, 0u32);
            for access in personality.round().iter().cycle().take(30_000) {
                let file = files.draw(&mut random);
                let (offset, len) = files.range(file, access.kind, &mut random);
                assert!(offset % BLOCK == 0 && len % BLOCK == 0 && len > 0 && offset + len <= 40 << 30);
                bytes += len;
                accesses += 1;
            }
            let mean = bytes as f64 / f64::from(accesses) / 1024.0;
            assert!((mean / want - 1.0).abs() < 0.05, "{personality:?}: {mean} KiB for {want}");
        }
    }

    #[test]
    fn files_do_not_overlap_however_little_room_there_is() {
        let files = FileSet::new(Personality::Fileserver, 1000, 1000 * 8192, 3);
        let mut end = 0;
        for (offset, len) in files.iter() {
            assert!(offset >= end);
            end = offset + len;
        }
        assert!(end <= 1000 * 8192);
    }
}
