//! What a member of a tile runs on.

use std::net::Ipv4Addr;

use virtbench_lab::RunningAppliance;
use virtbench_record::ApplianceFacts;

use super::existing::ExistingMember;
use crate::disks::served::Served;

/// What a member of a tile runs on.
pub(super) enum MemberMachine {
    /// An appliance of this run.
    Started(Box<RunningAppliance>),
    /// It was there before, and is left alone.
    Existing(ExistingMember),
}

impl MemberMachine {
    /// What its generator has to know.
    pub(super) fn served(&self) -> &dyn Served {
        match self {
            Self::Started(appliance) => &**appliance,
            Self::Existing(existing) => existing,
        }
    }

    /// What it stands on, where this run has started it.
    pub(super) fn facts(&self) -> Option<&ApplianceFacts> {
        match self {
            Self::Started(appliance) => Some(appliance.facts()),
            Self::Existing(_) => None,
        }
    }

    /// The address by which others of its tile reach it, where they share a network.
    pub(super) fn shared_address(&self) -> Option<Ipv4Addr> {
        match self {
            Self::Started(appliance) => appliance.shared_address(),
            Self::Existing(_) => None,
        }
    }

    /// Why it has ended, if it has. Of one that was there before only its generator tells.
    pub(super) fn crashed(&mut self) -> Option<String> {
        match self {
            Self::Started(appliance) => appliance.crashed().map(|error| error.to_string()),
            Self::Existing(_) => None,
        }
    }

    /// Processor time of the thread that carries its network on this host, in nanoseconds.
    pub(super) fn network_thread_ns(&self) -> Option<u64> {
        match self {
            Self::Started(appliance) => appliance.network_thread_ns(),
            Self::Existing(_) => None,
        }
    }
}

/// A member that runs.
pub(super) struct StandingMember {
    /// Which tile, from 1.
    pub(super) tile: u32,
    /// Its place in the plan's members.
    pub(super) place: usize,
    pub(super) machine: MemberMachine,
}
