//! What is known of each cache block: 36 bytes, and 6 to 12 more for the index over them.
//!
//! A cache of any size misses the processor's caches at every request, so what a hit needs of a block lies in one line
//! of them: half a line, aligned. Lists are threaded through the blocks; the index is a hash table chained through them.

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

/// Nothing but the reads in flight keeps it from being free.
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
    blocks: Vec<Block>,
    generation_high: Vec<u32>,
    buckets: Vec<u32>,
    /// Nothing in them.
    pub(super) free: List,
    /// Clean and dirty ones, most recently used first.
    pub(super) lru: List,
    /// Dirty ones on their way to the slow device.
    pub(super) writing: List,
}

impl Table {
    pub(super) fn new(blocks: u32) -> Self {
        let mut table = Self::without_free(blocks);
        for block in 0..blocks {
            table.free.push_back(&mut table.blocks, block);
        }
        table
    }

    /// All blocks free but on no list, for recovery.
    pub(super) fn without_free(blocks: u32) -> Self {
        let n = blocks as usize;
        let block =
            Block { key: 0, generation: 0, crc: 0, chain: NONE, flags: 0, previous: NONE, next: NONE };
        Self {
            blocks: vec![block; n],
            generation_high: vec![0; n],
            // A third to two thirds full: at each further block of a chain the processor waits for memory.
            buckets: vec![NONE; (n + n / 2).next_power_of_two()],
            free: List::new(),
            lru: List::new(),
            writing: List::new(),
        }
    }

    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.blocks.len()).unwrap_or(NONE)
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        let words = self.generation_high.capacity() + self.buckets.capacity();
        self.blocks.capacity() * size_of::<Block>() + words * 4
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
            let block = &self.blocks[at as usize];
            if block.key == key {
                return Some(at);
            }
            at = block.chain;
        }
        None
    }

    /// From now on `key`, which no block holds, is found in `block`.
    pub(super) fn insert(&mut self, key: u64, block: u32) {
        debug_assert!(self.find(key).is_none());
        let bucket = self.bucket(key);
        let place = &mut self.blocks[block as usize];
        place.key = key;
        place.chain = self.buckets[bucket];
        self.buckets[bucket] = block;
    }

    /// The block's key is found no more.
    pub(super) fn unindex(&mut self, block: u32) {
        let Block { key, chain, .. } = self.blocks[block as usize];
        let bucket = self.bucket(key);
        if self.buckets[bucket] == block {
            self.buckets[bucket] = chain;
        } else {
            let mut at = self.buckets[bucket];
            while self.blocks[at as usize].chain != block {
                at = self.blocks[at as usize].chain;
            }
            self.blocks[at as usize].chain = chain;
        }
        self.blocks[block as usize].chain = NONE;
    }

    pub(super) fn key(&self, block: u32) -> u64 {
        self.blocks[block as usize].key
    }

    pub(super) fn generation(&self, block: u32) -> u64 {
        let high = self.generation_high[block as usize];
        u64::from(high) << 32 | u64::from(self.blocks[block as usize].generation)
    }

    pub(super) fn crc(&self, block: u32) -> u32 {
        self.blocks[block as usize].crc
    }

    pub(super) fn describe(&mut self, block: u32, key: u64, generation: u64, crc: u32) {
        self.blocks[block as usize].key = key;
        self.set_crc(block, generation, crc);
    }

    #[allow(clippy::cast_possible_truncation)] // in halves
    pub(super) fn set_crc(&mut self, block: u32, generation: u64, crc: u32) {
        let place = &mut self.blocks[block as usize];
        place.crc = crc;
        place.generation = generation as u32;
        self.generation_high[block as usize] = (generation >> 32) as u32;
    }

    pub(super) fn state(&self, block: u32) -> State {
        STATES[(self.blocks[block as usize].flags & STATE) as usize]
    }

    pub(super) fn set_state(&mut self, block: u32, state: State) {
        let flags = &mut self.blocks[block as usize].flags;
        *flags = *flags & !STATE | state as u32;
    }

    pub(super) fn has(&self, block: u32, flag: u32) -> bool {
        self.blocks[block as usize].flags & flag != 0
    }

    pub(super) fn set(&mut self, block: u32, flag: u32) {
        self.blocks[block as usize].flags |= flag;
    }

    pub(super) fn clear(&mut self, block: u32, flag: u32) {
        self.blocks[block as usize].flags &= !flag;
    }

    /// A device I/O uses the block's contents: it is not freed before [`unpin`](Self::unpin).
    pub(super) fn pin(&mut self, block: u32) {
        self.blocks[block as usize].flags += PIN;
    }

    pub(super) fn unpin(&mut self, block: u32) {
        debug_assert!(self.is_pinned(block));
        self.blocks[block as usize].flags -= PIN;
    }

    pub(super) fn is_pinned(&self, block: u32) -> bool {
        self.blocks[block as usize].flags >= PIN
    }

    /// A free block, now loading.
    pub(super) fn take_free(&mut self) -> Option<u32> {
        let block = self.free.pop_front(&mut self.blocks)?;
        self.blocks[block as usize].flags = State::Loading as u32;
        Some(block)
    }

    /// Back to the free list, which it is not on.
    pub(super) fn release(&mut self, block: u32) {
        debug_assert!(!self.is_pinned(block));
        self.blocks[block as usize].flags = State::Free as u32;
        self.free.push_back(&mut self.blocks, block);
    }

    /// Onto the front of the LRU list, from no list.
    pub(super) fn insert_used(&mut self, block: u32) {
        self.lru.push_front(&mut self.blocks, block);
    }

    /// Used again.
    pub(super) fn touch(&mut self, block: u32) {
        self.lru.remove(&mut self.blocks, block);
        self.lru.push_front(&mut self.blocks, block);
    }

    pub(super) fn remove_used(&mut self, block: u32) {
        self.lru.remove(&mut self.blocks, block);
    }

    pub(super) fn least_used(&self) -> Option<u32> {
        self.lru.last()
    }

    /// The one used just before `block`'s turn, walking from the least used.
    pub(super) fn more_used_than(&self, block: u32) -> Option<u32> {
        Some(self.blocks[block as usize].previous).filter(|&block| block != NONE)
    }

    pub(super) fn start_writing(&mut self, block: u32) {
        self.lru.remove(&mut self.blocks, block);
        self.writing.push_back(&mut self.blocks, block);
    }

    pub(super) fn stop_writing(&mut self, block: u32) {
        self.writing.remove(&mut self.blocks, block);
    }
}

