//! mClock: reservation, limit and weight for each disk by three tags (Gulati, Merchant and Varman, OSDI 2010, section 3).
//!
//! With reservation equal to limit each disk gets its rate, no less and no more: the setting that [VirtualFence 2013], section 3,
//! says could give predictability, and that was untried.

use std::collections::VecDeque;

use super::config::Shares;
use super::depth::{DEVICES, Depth};
use crate::config_error::ConfigError;
use crate::scheduler::{Policy, QueuedIo, Scheduler, one_each};
use crate::types::{Device, Time};

const SECOND_NS: u64 = 1_000_000_000;

/// A disk's tags are those of the head of its queue; the three spacings follow from its shares.
#[derive(Debug)]
struct Disk {
    spacing: [u64; 3],
    queues: [VecDeque<(Time, QueuedIo)>; 2],
    /// Reservation, limit and weight tags of the I/O dispatched last.
    last: [u64; 3],
}

const R: usize = 0;
const L: usize = 1;
const P: usize = 2;

impl Disk {
    fn tag(&self, which: usize, arrival: Time) -> u64 {
        self.last[which].saturating_add(self.spacing[which]).max(arrival.ns())
    }

    fn is_empty(&self) -> bool {
        self.queues.iter().all(VecDeque::is_empty)
    }
}

/// Reserved work first, then by weight what limits allow.
#[derive(Debug)]
pub struct MClock {
    disks: Vec<Disk>,
    depth: Depth,
}

impl MClock {
    /// The shares of each disk.
    #[must_use]
    pub fn new(shares: &[Shares], depth: [u32; 2]) -> Self {
        let disk = |shares: &Shares| Disk {
            spacing: [
                SECOND_NS / shares.reservation_iops.max(1),
                SECOND_NS / shares.limit_iops.max(1),
                SECOND_NS / shares.weight.max(1),
            ],
            queues: [VecDeque::new(), VecDeque::new()],
            last: [0; 3],
        };
        let mut disks: Vec<Disk> = shares.iter().map(disk).collect();
        for (disk, shares) in disks.iter_mut().zip(shares) {
            if shares.reservation_iops == 0 {
                disk.spacing[R] = u64::MAX;
            }
        }
        Self { disks, depth: Depth::new(depth) }
    }

    /// Heads that a device has room for: disk, device, arrival.
    fn heads(&self) -> impl Iterator<Item = (usize, Device, Time)> {
        self.disks.iter().enumerate().filter_map(|(index, disk)| {
            let has = |d: &Device| self.depth.has_room(*d) && !disk.queues[d.index()].is_empty();
            let device = DEVICES.into_iter().find(has)?;
            disk.queues[device.index()].front().map(|&(arrival, _)| (index, device, arrival))
        })
    }
}

impl Scheduler for MClock {
    fn enqueue(&mut self, now: Time, io: QueuedIo) {
        if self.disks[io.disk.index()].is_empty() {
            // An idle disk joins those that are busy, rather than claim for the time it was away.
            let busy = self.disks.iter().filter(|disk| !disk.is_empty()).map(|disk| disk.last[P]).min();
            let disk = &mut self.disks[io.disk.index()];
            disk.last[P] = disk.last[P].max(busy.unwrap_or(0));
        }
        self.disks[io.disk.index()].queues[io.device.index()].push_back((now, io));
    }

    fn completed(&mut self, _now: Time, io: &QueuedIo) {
        self.depth.done(io.device);
    }

    fn pick(&mut self, now: Time) -> Option<QueuedIo> {
        let tag = |which: usize, &(index, _, arrival): &(usize, Device, Time)| {
            self.disks[index].tag(which, arrival)
        };
        let reserved = self.heads().filter(|head| tag(R, head) <= now.ns()).min_by_key(|head| tag(R, head));
        let weighted = |this: &Self| {
            this.heads()
                .filter(|&(index, _, arrival)| this.disks[index].tag(L, arrival) <= now.ns())
                .min_by_key(|&(index, ..)| {
                    this.disks[index].last[P].saturating_add(this.disks[index].spacing[P])
                })
        };
        let by_reservation = reserved.is_some();
        let (index, device, arrival) = reserved.or_else(|| weighted(self))?;
        self.depth.start(device);
        let disk = &mut self.disks[index];
        // Work done by weight does not use up the reservation.
        if by_reservation {
            disk.last[R] = disk.tag(R, arrival);
        }
        disk.last[L] = disk.tag(L, arrival);
        disk.last[P] = disk.last[P].saturating_add(disk.spacing[P]);
        disk.queues[device.index()].pop_front().map(|(_, io)| io)
    }

    fn next_deadline(&self) -> Option<Time> {
        self.heads()
            .map(|(index, _, arrival)| {
                self.disks[index].tag(R, arrival).min(self.disks[index].tag(L, arrival))
            })
            .min()
            .map(Time::from_ns)
    }

    fn queued(&self) -> usize {
        self.disks.iter().flat_map(|disk| &disk.queues).map(VecDeque::len).sum()
    }
}

impl Policy for Vec<Shares> {
    fn validate(&self, disks: usize) -> Result<(), ConfigError> {
        let zero = |shares: &Shares| shares.limit_iops == 0 || shares.weight == 0;
        one_each(self.len(), disks)?;
        if let Some(disk) = self.iter().position(|shares| shares.reservation_iops > shares.limit_iops) {
            return Err(ConfigError::ReservationOverLimit { disk });
        }
        self.iter().position(zero).map_or(Ok(()), |disk| Err(ConfigError::ZeroShare { disk }))
    }

    fn scheduler(&self, depth: [u32; 2], _disks: usize) -> Box<dyn Scheduler> {
        Box::new(MClock::new(self, depth))
    }
}
