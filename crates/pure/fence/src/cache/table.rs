//! What is known of each cache block: 36 bytes, and 4 to 8 more for the index over them.
//!
//! Arrays beside each other rather than an array of structs, so that no byte is lost to alignment. Lists are threaded
//! through the blocks; the index is a hash table chained through them.

use super::lists::{Links, List};

/// No block.
pub(super) const NONE: u32 = u32::MAX;

/// What a block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    /// Nothing, and no entry on the device says otherwise.
    Free,
    /// Data is on its way into it.
    Loading,
    /// The same as the slow device.
    Clean,
    /// Newer than the slow device.
    Dirty,
    /// Nothing of use: free once its tombstone is stable.
    Retired,
    /// An older version: to be retired once the newer is stable.
    Superseded,
}

const STATES: [State; 6] =
    [State::Free, State::Loading, State::Clean, State::Dirty, State::Retired, State::Superseded];

const STATE: u32 = 0xff;
/// An operation changes the block's key: others that would must wait.
pub(super) const LOCKED: u32 = 1 << 8;
/// Some do.
pub(super) const WAITED: u32 = 1 << 9;
/// Its entry is to be written with the next commit.
pub(super) const PENDING: u32 = 1 << 10;
/// An entry of it may be on the device.
pub(super) const ON_LOG: u32 = 1 << 11;
/// It is on the write list.
pub(super) const WRITING: u32 = 1 << 12;
/// Nothing but the reads under way keeps it from being free.
pub(super) const FREE_ON_UNPIN: u32 = 1 << 13;
const PIN: u32 = 1 << 16;

/// A disk and a block of it: 16 and 48 bits.
pub(super) const fn key(disk: u16, block: u64) -> u64 {
    (disk as u64) << 48 | block
}

/// The disk of a key.
#[allow(clippy::cast_possible_truncation)] // the upper 16 bits
pub(super) const fn disk_of(key: u64) -> u16 {
    (key >> 48) as u16
}

/// The block of a key.
pub(super) const fn block_of(key: u64) -> u64 {
    key & ((1 << 48) - 1)
}

/// The blocks of one partition.
#[derive(Debug)]
pub(super) struct Table {
    key: Vec<u64>,
    generation: Vec<u64>,
    crc: Vec<u32>,
    chain: Vec<u32>,
    flags: Vec<u32>,
    buckets: Vec<u32>,
    links: Links,
    /// Nothing in them.
    pub(super) free: List,
    /// Clean and dirty ones, most recently used first.
    pub(super) lru: List,
    /// Dirty ones on their way to the slow device.
    pub(super) writing: List,
}

impl Table {
    pub(super) fn new(blocks: u32) -> Self {
        let n = blocks as usize;
        let mut table = Self::without_free(blocks);
        for block in 0..blocks {
            table.links.push_back(&mut table.free, block);
        }
        debug_assert_eq!(table.free.len() as usize, n);
        table
    }

