//! Which blocks of a pass have been visited (fio's random map).

use virtbench_units::Random;

/// Bits of a word.
const BITS: u64 = 64;

/// The blocks of a region, each visited at most once a pass.
///
/// Level 0 has a bit for each block; a bit of a higher level says that the word of 64 bits below it is
/// full, so that the next free block is found in a few steps however full the map is.
#[derive(Debug, Clone)]
pub(crate) struct RandomMap {
    levels: Vec<Vec<u64>>,
    blocks: u64,
    grain_bytes: u64,
    free: u64,
}

impl RandomMap {
    /// A map of the whole blocks of `grain_bytes` in `region_bytes`, of which there must be one.
    pub(crate) fn new(region_bytes: u64, grain_bytes: u64) -> Self {
        let blocks = (region_bytes / grain_bytes.max(1)).max(1);
        let mut levels = Vec::new();
        let mut bits = blocks;
        loop {
            let words = bits.div_ceil(BITS);
            levels.push(vec![0; usize::try_from(words).unwrap_or(usize::MAX)]);
            if words == 1 {
                break;
            }
            bits = words;
        }
        let mut map = Self { levels, blocks, grain_bytes, free: 0 };
        map.reset();
        map
    }

    /// Bytes of memory that such a map takes.
    pub(crate) fn memory_bytes(region_bytes: u64, grain_bytes: u64) -> u64 {
        region_bytes / grain_bytes.max(1) / 8
    }

    /// What a pass covers, in bytes.
    pub(crate) fn pass_bytes(&self) -> u64 {
        self.blocks * self.grain_bytes
    }

    /// Begins a new pass.
    pub(crate) fn reset(&mut self) {
        let mut bits = self.blocks;
        for level in &mut self.levels {
            level.fill(0);
            // What lies beyond the last block is never free.
            let beyond = bits % BITS;
            if let (Some(last), true) = (level.last_mut(), beyond > 0) {
                *last = u64::MAX << beyond;
            }
            bits = bits.div_ceil(BITS);
        }
        self.free = self.blocks;
    }

    /// Whether every block has been visited.
    pub(crate) fn is_full(&self) -> bool {
        self.free == 0
    }

    /// Visits a block drawn at random, or the next free one after it (around the end), and up to
    /// `len` bytes from there on, as far as nothing of them has been visited: offset and length, in bytes.
    /// Begins a new pass where every block has been visited.
    pub(crate) fn visit(&mut self, random: &mut Random, len: u32) -> (u64, u32) {
        if self.is_full() {
            self.reset();
        }
        let drawn = random.below(self.blocks);
        let first = self.next_free(drawn).or_else(|| self.next_free(0)).unwrap_or(0);
        let wanted = u64::from(len).div_ceil(self.grain_bytes);
        let mut visited = 0;
        while visited < wanted && first + visited < self.blocks && self.mark(first + visited) {
            visited += 1;
        }
        let bytes = (visited * self.grain_bytes).min(u64::from(len));
        (first * self.grain_bytes, u32::try_from(bytes).unwrap_or(len))
    }

    /// Marks a block as visited; `false` if it was already.
    fn mark(&mut self, block: u64) -> bool {
        let mut index = block;
        for (number, level) in self.levels.iter_mut().enumerate() {
            let Some(word) = level.get_mut(word_of(index)) else { return false };
            let bit = 1 << (index % BITS);
            if number == 0 && *word & bit != 0 {
                return false;
            }
            *word |= bit;
            if *word != u64::MAX {
                break;
            }
            index /= BITS;
        }
        self.free -= 1;
        true
    }

    /// The first free block from `block` on.
    fn next_free(&self, block: u64) -> Option<u64> {
        let (mut number, mut index) = (0, block);
        // Upwards until a word has something free at or after the place, ...
        let found = loop {
            let level = self.levels.get(number)?;
            let word = level.get(word_of(index)).copied().unwrap_or(u64::MAX);
            let free = !word & (u64::MAX << (index % BITS));
            if free != 0 {
                break index / BITS * BITS + u64::from(free.trailing_zeros());
            }
            index = index / BITS + 1;
            number += 1;
        };
        // ... and down again to the first free block below it.
        let mut index = found;
        for level in self.levels[..number].iter().rev() {
            let word = level.get(word_of(index * BITS)).copied().unwrap_or(u64::MAX);
            index = index * BITS + u64::from((!word).trailing_zeros());
        }
        Some(index)
    }
}

fn word_of(bit: u64) -> usize {
    usize::try_from(bit / BITS).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_pass_visits_every_block_once(blocks in 1u64..20_000, most in 1u32..40, seed: u64) {
            let mut map = RandomMap::new(blocks * 512 + 100, 512);
            let mut random = Random::new(seed);
            let mut seen = BTreeSet::new();
            while !map.is_full() {
                let len = 512 * (1 + u32::try_from(random.below(most.into())).unwrap());
                let (offset, got) = map.visit(&mut random, len);
                prop_assert!(got > 0 && got <= len && got % 512 == 0);
                for block in offset / 512..(offset + u64::from(got)) / 512 {
                    prop_assert!(block < blocks && seen.insert(block), "block {} twice", block);
                }
            }
            prop_assert_eq!(seen.len() as u64, blocks);
            map.visit(&mut random, 512);
            prop_assert!(map.free == blocks - 1, "a new pass begins");
        }
    }
}
