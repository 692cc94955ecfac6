//! How many I/Os each device may have outstanding.

use crate::types::Device;

/// Outstanding I/Os and their limits, slow and fast.
#[derive(Debug)]
pub(super) struct Depth {
    outstanding: [u32; 2],
    most: [u32; 2],
}

/// The order in which devices are asked for.
pub(super) const DEVICES: [Device; 2] = [Device::Slow, Device::Fast];

impl Depth {
    pub(super) const fn new(most: [u32; 2]) -> Self {
        Self { outstanding: [0; 2], most }
    }

    pub(super) const fn has_room(&self, device: Device) -> bool {
        self.outstanding[device.index()] < self.most[device.index()]
    }

    pub(super) const fn is_idle(&self, device: Device) -> bool {
        self.outstanding[device.index()] == 0
    }

    pub(super) const fn start(&mut self, device: Device) {
        self.outstanding[device.index()] += 1;
    }

    pub(super) const fn done(&mut self, device: Device) {
        self.outstanding[device.index()] -= 1;
    }
}
