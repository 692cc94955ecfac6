//! What was measured, and where: the formats that outlive a run.
//!
//! A run is a folder. [`Provenance`] is its `run.json`: everything needed to judge or repeat the
//! run. [`PointRecord`] is a line of its `results.jsonl`, written when the point is measured. Both
//! carry [`FORMAT`]; a reader refuses a newer one. The crate holds values only; reading and writing
//! files is for others.

mod costs;
mod figures;
mod footprint;
mod histogram;
mod host_use;
mod model_load;
mod outcome;
mod point;
mod predictions;
mod profile;
mod provenance;
mod setup;
mod summary;
mod systems;
mod together;
mod verification;
mod workload;

pub use costs::{COSTS_FORMAT, Cost, CostPart, Costs, CostsError, LeftOut, Reference, ReferenceRun};
pub use figures::{Figures, ResultRow, ResultTable};
pub use footprint::Footprint;
pub use histogram::TakenHistogram;
pub use host_use::{
    GuestsState, HostUse, IdleBaseline, ProcessRole, ProcessUse, role_percent, unattributed_percent,
};
pub use model_load::{Compute, ModelLoadError, ModelRun, ModelRuns};
pub use outcome::{
    DirectionStats, InFlightAtEnd, Interval, LoadOutcome, OpenLoop, Replayed, TargetFacts, TargetKind,
};
pub use point::{
    ClockCheck, Measured, PointKey, PointRecord, PointStatus, Record, RecordError, parse_records,
};
pub use predictions::{Case, CaseSet, Coverage, PredictedCase, PredictionsPlan, PredictionsSummary, Trial};
pub use profile::{
    Band, Capacity, Figure, MAX_SIZES, MAX_WORKERS, PROFILE_FORMAT, Profile, ProfileError, SizeShare, Source,
};
pub use provenance::{
    AcceleratorFacts, DiskFacts, GuestFacts, HostFacts, IN_MEMORY, Plan, Provenance, RunKind,
    parse_provenance,
};
pub use setup::{BackingFacts, DeviceFacts, NotHonoured, SetupFacts};
pub use summary::{
    AdaptersSummary, Conclusion, DeviatedNumbers, DeviationSummary, DisturbedNumbers, Estimated,
    NativeVsVmSummary, NeighbourNumbers, NeighboursSummary, PairNumbers, PointNumbers, PointRatio,
    ShareNumbers, SideNumbers,
};
pub use systems::{Ranged, Simulated, SystemFate, SystemNumbers, SystemRow, SystemVmNumbers, SystemsSummary};
pub use together::{
    MemberMeasured, MemberPlan, MemberRecord, MemberStatus, SetPlan, SetRecord, SetRole, TogetherPlan,
};
pub use verification::{Damage, DamagedBlock, Verification};
pub use workload::{Better, CommandEnd, JobOutcome, Metric, WorkloadOutcome, idle_percent};

/// Version of the run folder's formats. Raised when a field changes its meaning or goes away.
pub const FORMAT: u32 = 1;
