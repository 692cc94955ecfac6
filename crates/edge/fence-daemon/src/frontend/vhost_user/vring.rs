//! One ring of a client: heads out, used ones in, and who is to be told.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{Ordering, fence};

use virtio_bindings::virtio_ring::{
    VIRTIO_RING_F_EVENT_IDX, VIRTIO_RING_F_INDIRECT_DESC, VRING_AVAIL_F_NO_INTERRUPT,
};
use virtio_queue::{Queue, QueueOwnedT, QueueT};
use vm_memory::{Bytes, GuestAddress};

use super::blk::bit;
use super::chain::{TableAt, Violation};
use super::inflight::Inflight;
use super::memory::{ClientMemory, Map};
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
    queue: Queue,
    addresses: Option<Addresses>,
    /// Where the client says that we stopped.
    base: u16,
    /// Tells us that there is something to do; the client gives it when it may be used.
    pub kick: Option<(OwnedFd, Option<WatchId>)>,
    /// Tells the client that something is done.
    call: Option<OwnedFd>,
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
        // 1024 is a size that there can be, which the default is not.
        let queue = Queue::new(MOST_DESCRIPTORS).unwrap_or_default();
        Self {
            number,
            queue,
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
    pub fn set_call(&mut self, call: Option<OwnedFd>) {
        self.call = call;
        self.untold = true;
    }

    /// Its number of descriptors.
    pub fn set_size(&mut self, size: u32) -> Result<(), WireError> {
        let size = u16::try_from(size).map_err(|_| WireError::Malformed("a ring of that size"))?;
        self.queue.try_set_size(size).map_err(|_| WireError::Malformed("a ring of that size"))
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

    /// Looks its addresses up again, because the memory has changed.
    pub fn relocate(&mut self, memory: &ClientMemory) -> Result<(), WireError> {
        let Some(Addresses { descriptors, used, available }) = self.addresses else { return Ok(()) };
        let wrong = |_| WireError::Malformed("a ring that is not aligned");
        self.queue.try_set_desc_table_address(memory.translate(descriptors)?).map_err(wrong)?;
        self.queue.try_set_avail_ring_address(memory.translate(available)?).map_err(wrong)?;
        self.queue.try_set_used_ring_address(memory.translate(used)?).map_err(wrong)?;
        if self.queue.ready() && !self.queue.is_valid(&***memory.map()) {
            return Err(WireError::Malformed("a ring outside shared memory"));
        }
        Ok(())
    }

    /// Whether requests are taken from it.
    pub fn is_running(&self) -> bool {
        self.queue.ready() && self.enabled && !self.broken
    }

    /// Whether it has been started and not stopped.
    pub fn is_started(&self) -> bool {
        self.queue.ready()
    }

    /// Whether it has been started, and has said nothing that cannot be.
    pub fn is_sound(&self) -> bool {
        self.queue.ready() && !self.broken
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
        if self.addresses.is_none() {
            return Err(WireError::Malformed("a ring without addresses"));
        }
        self.relocate(memory)?;
        self.queue.set_event_idx(features & bit(VIRTIO_RING_F_EVENT_IDX) != 0);
        self.queue.set_ready(true);
        let map = &***memory.map();
        let outside = || WireError::Malformed("a ring outside shared memory");
        if !self.queue.is_valid(map) {
            self.queue.set_ready(false);
            return Err(outside());
        }
        let used = self.queue.used_idx(map, Ordering::Acquire).map_err(|_| outside())?.0;
        self.queue.set_next_used(used);
        self.queue.set_next_avail(self.base);
        self.again.clear();
        if let Some(inflight) = inflight {
            let left = inflight.begin(self.number, self.queue.size(), used)?;
            let count = u16::try_from(left.heads.len()).unwrap_or(u16::MAX);
            self.queue.set_next_avail(used.wrapping_add(count));
            self.counter = left.next_counter;
            self.again.extend(left.heads);
        }
        // Whatever the driver waited for when its server went away, it looks again.
        self.untold = true;
        self.broken = false;
        Ok(())
    }

    /// Ends; gives where.
    pub fn stop(&mut self) -> u16 {
        if self.queue.ready() {
            self.queue.set_ready(false);
            self.base = self.queue.next_avail();
        }
        self.base
    }

    /// Nothing is taken from it any more: what it says cannot be. `lost` of the heads taken last will never be answered.
    pub fn fail(&mut self, lost: usize) {
        self.taken = self.taken.saturating_sub(u32::try_from(lost).unwrap_or(u32::MAX));
        self.broken = true;
        if let Some(err) = &self.err {
            tell(err);
        }
    }

    /// Takes at most `most` heads.
    #[inline]
    pub fn take(
        &mut self,
        map: &Map,
        inflight: Option<&Inflight>,
        most: usize,
        heads: &mut Vec<u16>,
    ) -> Result<(), Violation> {
        let most = most.min(usize::from(self.queue.size()).saturating_sub(self.taken as usize));
        let begin = heads.len();
        while heads.len() - begin < most
            && let Some(head) = self.again.pop_front()
        {
            heads.push(head);
        }
        let known = heads.len() - begin;
        if known < most {
            let available = self.queue.iter(map).map_err(|error| match error {
                virtio_queue::Error::InvalidAvailRingIndex => Violation::Overfull,
                _ => Violation::Ring,
            })?;
            heads.extend(available.take(most - known).map(|chain| chain.head_index()));
        }
        if let Some(inflight) = inflight {
            for &head in &heads[begin + known..] {
                if head >= self.queue.size() {
                    return Err(Violation::Index(head));
                }
                inflight.take(self.number, head, self.counter);
                self.counter = self.counter.wrapping_add(1);
            }
        }
        self.taken += u32::try_from(heads.len() - begin).unwrap_or(0);
        Ok(())
    }

    /// Gives a head back.
    #[inline]
    pub fn give(
        &mut self,
        map: &Map,
        inflight: Option<&Inflight>,
        head: u16,
        written: u32,
    ) -> Result<(), Violation> {
        self.taken = self.taken.saturating_sub(1);
        if let Some(inflight) = inflight {
            inflight.about_to_give(self.number, head);
        }
        self.queue.add_used(map, head, written).map_err(|_| Violation::Ring)?;
        if let Some(inflight) = inflight {
            inflight.gave(self.number, head, self.queue.next_used());
        }
        self.untold = true;
        Ok(())
    }

    /// Tells the client what was used, if it wants to know.
    #[inline]
    pub fn tell(&mut self, map: &Map) -> Result<(), Violation> {
        if !std::mem::take(&mut self.untold) {
            return Ok(());
        }
        let wants = if self.queue.event_idx_enabled() {
            self.queue.needs_notification(map).map_err(|_| Violation::Ring)?
        } else {
            fence(Ordering::SeqCst);
            let flags: u16 = map
                .load(GuestAddress(self.queue.avail_ring()), Ordering::Relaxed)
                .map_err(|_| Violation::Ring)?;
            u32::from(u16::from_le(flags)) & VRING_AVAIL_F_NO_INTERRUPT == 0
        };
        if let (true, Some(call)) = (wants, &self.call) {
            tell(call);
        }
        Ok(())
    }

    /// The client need not tell us of new requests: we look.
    #[inline]
    pub fn look(&mut self, map: &Map) -> Result<(), Violation> {
        self.queue.disable_notification(map).map_err(|_| Violation::Ring)
    }

    /// The client is to tell us. True if there is something already.
    pub fn listen(&mut self, map: &Map) -> Result<bool, Violation> {
        Ok(self.queue.enable_notification(map).map_err(|_| Violation::Ring)? || !self.again.is_empty())
    }

    /// Whether more may be taken from it: a ring has no more under way than it has places.
    pub fn has_room(&self) -> bool {
        self.taken < u32::from(self.queue.size())
    }

    /// Where its chains are.
    #[inline]
    pub fn table(&self) -> TableAt {
        TableAt { address: GuestAddress(self.queue.desc_table()), size: self.queue.size() }
    }
}

/// Whether chains may lead to tables elsewhere.
pub const fn indirect(features: u64) -> bool {
    features & bit(VIRTIO_RING_F_INDIRECT_DESC) != 0
}

/// Adds one to an eventfd. One that is full tells all there is to tell.
fn tell(event: &OwnedFd) {
    let _ = rustix::io::write(event.as_fd(), &1u64.to_ne_bytes());
}

/// Takes an eventfd from a client: nothing else may be read and written without fear of waiting.
///
/// # Errors
/// It is something else.
pub fn eventfd(fd: OwnedFd) -> Result<OwnedFd, WireError> {
    use std::os::fd::AsRawFd;
    let link = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()));
    if link.is_ok_and(|link| link.as_os_str() != "anon_inode:[eventfd]") {
        return Err(WireError::Malformed("a descriptor that is no eventfd"));
    }
    let flags = rustix::fs::fcntl_getfl(&fd).map_err(WireError::Socket)?;
    rustix::fs::fcntl_setfl(&fd, flags | rustix::fs::OFlags::NONBLOCK).map_err(WireError::Socket)?;
    Ok(fd)
}
