//! All schedulers by their configurations.

use std::any::Any;

use crate::config_error::ConfigError;
use crate::paced::PacedConfig;
use crate::peers::{Cap, CfqConfig, ElevatorPolicy, FairConfig, FifoPolicy, Shares};
use crate::scheduler::{Policy, Scheduler};
use crate::slots::SlotsConfig;

/// Who is served when.
#[derive(Debug, Clone, PartialEq)]
pub enum SchedulerConfig {
    /// First in, first out.
    Fifo,
    /// The circular elevator, C-SCAN.
    Elevator,
    /// A cap on each disk, in the order of the disks.
    TokenBucket(Vec<Cap>),
    /// Reservation, limit and weight of each disk.
    MClock(Vec<Shares>),
    /// Budgets of sectors, as BFQ.
    FairQueue(FairConfig),
    /// Slices of time for each process, as Linux's CFQ.
    Cfq(CfqConfig),
    /// Time slots that are not work-conserving ([VirtualFence 2013], section 6.3).
    Slots(SlotsConfig),
    /// A virtual device for each disk, and answers when they are due.
    Paced(PacedConfig),
}

impl SchedulerConfig {
    fn policy(&self) -> &dyn Policy {
        match self {
            Self::Fifo => &FifoPolicy,
            Self::Elevator => &ElevatorPolicy,
            Self::TokenBucket(caps) => caps,
            Self::MClock(shares) => shares,
            Self::FairQueue(fair) => fair,
            Self::Cfq(cfq) => cfq,
            Self::Slots(slots) => slots,
            Self::Paced(paced) => paced,
        }
    }

    /// Checks it for so many disks.
    pub(crate) fn validate(&self, disks: usize) -> Result<(), ConfigError> {
        self.policy().validate(disks)
    }

    /// The scheduler over devices of these depths, slow and fast.
    pub(crate) fn scheduler(&self, depth: [u32; 2], disks: usize) -> Box<dyn Scheduler> {
        self.policy().scheduler(depth, disks)
    }

    /// What [`Scheduler::reconfigure`] is given.
    pub(crate) fn settings(&self) -> &dyn Any {
        self.policy()
    }
}
