//! The virtual device of one disk: what it would do if no other disk were there.

use crate::predict::Predictors;
use crate::scheduler::QueuedIo;
use crate::types::{Device, DeviceOp, Time};

/// Dedicated devices with a share of the physical ones' speed. They see one disk's I/Os only, so that what they
/// say is the same alone and in company.
#[derive(Debug, Clone)]
pub(super) struct VirtualDevice {
    /// Virtual nanoseconds for a physical one.
    slowness: f64,
    /// When each is idle again, slow and fast.
    idle_from: [Time; 2],
    /// Where the disk's last slow access ends.
    head: u64,
}

/// When the virtual device begins and finishes an I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Served {
    pub(super) start: Time,
    pub(super) finish: Time,
}

impl VirtualDevice {
    /// A device with `share` of the physical ones, of which an I/O takes `reserve` of what is predicted.
    pub(super) fn new(share: f64, reserve: f64) -> Self {
        Self { slowness: reserve / share, idle_from: [Time::ZERO; 2], head: 0 }
    }

    /// From now on it has this share; what it has taken in stays as it is.
    pub(super) fn set_share(&mut self, share: f64, reserve: f64) {
        self.slowness = reserve / share;
    }

    /// Takes an I/O in, in order of arrival. It may begin up to `burst_ns` before those ahead of it are finished.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates
    pub(super) fn serve(&mut self, now: Time, io: &QueuedIo, predict: &Predictors, burst_ns: u64) -> Served {
        let device = io.device.index();
        let cost_ns = self.predicted_ns(io, predict) as f64 * self.slowness;
        let idle_from = self.idle_from[device];
        let start = now.max(Time::from_ns(idle_from.ns().saturating_sub(burst_ns)));
        let finish = now.max(idle_from).after(cost_ns as u64);
        self.idle_from[device] = finish;
        Served { start, finish }
    }

    fn predicted_ns(&mut self, io: &QueuedIo, predict: &Predictors) -> u64 {
        match (io.device, io.op) {
            (Device::Slow, DeviceOp::Read | DeviceOp::Write) => {
                let from = std::mem::replace(&mut self.head, io.offset_bytes + u64::from(io.len_bytes));
                predict.slow.access_ns(from, io.offset_bytes)
            }
            (Device::Slow, DeviceOp::Flush) => predict.slow.flush_ns(),
            (Device::Fast, DeviceOp::Read | DeviceOp::Write) => predict.fast.batch_ns(1),
            (Device::Fast, DeviceOp::Flush) | (_, DeviceOp::Discard) => 0,
        }
    }
}
