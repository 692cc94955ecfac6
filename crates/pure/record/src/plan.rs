//! What a run set out to measure: a plan for each study.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::application_study_plan::ApplicationPlan;
use crate::colocation_plan::ColocationPlan;
use crate::desktops_plan::DesktopsPlan;
use crate::network_plan::NetworkPlan;
use crate::oltp_study_plan::OltpStudyPlan;
use crate::operations_plan::OperationsPlan;
use crate::plan_difference::first_difference;
use crate::platform_plan::PlatformPlan;
use crate::predictions_plan::PredictionsPlan;
use crate::sides_plan::SidesPlan;
use crate::tiles_plan::TilesPlan;

/// What a run set out to measure. A resumed run must have the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "study", rename_all = "kebab-case")]
pub enum Plan {
    /// The same load natively and in a VM ([ESX Disk 2003], section 3).
    NativeVsVm(GridPlan),
    /// The same load through different virtual adapters and over different backings ([ESX Adapters 2006]).
    Adapters(GridPlan),
    /// The same load on environments of whatever kind: this host, guests, machines that exist.
    Compare(ComparePlan),
    /// The same workload in one VM, in two, in three, ... at once ([Multi-VM 2010]).
    Neighbours(ColocationPlan),
    /// VMs with others beside them against the same VMs alone ([VirtualFence 2013], sections 4 and 5).
    Deviation(ColocationPlan),
    /// Applications that are profiled, predicted, and then run in a VM ([ESX Disk 2003], sections 4 and 5).
    Predictions(PredictionsPlan),
    /// A database under TPC-C's transactions, natively and in VMs ([Platform 2014], section IV.A).
    Oltp(OltpStudyPlan),
    /// Management operations on a platform's VMs ([Platform 2014], sections III.C and IV.C).
    Operations(OperationsPlan),
    /// An appliance under a client of the user's, natively and in VMs ([Platform 2014], section III.A).
    Application(ApplicationPlan),
    /// Users of more and more desktops at once ([Platform 2014], section IV.D).
    Desktops(DesktopsPlan),
    /// More and more tiles of different applications at once ([Platform 2014], sections III.B and IV.B).
    Tiles(TilesPlan),
    /// Network paths natively, to guests and between guests.
    Network(NetworkPlan),
    /// One platform, domain by domain, with a score ([Platform 2014], section VI).
    Platform(PlatformPlan),
}

/// Points of a grid, each measured in several environments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GridPlan {
    /// Name of the grid, such as `quick` or `paper`.
    pub grid: String,
    /// Block sizes, in bytes.
    pub blocks_bytes: Vec<u64>,
    /// Shares of reads, in percent.
    pub read_percents: Vec<u8>,
    /// Shares of random seeks, in percent.
    pub random_percents: Vec<u8>,
    /// Repetitions of each point in each environment.
    pub repetitions: u32,
    /// Outstanding I/Os a worker.
    pub outstanding: u32,
    /// Workers.
    pub workers: u32,
    /// Ramp-up before each point, in nanoseconds.
    pub ramp_ns: u64,
    /// Measuring time of each point, in nanoseconds.
    pub time_ns: u64,
    /// Size of the disk that is loaded, in bytes.
    pub size_bytes: u64,
    /// Names of the environments, the reference first.
    pub environments: Vec<String>,
    /// Seed of every random choice.
    pub seed: u64,
}

/// Points of a grid, and where they are measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparePlan {
    /// The points; its environments are names.
    #[serde(flatten)]
    pub grid: GridPlan,
    /// What each environment is, in the same order, such as `native:` or `ssh://root@metal/srv`.
    pub uris: Vec<String>,
}

