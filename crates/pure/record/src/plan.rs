//! What a run set out to measure: a plan for each study.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::application_study_plan::ApplicationPlan;
use crate::colocation_plan::ColocationPlan;
use crate::desktops_plan::DesktopsPlan;
use crate::oltp::OltpStudyPlan;
use crate::operations::OperationsPlan;
use crate::platform_plan::PlatformPlan;
use crate::predictions_plan::PredictionsPlan;
use crate::sides_plan::{NetworkPlan, SidesPlan};
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

/// How parts of plans are called, those first that say most. Others go by their names in `run.json`.
const WORDS: [(&str, &str); 53] = [
    ("study", "the study"),
    ("grid", "the grid"),
    ("blocks_bytes", "the grid's block sizes"),
    ("read_percents", "the grid's shares of reads"),
    ("random_percents", "the grid's shares of random seeks"),
    ("database", "the database"),
    ("load", "what is loaded, and how"),
    ("recipe", "the recipe"),
    ("tile", "the tile"),
    ("root", "the appliance's root"),
    ("members", "the members"),
    ("platform", "the platform"),
    ("cases", "the applications"),
    ("paths", "the network paths"),
    ("workloads", "who runs beside whom"),
    ("sets", "who runs beside whom"),
    ("pinned", "who runs beside whom"),
    ("homes", "what the environments are"),
    ("uris", "what the environments are"),
    ("environments", "the environments"),
    ("tiers", "the tiers"),
    ("metrics", "the metrics"),
    ("sides", "the sides"),
    ("neighbours", "the neighbours"),
    ("neighbour", "the neighbours"),
    ("mix", "the mix"),
    ("day_file", "the day"),
    ("operations", "the day"),
    ("masks", "the masks"),
    ("link", "the link to desktops"),
    ("desktops", "the numbers of desktops"),
    ("tiles", "the numbers of tiles"),
    ("vms", "the numbers of VMs"),
    ("users", "the users"),
    ("warehouses", "the number of warehouses"),
    ("trials", "the number of trials"),
    ("repetitions", "the number of repetitions"),
    ("outstanding", "the queue depth"),
    ("workers", "the number of workers"),
    ("ramp_ns", "the ramp-up"),
    ("ramp_up_ns", "the ramp-up"),
    ("search_ns", "the time of the search"),
    ("time_ns", "the measuring time"),
    ("limit_ns", "the time limit"),
    ("size_bytes", "the size of the disk"),
    ("memory_bytes", "the memory"),
    ("vcpus", "the processors"),
    ("disk", "the disk"),
    ("network", "the network"),
    ("host", "the machine that runs members"),
    ("infrastructure", "the infrastructure load"),
    ("accelerator", "the accelerator"),
    ("seed", "the seed"),
];

/// What may differ: how long something takes by the user's own account.
const LEFT_OUT: [&str; 1] = ["takes_ns"];

/// The first part of a plan that another one does not share, as a user knows it.
pub(crate) fn first_difference(a: &impl Serialize, b: &impl Serialize) -> Option<Cow<'static, str>> {
    let (a, b) = (parts(a), parts(b));
    let differs = |name: &str| a.get(name) != b.get(name);
    let known = WORDS.iter().find(|(name, _)| differs(name)).map(|(_, words)| Cow::Borrowed(*words));
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    known.or_else(|| names.into_iter().find(|name| differs(name)).map(|name| unnamed(name).into()))
}

fn parts(plan: &impl Serialize) -> Map<String, Value> {
    let Ok(Value::Object(mut parts)) = serde_json::to_value(plan) else { return Map::new() };
    parts.retain(|name, _| !LEFT_OUT.contains(&name.as_str()));
    parts
}

/// `most_at_once` as `the plan's "most at once"`.
fn unnamed(name: &str) -> String {
    let words = name.trim_end_matches("_ns").trim_end_matches("_bytes").replace('_', " ");
    format!("the plan's {words:?}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whatever_part_differs_is_found_that_first_which_says_most() {
        let plan = json!({"study": "oltp", "seed": 1, "vms": [1, 2], "most_at_once": 4, "takes_ns": 5});
        assert_eq!(first_difference(&plan, &plan), None);
        for (name, words) in [
            ("study", Some("the study")),
            ("seed", Some("the seed")),
            ("vms", Some("the numbers of VMs")),
            ("most_at_once", Some("the plan's \"most at once\"")),
            ("takes_ns", None),
        ] {
            let mut other = plan.clone();
            other[name] = json!("another");
            assert_eq!(first_difference(&plan, &other).as_deref(), words, "{name}");
            other.as_object_mut().unwrap().remove(name);
            assert_eq!(first_difference(&plan, &other).as_deref(), words, "{name} is missing");
            other["study"] = json!("tiles");
            assert_eq!(first_difference(&other, &plan).as_deref(), Some("the study"));
        }
    }

    #[test]
    fn a_part_without_words_goes_by_its_name() {
        assert_eq!(unnamed("most_at_once"), "the plan's \"most at once\"");
        assert_eq!(unnamed("piece_ns"), "the plan's \"piece\"");
    }
}