    /// All blocks free but on no list, for recovery.
    pub(super) fn without_free(blocks: u32) -> Self {
        let n = blocks as usize;
        Self {
            key: vec![0; n],
            generation: vec![0; n],
            crc: vec![0; n],
            chain: vec![NONE; n],
            flags: vec![0; n],
            buckets: vec![NONE; n.next_power_of_two()],
            links: Links::new(blocks),
            free: List::new(),
            lru: List::new(),
            writing: List::new(),
        }
    }

    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.key.len()).unwrap_or(NONE)
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        let words =
            self.crc.capacity() + self.chain.capacity() + self.flags.capacity() + self.buckets.capacity();
        (self.key.capacity() + self.generation.capacity()) * 8 + words * 4 + self.links.memory_bytes()
    }

    #[allow(clippy::cast_possible_truncation)] // masked to the buckets there are
    fn bucket(&self, key: u64) -> usize {
        let mixed = (key ^ key >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize & (self.buckets.len() - 1)
    }

    /// The block that holds `key`.
    pub(super) fn find(&self, key: u64) -> Option<u32> {
        let mut at = self.buckets[self.bucket(key)];
        while at != NONE {
            if self.key[at as usize] == key {
                return Some(at);
            }
            at = self.chain[at as usize];
        }
        None
    }

    /// From now on `key`, which no block holds, is found in `block`.
    pub(super) fn insert(&mut self, key: u64, block: u32) {
        debug_assert!(self.find(key).is_none());
        let bucket = self.bucket(key);
        self.key[block as usize] = key;
        self.chain[block as usize] = self.buckets[bucket];
        self.buckets[bucket] = block;
    }

    /// The block's key is found no more.
    pub(super) fn unindex(&mut self, block: u32) {
        let bucket = self.bucket(self.key[block as usize]);
        let next = self.chain[block as usize];
        if self.buckets[bucket] == block {
            self.buckets[bucket] = next;
        } else {
            let mut at = self.buckets[bucket];
            while self.chain[at as usize] != block {
                at = self.chain[at as usize];
            }
            self.chain[at as usize] = next;
        }
        self.chain[block as usize] = NONE;
    }

    pub(super) fn key(&self, block: u32) -> u64 {
        self.key[block as usize]
    }

    pub(super) fn generation(&self, block: u32) -> u64 {
        self.generation[block as usize]
    }

    pub(super) fn crc(&self, block: u32) -> u32 {
        self.crc[block as usize]
    }

    pub(super) fn describe(&mut self, block: u32, key: u64, generation: u64, crc: u32) {
        self.key[block as usize] = key;
        self.generation[block as usize] = generation;
        self.crc[block as usize] = crc;
    }

    pub(super) fn set_crc(&mut self, block: u32, generation: u64, crc: u32) {
        self.generation[block as usize] = generation;
        self.crc[block as usize] = crc;
    }

    pub(super) fn state(&self, block: u32) -> State {
        STATES[(self.flags[block as usize] & STATE) as usize]
    }

    pub(super) fn set_state(&mut self, block: u32, state: State) {
        let flags = &mut self.flags[block as usize];
        *flags = *flags & !STATE | state as u32;
    }

    pub(super) fn has(&self, block: u32, flag: u32) -> bool {
        self.flags[block as usize] & flag != 0
    }

    pub(super) fn set(&mut self, block: u32, flag: u32) {
        self.flags[block as usize] |= flag;
    }

    pub(super) fn clear(&mut self, block: u32, flag: u32) {
        self.flags[block as usize] &= !flag;
    }

    /// A device I/O uses the block's contents: it is not freed before [`unpin`](Self::unpin).
    pub(super) fn pin(&mut self, block: u32) {
        self.flags[block as usize] += PIN;
    }

    pub(super) fn unpin(&mut self, block: u32) {
        debug_assert!(self.is_pinned(block));
        self.flags[block as usize] -= PIN;
    }

    pub(super) fn is_pinned(&self, block: u32) -> bool {
        self.flags[block as usize] >= PIN
    }

    /// A free block, now loading.
    pub(super) fn take_free(&mut self) -> Option<u32> {
        let block = self.links.pop_front(&mut self.free)?;
        self.flags[block as usize] = State::Loading as u32;
        Some(block)
    }

    /// Back to the free list, which it is not on.
    pub(super) fn release(&mut self, block: u32) {
        debug_assert!(!self.is_pinned(block));
        self.flags[block as usize] = State::Free as u32;
        self.links.push_back(&mut self.free, block);
    }

    /// Onto the front of the LRU list, from no list.
    pub(super) fn insert_used(&mut self, block: u32) {
        self.links.push_front(&mut self.lru, block);
    }

    /// Used again.
    pub(super) fn touch(&mut self, block: u32) {
        self.links.remove(&mut self.lru, block);
        self.links.push_front(&mut self.lru, block);
    }

    pub(super) fn remove_used(&mut self, block: u32) {
        self.links.remove(&mut self.lru, block);
    }

    pub(super) fn least_used(&self) -> Option<u32> {
        self.lru.last()
    }

    /// The one used just before `block`'s turn, walking from the least used.
    pub(super) fn more_used_than(&self, block: u32) -> Option<u32> {
        self.links.before(block)
    }

    pub(super) fn start_writing(&mut self, block: u32) {
        self.links.remove(&mut self.lru, block);
        self.links.push_back(&mut self.writing, block);
    }

    pub(super) fn stop_writing(&mut self, block: u32) {
        self.links.remove(&mut self.writing, block);
    }
}
