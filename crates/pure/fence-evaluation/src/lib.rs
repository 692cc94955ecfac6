//! The evaluation of [VirtualFence 2013], section 7, as experiments in the simulator's world.
//!
//! A [`System`] is a way of storing, a row of the catalogue or a variation of one, a [`Case`] a system under a workload
//! with a load for each virtual machine. [`Case::run`] finds the system's saturation, paces each machine
//! to its share of it, runs each alone and all together, and says by how much they deviate.

mod case;
mod case_error;
mod figures;
mod findings;
mod guard;
mod load;
mod metric;
mod pace;
mod plan;
mod planned;
mod published;
mod replay;
mod settings;
mod system;

pub use case::{Case, CaseResult, Compared, Sample, VmResult};
pub use case_error::CaseError;
pub use figures::{Bar, Row};
pub use findings::{Finding, Verdict, findings};
pub use guard::{Guard, GuardResult};
pub use load::{Load, Saturated, Site};
pub use metric::{FigureError, Machine, Metric, PaperFigure};
pub use pace::{Bench, Paced};
pub use plan::{Layout, Plan, PlanError, Targets, Trial, front, plans, survivors};
pub use planned::{PlanTable, Planned};
pub use published::{Published, published};
pub use replay::{ReplayError, Replayed, Replays};
pub use settings::{Saturating, Settings, SettingsError};
pub use system::{MOST_PLANNED, Pacing, Sharing, SlotCounts, Store, System};
pub use virtbench_model::deviation_percent;

#[cfg(test)]
#[path = "extensions_tests.rs"]
mod extensions_tests;
