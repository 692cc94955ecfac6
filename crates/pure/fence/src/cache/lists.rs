//! Doubly linked lists by index: every block is on one list at most.

use super::known::{Block, NONE};

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
