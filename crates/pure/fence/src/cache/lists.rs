//! Doubly linked lists by index: every block is on one list at most.

use super::table::NONE;

/// The links of all blocks.
#[derive(Debug)]
pub(super) struct Links {
    previous: Vec<u32>,
    next: Vec<u32>,
}

/// Ends of one list.
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
}

impl Links {
    pub(super) fn new(blocks: u32) -> Self {
        Self { previous: vec![NONE; blocks as usize], next: vec![NONE; blocks as usize] }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        (self.previous.capacity() + self.next.capacity()) * 4
    }

    pub(super) fn before(&self, block: u32) -> Option<u32> {
        Some(self.previous[block as usize]).filter(|&block| block != NONE)
    }

    pub(super) fn push_front(&mut self, list: &mut List, block: u32) {
        self.previous[block as usize] = NONE;
        self.next[block as usize] = list.first;
        match list.first {
            NONE => list.last = block,
            first => self.previous[first as usize] = block,
        }
        list.first = block;
        list.len += 1;
    }

    pub(super) fn push_back(&mut self, list: &mut List, block: u32) {
        self.next[block as usize] = NONE;
        self.previous[block as usize] = list.last;
        match list.last {
            NONE => list.first = block,
            last => self.next[last as usize] = block,
        }
        list.last = block;
        list.len += 1;
    }

    pub(super) fn remove(&mut self, list: &mut List, block: u32) {
        let (previous, next) = (self.previous[block as usize], self.next[block as usize]);
        match previous {
            NONE => list.first = next,
            previous => self.next[previous as usize] = next,
        }
        match next {
            NONE => list.last = previous,
            next => self.previous[next as usize] = previous,
        }
        list.len -= 1;
    }

    pub(super) fn pop_front(&mut self, list: &mut List) -> Option<u32> {
        let first = list.first;
        if first == NONE {
            return None;
        }
        self.remove(list, first);
        Some(first)
    }
}
