//! A split virtqueue in a client's memory (virtio 1.2, section 2.7), at addresses of ours that were checked once.
//!
//! `virtio-queue` looks every address up for every access: a quarter of the daemon's time over a device that does
//! nothing. What is used is shown to the client for many requests at once.

use std::num::Wrapping;
use std::rc::Rc;
use std::sync::atomic::{AtomicU16, Ordering, fence};

use virtio_bindings::virtio_ring::{VRING_AVAIL_F_NO_INTERRUPT, VRING_USED_F_NO_NOTIFY};

use super::chain::{Table, Violation};
use super::memory::Mapped;

/// Guest-physical addresses of a ring's three parts.
#[derive(Debug, Clone, Copy)]
pub struct Parts {
    /// The descriptors, aligned to 16.
    pub descriptors: u64,
    /// What is available, aligned to 2.
    pub available: u64,
    /// What is used, aligned to 4.
    pub used: u64,
}

/// A ring that is in use.
#[derive(Debug)]
pub struct Split {
    size: u16,
    event_idx: bool,
    descriptors: *mut u8,
    available: *mut u16,
    used: *mut u16,
    next_available: Wrapping<u16>,
    next_used: Wrapping<u16>,
    /// The used index that the client was last told of, or looked at for it; none if it is to be told in any case.
    told: Option<Wrapping<u16>>,
    /// Keeps all of it mapped.
    _map: Rc<Mapped>,
}

/// Indices and flags before the entries of either ring, in words.
const HEAD_WORDS: usize = 2;
/// An entry of what is used, in words: a head and a length, of 4 bytes each.
const USED_WORDS: usize = 4;

impl Split {
    /// The ring of `size` descriptors, a power of two, at `parts`; it begins where the client's used index is.
    ///
    /// # Errors
    /// It is not all in one piece of shared memory, or not aligned.
    pub fn new(map: &Rc<Mapped>, parts: Parts, size: u16, event_idx: bool) -> Result<Self, Violation> {
        let entries = usize::from(size);
        let at = |address: u64, bytes: usize, alignment: u64| {
            map.at(address, bytes).filter(|_| address.is_multiple_of(alignment)).ok_or(Violation::Ring)
        };
        let mut split = Self {
            size,
            event_idx,
            descriptors: at(parts.descriptors, 16 * entries, 16)?,
            // Either has a word for events behind its entries.
            available: at(parts.available, 2 * (HEAD_WORDS + entries + 1), 2)?.cast(),
            used: at(parts.used, 2 * (HEAD_WORDS + USED_WORDS * entries + 1), 4)?.cast(),
            next_available: Wrapping(0),
            next_used: Wrapping(0),
            told: None,
            _map: Rc::clone(map),
        };
        let aligned = split.descriptors.align_offset(16) == 0
            && split.available.is_aligned()
            && split.used.cast::<u32>().is_aligned();
        if !aligned {
            return Err(Violation::Ring);
        }
        split.next_used = Wrapping(split.used_word(1).load(Ordering::Acquire));
        Ok(split)
    }

