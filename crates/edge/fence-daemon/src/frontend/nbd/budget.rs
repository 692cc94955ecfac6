//! Memory for payload: a share kept for each export, the rest first come, first served.
//!
//! A client that asks for more than is free waits, and is served in order of arrival. What one export's clients hold and do
//! not give back keeps others of that export waiting, and leaves other exports their shares.

use std::collections::{BTreeMap, VecDeque};

use virtbench_fence::DiskId;
use virtbench_nbd::server::{Export, ServerConfig};

use super::stream::TlsServer;
use crate::frontend::Host;
use crate::memory::{Buffer, Pool};

/// A client that was refused, by the name that it asks under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Waiter {
    who: u64,
    export: usize,
}

/// Bytes that may be held, and those that are.
#[derive(Debug)]
pub(super) struct Budget {
    /// Kept for all exports together.
    shared_out_bytes: u64,
    /// Of each export alone.
    share_bytes: u64,
    /// Of all exports together, beyond their shares.
    common_bytes: u64,
    held_bytes: Vec<u64>,
    waiters: VecDeque<Waiter>,
    /// Something was given back since the waiters were refused.
    has_news: bool,
}

impl Budget {
    /// Half of `most_bytes` is kept for the exports, the same for each. The other half has room for a request of
    /// `longest_bytes` in any case, so that each of that length is served at some time.
    pub(super) fn new(most_bytes: u64, exports: usize, longest_bytes: u32) -> Self {
        let longest_bytes = Pool::rounded(longest_bytes as usize) as u64;
        Self {
            shared_out_bytes: most_bytes / 2,
            share_bytes: most_bytes / 2 / exports.max(1) as u64,
            common_bytes: (most_bytes / 2).max(longest_bytes),
            held_bytes: vec![0; exports],
            waiters: VecDeque::new(),
            has_news: false,
        }
    }

    /// There is an export more: the shares are smaller. What is held beyond them counts as common.
    pub(super) fn add_export(&mut self) {
        self.held_bytes.push(0);
        self.share_bytes = self.shared_out_bytes / self.held_bytes.len() as u64;
    }

    /// A buffer of at least `len_bytes`. Without one, `who` waits until there is memory and asks again, or
    /// [leaves](Self::leave).
    pub(super) fn take(
        &mut self,
        who: u64,
        export: usize,
        len_bytes: u32,
        host: &mut Host<'_>,
    ) -> Option<Buffer> {
        self.grant(who, export, Pool::rounded(len_bytes as usize) as u64)
            .then(|| host.buffer(len_bytes as usize))
    }

    fn grant(&mut self, who: u64, export: usize, bytes: u64) -> bool {
        let waiter = Waiter { who, export };
        let place = self.waiters.iter().position(|other| *other == waiter);
        if !self.is_free(export, bytes, place.unwrap_or(self.waiters.len())) {
            if place.is_none() {
                self.waiters.push_back(waiter);
            }
            return false;
        }
        if let Some(place) = place {
            self.waiters.remove(place);
            // Those behind may have waited for this one alone.
            self.has_news = !self.waiters.is_empty();
        }
        self.held_bytes[export] += bytes;
        true
    }

    /// Whether so many bytes may be had at this place of the queue.
    fn is_free(&self, export: usize, bytes: u64, place: usize) -> bool {
        let held = self.held_bytes[export];
        if held + bytes <= self.share_bytes {
            return self.waiters.iter().take(place).all(|other| other.export != export);
        }
        let beyond = |held: &u64| held.saturating_sub(self.share_bytes);
        let others: u64 = self.held_bytes.iter().map(beyond).sum::<u64>() - beyond(&held);
        place == 0 && others + beyond(&(held + bytes)) <= self.common_bytes
    }

    /// Gives one back.
    pub(super) fn give(&mut self, export: usize, buffer: Buffer, host: &mut Host<'_>) {
        self.release(export, buffer.len() as u64);
        host.give(buffer);
    }

    fn release(&mut self, export: usize, bytes: u64) {
        self.held_bytes[export] -= bytes;
        self.has_news = !self.waiters.is_empty();
    }

    /// Waits no longer.
    pub(super) fn leave(&mut self, who: u64) {
        self.waiters.retain(|waiter| waiter.who != who);
        self.has_news = !self.waiters.is_empty();
    }

    /// Whether those who wait should ask again. Says so once.
    pub(super) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }
}

/// What all clients share.
pub(super) struct Shared {
    pub(super) exports: Vec<Export>,
    pub(super) disks: Vec<DiskId>,
    pub(super) server: ServerConfig,
    pub(super) tls: Option<TlsServer>,
    pub(super) memory: Budget,
    pub(super) departed: Departed,
    pub(super) staging: Box<[u8]>,
}