impl Plan {
    /// The study's name on the command line.
    #[must_use]
    pub fn study(&self) -> &'static str {
        match self {
            Self::NativeVsVm(_) => "native-vs-vm",
            Self::Adapters(_) => "adapters",
            Self::Compare(_) => "compare",
            Self::Neighbours(_) => "neighbours",
            Self::Deviation(_) => "deviation",
            Self::Predictions(_) => "predictions",
            Self::Oltp(_) => "oltp",
            Self::Operations(_) => "operations",
            Self::Application(_) => "application",
            Self::Desktops(_) => "desktops",
            Self::Tiles(_) => "tiles",
            Self::Network(_) => "network",
            Self::Platform(_) => "platform",
        }
    }

    /// The points of a grid, if that is what is measured.
    #[must_use]
    pub fn grid(&self) -> Option<&GridPlan> {
        match self {
            Self::NativeVsVm(plan) | Self::Adapters(plan) => Some(plan),
            Self::Compare(plan) => Some(&plan.grid),
            Self::Neighbours(_)
            | Self::Deviation(_)
            | Self::Predictions(_)
            | Self::Oltp(_)
            | Self::Operations(_)
            | Self::Application(_)
            | Self::Desktops(_)
            | Self::Tiles(_)
            | Self::Network(_)
            | Self::Platform(_) => None,
        }
    }

    /// Machines that run at one moment, if that is what is measured.
    #[must_use]
    pub fn colocation(&self) -> Option<&ColocationPlan> {
        match self {
            Self::Neighbours(plan) | Self::Deviation(plan) => Some(plan),
            Self::NativeVsVm(_)
            | Self::Adapters(_)
            | Self::Compare(_)
            | Self::Predictions(_)
            | Self::Oltp(_)
            | Self::Operations(_)
            | Self::Application(_)
            | Self::Desktops(_)
            | Self::Tiles(_)
            | Self::Network(_)
            | Self::Platform(_) => None,
        }
    }

    /// Applications that are predicted, if that is what is measured.
    #[must_use]
    pub fn predictions(&self) -> Option<&PredictionsPlan> {
        match self {
            Self::Predictions(plan) => Some(plan),
            Self::NativeVsVm(_)
            | Self::Adapters(_)
            | Self::Compare(_)
            | Self::Neighbours(_)
            | Self::Deviation(_)
            | Self::Oltp(_)
            | Self::Operations(_)
            | Self::Application(_)
            | Self::Desktops(_)
            | Self::Tiles(_)
            | Self::Network(_)
            | Self::Platform(_) => None,
        }
    }

    /// A database on several sides, if that is what is measured.
    #[must_use]
    pub fn oltp(&self) -> Option<&OltpStudyPlan> {
        if let Self::Oltp(plan) = self { Some(plan) } else { None }
    }

    /// Management operations, if that is what is measured.
    #[must_use]
    pub fn operations(&self) -> Option<&OperationsPlan> {
        if let Self::Operations(plan) = self { Some(plan) } else { None }
    }

    /// An application on several sides, if that is what is measured.
    #[must_use]
    pub fn application(&self) -> Option<&ApplicationPlan> {
        if let Self::Application(plan) = self { Some(plan) } else { None }
    }

    /// Users of desktops, if that is what is measured.
    #[must_use]
    pub fn desktops(&self) -> Option<&DesktopsPlan> {
        if let Self::Desktops(plan) = self { Some(plan) } else { None }
    }

    /// Tiles of different applications, if that is what is measured.
    #[must_use]
    pub fn tiles(&self) -> Option<&TilesPlan> {
        if let Self::Tiles(plan) = self { Some(plan) } else { None }
    }

    /// A platform's domains, if that is what is measured.
    #[must_use]
    pub fn platform(&self) -> Option<&PlatformPlan> {
        if let Self::Platform(plan) = self { Some(plan) } else { None }
    }

    /// What is compared side by side, where samples are measured of each.
    #[must_use]
    pub fn sides(&self) -> Option<SidesPlan> {
        match self {
            Self::Network(plan) => Some(plan.sides_plan()),
            Self::Platform(plan) => Some(plan.sides_plan()),
            _ => None,
        }
    }

    /// Names of the environments of a grid, the reference first; none where there is no grid.
    #[must_use]
    pub fn environments(&self) -> &[String] {
        self.grid().map_or(&[], |plan| &plan.environments)
    }

    /// Seed of every random choice. The trials of predictions have seeds of their own.
    #[must_use]
    pub fn seed(&self) -> u64 {
        match self {
            Self::NativeVsVm(plan) | Self::Adapters(plan) => plan.seed,
            Self::Compare(plan) => plan.grid.seed,
            Self::Neighbours(plan) | Self::Deviation(plan) => plan.seed,
            Self::Predictions(_) => 1,
            Self::Oltp(plan) => plan.seed,
            Self::Operations(plan) => plan.seed,
            Self::Application(plan) => plan.seed,
            Self::Desktops(plan) => plan.seed,
            Self::Tiles(plan) => plan.seed,
            Self::Network(plan) => plan.seed,
            Self::Platform(plan) => plan.seed,
        }
    }

    /// The first part of this plan that another one does not share, as a user knows it.
    #[must_use]
    pub fn first_difference(&self, other: &Self) -> Option<Cow<'static, str>> {
        first_difference(self, other)
    }
}