    /// The same ring elsewhere: the client has other memory now.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn moved(&self, map: &Rc<Mapped>, parts: Parts) -> Result<Self, Violation> {
        let new = Self::new(map, parts, self.size, self.event_idx)?;
        let Self { next_available, next_used, told, .. } = *self;
        Ok(Self { next_available, next_used, told, ..new })
    }

    #[inline]
    fn available_word(&self, word: usize) -> &AtomicU16 {
        debug_assert!(word <= HEAD_WORDS + usize::from(self.size));
        // SAFETY: within what `new` found mapped and aligned; the client may access it at any time, as an atomic allows.
        unsafe { AtomicU16::from_ptr(self.available.add(word)) }
    }

    #[inline]
    fn used_word(&self, word: usize) -> &AtomicU16 {
        debug_assert!(word <= HEAD_WORDS + USED_WORDS * usize::from(self.size));
        // SAFETY: as above.
        unsafe { AtomicU16::from_ptr(self.used.add(word)) }
    }

    #[inline]
    fn place(&self, index: Wrapping<u16>) -> usize {
        usize::from(index.0 & (self.size - 1))
    }

    /// Descriptors that it has.
    pub const fn size(&self) -> u16 {
        self.size
    }

    /// Its descriptors.
    #[inline]
    pub const fn table(&self) -> Table {
        Table { first: self.descriptors, size: self.size }
    }

    /// The index of the next head to be taken.
    pub const fn next_available(&self) -> u16 {
        self.next_available.0
    }

    /// Where taking goes on.
    pub const fn set_next_available(&mut self, index: u16) {
        self.next_available = Wrapping(index);
    }

    /// The index behind the last head given back.
    pub const fn next_used(&self) -> u16 {
        self.next_used.0
    }

    /// Appends at most `most` heads that the client has made available.
    ///
    /// # Errors
    /// It says that there are more than the ring holds.
    #[inline]
    pub fn take(&mut self, most: usize, heads: &mut Vec<u16>) -> Result<(), Violation> {
        let end = Wrapping(self.available_word(1).load(Ordering::Acquire));
        let waiting = (end - self.next_available).0;
        if waiting > self.size {
            return Err(Violation::Overfull);
        }
        for _ in 0..most.min(usize::from(waiting)) {
            let word = HEAD_WORDS + self.place(self.next_available);
            heads.push(self.available_word(word).load(Ordering::Relaxed));
            self.next_available += 1;
        }
        Ok(())
    }

    /// Puts a head among what is used. The client sees it after [`show`](Self::show).
    #[inline]
    pub fn give(&mut self, head: u16, written: u32) {
        let word = HEAD_WORDS + USED_WORDS * self.place(self.next_used);
        // SAFETY: an entry of 8 bytes within what `new` found mapped, aligned to 4.
        unsafe {
            let entry = self.used.add(word).cast::<u32>();
            entry.write_volatile(u32::from(head));
            entry.add(1).write_volatile(written);
        }
        self.next_used += 1;
    }

    /// Shows the client everything that was given back.
    #[inline]
    pub fn show(&self) {
        self.used_word(1).store(self.next_used.0, Ordering::Release);
    }

    /// The client is to be told in any case.
    pub const fn tell_anyway(&mut self) {
        self.told = None;
    }

    /// Whether the client wants to be told of what was shown.
    #[inline]
    pub fn wants_to_know(&mut self) -> bool {
        // What was shown must be seen before the client's wish is looked at: it writes that and looks once more.
        fence(Ordering::SeqCst);
        let told = self.told.replace(self.next_used);
        let Some(told) = told else { return true };
        if !self.event_idx {
            let flags = self.available_word(0).load(Ordering::Relaxed);
            return u32::from(flags) & VRING_AVAIL_F_NO_INTERRUPT == 0;
        }
        let event =
            Wrapping(self.available_word(HEAD_WORDS + usize::from(self.size)).load(Ordering::Relaxed));
        self.next_used - event - Wrapping(1) < self.next_used - told
    }

    /// The client need not tell of what it makes available.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // a flag of one bit
    pub fn look(&self) {
        if !self.event_idx {
            self.used_word(0).store(VRING_USED_F_NO_NOTIFY as u16, Ordering::Relaxed);
        }
    }

    /// The client is to tell. True if there is something already.
    pub fn listen(&self) -> bool {
        if self.event_idx {
            let word = HEAD_WORDS + USED_WORDS * usize::from(self.size);
            self.used_word(word).store(self.next_available.0, Ordering::Relaxed);
        } else {
            self.used_word(0).store(0, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
        self.available_word(1).load(Ordering::Acquire) != self.next_available.0
    }
}

#[cfg(test)]
#[path = "split_tests.rs"]
mod tests;