/// Ends of one list, which is threaded through the blocks.
#[derive(Debug)]
pub(super) struct List {
    first: u32,
    last: u32,
    len: u32,
}

impl List {
    pub(super) const fn new() -> Self {
        Self { first: NONE, last: NONE, len: 0 }
    }

    pub(super) const fn len(&self) -> u32 {
        self.len
    }

    pub(super) fn last(&self) -> Option<u32> {
        (self.last != NONE).then_some(self.last)
    }

    pub(super) fn push_front(&mut self, blocks: &mut [Block], block: u32) {
        blocks[block as usize].previous = NONE;
        blocks[block as usize].next = self.first;
        match self.first {
            NONE => self.last = block,
            first => blocks[first as usize].previous = block,
        }
        self.first = block;
        self.len += 1;
    }

    pub(super) fn push_back(&mut self, blocks: &mut [Block], block: u32) {
        blocks[block as usize].next = NONE;
        blocks[block as usize].previous = self.last;
        match self.last {
            NONE => self.first = block,
            last => blocks[last as usize].next = block,
        }
        self.last = block;
        self.len += 1;
    }

    pub(super) fn remove(&mut self, blocks: &mut [Block], block: u32) {
        let Block { previous, next, .. } = blocks[block as usize];
        match previous {
            NONE => self.first = next,
            previous => blocks[previous as usize].next = next,
        }
        match next {
            NONE => self.last = previous,
            next => blocks[next as usize].previous = previous,
        }
        self.len -= 1;
    }

    pub(super) fn pop_front(&mut self, blocks: &mut [Block]) -> Option<u32> {
        let first = self.first;
        if first == NONE {
            return None;
        }
        self.remove(blocks, first);
        Some(first)
    }
}

/// No block.
pub(super) const NONE: u32 = u32::MAX;

/// Half a cache line of one block's state.
#[derive(Debug, Clone, Copy)]
#[repr(align(32))]
pub(super) struct Block {
    pub(super) key: u64,
    /// The lower half of the generation; the upper, which hardly ever changes, lies apart.
    pub(super) generation: u32,
    pub(super) crc: u32,
    /// The next block of the same bucket.
    pub(super) chain: u32,
    pub(super) flags: u32,
    /// Neighbours on its list.
    pub(super) previous: u32,
    pub(super) next: u32,
}
