//! One ring of a client: heads out, used ones in, and who is to be told.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use virtio_bindings::virtio_ring::{VIRTIO_RING_F_EVENT_IDX, VIRTIO_RING_F_INDIRECT_DESC};

use super::backend_channel::{Call, add_one};
use super::blk::bit;
use super::chain::{Table, Violation};
use super::inflight::Inflight;
use super::memory::ClientMemory;
use super::split::{Parts, Split};
use super::wire::WireError;
use crate::ring::WatchId;

/// Descriptors of a ring at most.
pub const MOST_DESCRIPTORS: u16 = 1024;

/// Where the client has its rings, as addresses of its own.
#[derive(Debug, Clone, Copy)]
pub struct Addresses {
    /// The descriptors.
    pub descriptors: u64,
    /// What is used.
    pub used: u64,
    /// What is available.
    pub available: u64,
}

/// One ring.
#[derive(Debug)]
pub struct Vring {
    number: u16,
    size: u16,
    /// Once it has been started, and until it is stopped.
    split: Option<Split>,
    addresses: Option<Addresses>,
    /// Where the client says that we stopped.
    base: u16,
    /// Tells us that there is something to do; the client gives it when it may be used.
    pub kick: Option<(OwnedFd, Option<WatchId>)>,
    /// Tells the client that something is done.
    call: Option<Call>,
    /// Tells the client that the ring is broken.
    pub err: Option<OwnedFd>,
    enabled: bool,
    /// Requests that were taken and not yet given back.
    pub taken: u32,
    /// Heads that an earlier server had taken.
    again: VecDeque<u16>,
    counter: u64,
    /// Used since the client was told last.
    untold: bool,
    broken: bool,
}

impl Vring {
    /// A ring that has not been set up.
    pub fn new(number: u16) -> Self {
        Self {
            number,
            size: MOST_DESCRIPTORS,
            split: None,
            addresses: None,
            base: 0,
            kick: None,
            call: None,
            err: None,
            enabled: false,
            taken: 0,
            again: VecDeque::new(),
            counter: 0,
            untold: false,
            broken: false,
        }
    }

    /// Whom to tell. The client is told once without need: what was done before it could be told counts too.
    pub fn set_call(&mut self, call: Option<Call>) {
        self.call = call;
        self.tell_anyway();
    }

    fn tell_anyway(&mut self) {
        self.untold = true;
        if let Some(split) = &mut self.split {
            split.tell_anyway();
        }
    }

    /// Its number of descriptors: a power of two.
    pub fn set_size(&mut self, size: u32) -> Result<(), WireError> {
        let size =
            u16::try_from(size).ok().filter(|size| size.is_power_of_two() && *size <= MOST_DESCRIPTORS);
        self.size = size.ok_or(WireError::Malformed("a ring of that size"))?;
        Ok(())
    }

    /// Where it goes on.
    pub fn set_base(&mut self, base: u32) -> Result<(), WireError> {
        self.base = u16::try_from(base).map_err(|_| WireError::Malformed("a ring's base"))?;
        Ok(())
    }

    /// Where it is.
    pub fn set_addresses(&mut self, addresses: Addresses, memory: &ClientMemory) -> Result<(), WireError> {
        self.addresses = Some(addresses);
        self.relocate(memory)
    }

    fn parts(&self, memory: &ClientMemory) -> Result<Option<Parts>, WireError> {
        let Some(Addresses { descriptors, used, available }) = self.addresses else { return Ok(None) };
        let descriptors = memory.translate(descriptors)?;
        let (available, used) = (memory.translate(available)?, memory.translate(used)?);
        Ok(Some(Parts { descriptors, available, used }))
    }

    /// Looks its addresses up again, because the memory has changed.
    pub fn relocate(&mut self, memory: &ClientMemory) -> Result<(), WireError> {
        if let (Some(parts), Some(split)) = (self.parts(memory)?, &self.split) {
            self.split = Some(split.moved(memory.map(), parts).map_err(|_| OUTSIDE)?);
        }
        Ok(())
    }

    /// Whether requests are taken from it.
    #[inline]
    pub const fn is_running(&self) -> bool {
        self.split.is_some() && self.enabled && !self.broken
    }

    /// Whether it has been started and not stopped.
    pub const fn is_started(&self) -> bool {
        self.split.is_some()
    }

    /// Whether it has been started, and has said nothing that cannot be.
    pub const fn is_sound(&self) -> bool {
        self.split.is_some() && !self.broken
    }

    /// Clients that know the protocol's features say when it may be used.
    pub fn enable(&mut self, enabled: bool) {
        self.enabled = enabled;
    }