/// A request's name: the client's serial, its place, its slot.
pub(super) fn tag(serial: u32, place: usize, slot: u32) -> u64 {
    u64::from(serial) << 32 | (place as u64 & 0xffff) << 16 | u64::from(slot & 0xffff)
}

/// Names of requests.
#[allow(clippy::cast_possible_truncation)] // the parts that `tag` joined
pub(super) fn untag(tag: u64) -> (u32, usize, u32) {
    ((tag >> 32) as u32, (tag >> 16) as usize & 0xffff, tag as u32 & 0xffff)
}

/// The name of a connection: its requests' tags without their slots.
pub(super) const fn name(tag: u64) -> u64 {
    tag & !0xffff
}

#[derive(Debug, Clone, Copy)]
struct Left {
    export: usize,
    in_flight: usize,
}

/// Connections that are over and have requests in flight, by the names of those connections.
#[derive(Debug, Default)]
pub(super) struct Departed(BTreeMap<u64, Left>);

impl Departed {
    /// A connection is over.
    pub(super) fn add(&mut self, name: u64, export: usize, in_flight: usize) {
        if in_flight > 0 {
            self.0.insert(name, Left { export, in_flight });
        }
    }

    /// A request of such a connection is done. Gives the export that it was of.
    pub(super) fn done(&mut self, name: u64) -> Option<usize> {
        let left = self.0.get_mut(&name)?;
        left.in_flight -= 1;
        let Left { export, in_flight } = *left;
        if in_flight == 0 {
            self.0.remove(&name);
        }
        Some(export)
    }

    /// Those of an export.
    pub(super) fn on_export(&self, export: usize) -> impl Iterator<Item = u64> {
        self.0.iter().filter(move |(_, left)| left.export == export).map(|(name, _)| *name)
    }

    /// Whether requests of this connection are in flight though it is over.
    pub(super) fn has(&self, name: u64) -> bool {
        self.0.contains_key(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Two exports with 16 MiB each and 32 MiB for both.
    fn budget() -> Budget {
        Budget::new(64 * MIB, 2, 32 << 20)
    }

    #[test]
    fn an_export_has_its_share_whatever_another_holds() {
        let mut budget = budget();
        for who in 0..48 {
            assert!(budget.grant(who, 0, MIB));
        }
        assert!(!budget.grant(99, 0, MIB), "more than its share and what is common");
        assert!((100..116).all(|who| budget.grant(who, 1, MIB)));
        assert!(!budget.grant(116, 1, MIB));
    }

    #[test]
    fn the_longest_request_is_served_at_some_time_and_before_later_ones() {
        let mut budget = Budget::new(64 * MIB, 64, 32 << 20);
        assert!((0..4).all(|who| budget.grant(who, 0, MIB)));
        assert!(!budget.grant(9, 1, 32 * MIB) && !budget.take_news());
        assert!(!budget.grant(10, 0, MIB), "it would be overtaken for ever");
        assert!(!budget.grant(11, 1, 4096), "an export's requests are served in their order");
        (0..4).for_each(|_| budget.release(0, MIB));
        assert!(budget.take_news() && !budget.take_news());
        assert!(!budget.grant(10, 0, MIB));
        assert!(budget.grant(9, 1, 32 * MIB) && budget.take_news());
    }

    #[test]
    fn another_export_has_its_share_too() {
        let mut budget = budget();
        assert!((0..16).all(|who| budget.grant(who, 0, MIB)));
        budget.add_export();
        assert!(
            (20..30).all(|who| budget.grant(who, 2, MIB)) && (30..40).all(|who| budget.grant(who, 1, MIB))
        );
        (0..16).for_each(|_| budget.release(0, MIB));
        assert!(budget.grant(50, 0, MIB));
    }

    #[test]
    fn a_client_that_leaves_keeps_nobody_waiting() {
        let mut budget = budget();
        assert!(budget.grant(1, 0, 32 * MIB) && !budget.grant(2, 0, 32 * MIB) && !budget.grant(3, 0, MIB));
        budget.leave(2);
        assert!(budget.take_news() && budget.grant(3, 0, MIB));
    }

    #[test]
    fn a_connection_is_forgotten_with_its_last_request() {
        let mut departed = Departed::default();
        departed.add(1, 0, 2);
        departed.add(2, 1, 1);
        departed.add(3, 0, 0);
        assert_eq!(departed.on_export(0).collect::<Vec<_>>(), [1]);
        assert_eq!((departed.done(1), departed.has(1)), (Some(0), true));
        assert_eq!((departed.done(1), departed.has(1), departed.done(1)), (Some(0), false, None));
        assert_eq!(departed.on_export(1).collect::<Vec<_>>(), [2]);
    }
}