    /// Begins, where the client says or an earlier server stopped.
    pub fn start(
        &mut self,
        memory: &ClientMemory,
        features: u64,
        inflight: Option<&Inflight>,
    ) -> Result<(), WireError> {
        let parts = self.parts(memory)?.ok_or(WireError::Malformed("a ring without addresses"))?;
        let event_idx = features & bit(VIRTIO_RING_F_EVENT_IDX) != 0;
        let mut split = Split::new(memory.map(), parts, self.size, event_idx).map_err(|_| OUTSIDE)?;
        split.set_next_available(self.base);
        self.again.clear();
        if let Some(inflight) = inflight {
            let left = inflight.begin(self.number, self.size, split.next_used())?;
            let count = u16::try_from(left.heads.len()).unwrap_or(u16::MAX);
            split.set_next_available(split.next_used().wrapping_add(count));
            self.counter = left.next_counter;
            self.again.extend(left.heads);
        }
        self.split = Some(split);
        // Whatever the driver waited for when its server went away, it looks again.
        self.tell_anyway();
        self.broken = false;
        Ok(())
    }

    /// Ends; gives where.
    pub fn stop(&mut self) -> u16 {
        if let Some(split) = self.split.take() {
            self.base = split.next_available();
        }
        self.base
    }

    /// Nothing is taken from it any more: what it says cannot be. `lost` of the heads taken last will never be answered.
    pub fn fail(&mut self, lost: usize) {
        self.taken = self.taken.saturating_sub(u32::try_from(lost).unwrap_or(u32::MAX));
        self.broken = true;
        if let Some(err) = &self.err {
            add_one(err);
        }
    }

    /// Takes at most `most` heads. All that were appended are counted, those before an error too.
    #[inline]
    pub fn take(
        &mut self,
        inflight: Option<&Inflight>,
        most: usize,
        heads: &mut Vec<u16>,
    ) -> Result<(), Violation> {
        let begin = heads.len();
        let taken = self.take_uncounted(inflight, most, heads);
        self.taken += u32::try_from(heads.len() - begin).unwrap_or(0);
        taken
    }

    #[inline]
    fn take_uncounted(
        &mut self,
        inflight: Option<&Inflight>,
        most: usize,
        heads: &mut Vec<u16>,
    ) -> Result<(), Violation> {
        let Some(split) = &mut self.split else { return Ok(()) };
        let most = most.min(usize::from(split.size()).saturating_sub(self.taken as usize));
        let begin = heads.len();
        while heads.len() - begin < most
            && let Some(head) = self.again.pop_front()
        {
            heads.push(head);
        }
        let known = heads.len() - begin;
        if known < most {
            split.take(most - known, heads)?;
        }
        if let Some(inflight) = inflight {
            for &head in &heads[begin + known..] {
                if head >= split.size() {
                    return Err(Violation::Index(head));
                }
                inflight.take(self.number, head, self.counter);
                self.counter = self.counter.wrapping_add(1);
            }
        }
        Ok(())
    }

    /// Gives a head back. The client may not see it before it is [told](Self::tell).
    #[inline]
    pub fn give(&mut self, inflight: Option<&Inflight>, head: u16, written: u32) {
        let Some(split) = &mut self.split else { return };
        self.taken = self.taken.saturating_sub(1);
        self.untold = true;
        let Some(inflight) = inflight else { return split.give(head, written) };
        // One at a time, as what is in flight says which was the last.
        inflight.about_to_give(self.number, head);
        split.give(head, written);
        split.show();
        inflight.gave(self.number, head, split.next_used());
    }

    /// Shows the client what was used, and tells it if it wants to know.
    #[inline]
    pub fn tell(&mut self) {
        if !std::mem::take(&mut self.untold) {
            return;
        }
        let Some(split) = &mut self.split else { return };
        split.show();
        if let (true, Some(call)) = (split.wants_to_know(), &self.call) {
            call.tell();
        }
    }

    /// The client need not tell us of new requests: we look.
    #[inline]
    pub fn look(&self) {
        self.split.iter().for_each(Split::look);
    }

    /// The client is to tell us. True if there is something already.
    pub fn listen(&self) -> bool {
        self.split.as_ref().is_some_and(Split::listen) || !self.again.is_empty()
    }

    /// Whether more may be taken from it: a ring has no more in flight than it has places.
    pub fn has_room(&self) -> bool {
        self.taken < u32::from(self.size)
    }

    /// Where its chains are, while it is in use.
    #[inline]
    pub fn table(&self) -> Option<Table> {
        self.split.as_ref().map(Split::table)
    }
}

const OUTSIDE: WireError = WireError::Malformed("a ring that is not aligned, or outside shared memory");

/// Whether chains may lead to tables elsewhere.
pub const fn indirect(features: u64) -> bool {
    features & bit(VIRTIO_RING_F_INDIRECT_DESC) != 0
}
