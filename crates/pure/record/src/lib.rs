//! What was measured, and where: the formats that outlive a run.
//!
//! A run is a folder. [`Provenance`] is its `run.json`: everything needed to judge or repeat the
//! run. [`Plan`] in it says which study it is, and what [`Records`] its `results.jsonl` has, a line
//! written when it is measured. Both carry their format; a reader refuses a newer one. The crate holds values only; reading and writing
//! files is for others.

mod appliance;
mod appliance_side;
mod application;
mod application_study;
mod application_study_plan;
mod application_study_summary;
mod application_summary;
mod colocation;
mod colocation_plan;
mod costs;
mod crossing;
mod desktops;
mod desktops_plan;
mod desktops_summary;
mod earlier;
mod fence_status;
mod footprint;
mod histogram;
mod host_tuning;
mod host_use;
mod management_use;
mod measurement;
mod model_load;
mod network_plan;
mod oltp;
mod oltp_study;
mod oltp_study_plan;
mod oltp_summary;
mod oltp_timeline;
mod operations;
mod operations_plan;
mod operations_study;
mod operations_summary;
mod outcome;
mod plan;
mod plan_difference;
mod platform_observed;
mod platform_plan;
mod platform_reference;
mod platform_summary;
mod point;
mod point_metrics;
mod predictions;
mod predictions_plan;
mod profile;
mod provenance;
mod records;
mod sample;
mod samples;
mod samples_summary;
mod set_start;
mod setup;
mod sides_plan;
mod summary;
mod systems;
mod table_facts;
mod tiles;
mod tiles_plan;
mod tiles_study;
mod tiles_study_summary;
mod tiles_summary;
mod users;
mod verification;
mod workload;

pub use appliance::{ApplianceFacts, ApplianceRoot, PathCost, ServiceReady};
pub use appliance_side::ApplianceSide;
pub use application::{ApplicationRow, ApplicationTable, Quantity};
pub use application_study::{
    ApplicationFailureDetail, ApplicationKey, ApplicationMeasured, ApplicationRecord, NeighbourMeasured,
    TierMeasured,
};
pub use application_study_plan::{ApplicationLoad, ApplicationMetric, ApplicationPlan, ApplicationTier};
pub use application_study_summary::{
    ApplicationMetricNumbers, ApplicationStudySide, ApplicationStudySummary,
};
pub use application_summary::{ApplicationRatios, ApplicationSideNumbers, ApplicationSummary};
pub use colocation::{MemberMeasured, MemberRecord, MemberStatus, SetRecord};
pub use colocation_plan::{ColocationPlan, Home, MemberPlan, SetPlan, SetRole};
pub use costs::{COSTS_FORMAT, Cost, CostPart, Costs, CostsError, LeftOut, Reference, ReferenceRun};
pub use crossing::CrossingCost;
pub use desktops::{
    DesktopDone, DesktopEcho, DesktopGone, DesktopPicture, DesktopTimes, DesktopVideo, DesktopsKey,
    DesktopsMeasured, DesktopsRecord,
};
pub use desktops_plan::{
    DesktopGroup, DesktopLink, DesktopNumbers, DesktopOperation, DesktopsPlan, PicturePart,
};
pub use desktops_summary::{
    DesktopAgreement, DesktopGroupNumbers, DesktopOperationNumbers, DesktopPercentile, DesktopVideoNumbers,
    DesktopsNumbers, DesktopsSummary,
};
pub use fence_status::{
    DiskStatus, FenceStatus, OfWindow, PacedStatus, PredictionStatus, SlotStatus, SteadinessStatus,
    TokenStatus,
};
pub use footprint::Footprint;
pub use histogram::TakenHistogram;
pub use host_tuning::{ClockFacts, FrequencyFacts, HostTuning, KsmFacts};
pub use host_use::{
    GuestsState, HostUse, IdleBaseline, ProcessRole, ProcessUse, role_percent, unattributed_percent,
};
pub use management_use::{ManagementProcess, ManagementUse};
pub use measurement::{Measurement, MeasurementKey, NoDetail, Status};
pub use model_load::{Compute, ModelLoadError, ModelRun, ModelRuns};
pub use network_plan::{NetworkPathKind, NetworkPlan};
pub use oltp::{
    DatabaseKind, OltpChoice, OltpDeferred, OltpIsolation, OltpKind, OltpMix, OltpOpenLoop, OltpOutcome,
    OltpPlan, OltpSecond, OltpTransactions, OltpViolation,
};
pub use oltp_study::{OltpFailureDetail, OltpKey, OltpMeasured, OltpRecord, OltpStep};
pub use oltp_study_plan::{OltpStudyPlan, OltpUsers};
pub use oltp_summary::{OltpCauseNumbers, OltpCurveNumbers, OltpSideNumbers, OltpSummary};
pub use oltp_timeline::{OltpCause, OltpEvent, OltpHostSecond, OltpTimeline};
pub use operations::{CloneKind, FailureKind, JobFigure, OperationKind, Phase, Phases, PlatformFacts};
pub use operations_plan::{OperationsLoad, OperationsPlan};
pub use operations_study::{
    JobSummary, OperationLine, OperationNumbers, OperationsKey, OperationsMeasured, OperationsRecord,
    SteadyWindow, TenantMeasured,
};
pub use operations_summary::{
    CloneNumbers, DensityNumbers, LatencyNumbers, ManagementNumbers, OperationsStepNumbers,
    OperationsSummary, TenantNumbers,
};
pub use outcome::{
    DirectionStats, InFlightAtEnd, Interval, LoadOutcome, OpenLoop, Replayed, TargetFacts, TargetKind,
};
pub use plan::{ComparePlan, GridPlan, Plan};
pub use platform_observed::{NumaPages, ObservedDisk, PlatformObserved};
pub use platform_plan::{PlatformDomain, PlatformPlan, PlatformRun};
pub use platform_reference::PlatformReference;
pub use platform_summary::{PlatformDomainNumbers, PlatformMetric, PlatformSummary};
pub use point::{
    ClockCheck, Measured, PointKey, PointRecord, PointStatus, Record, RecordError, parse_records,
};
pub use point_metrics::{PointMetrics, ResultRow, ResultTable};
pub use predictions::{Coverage, PredictedCase, PredictionsSummary, Trial};
pub use predictions_plan::{Case, CaseSet, PredictionsPlan};
pub use profile::{
    Band, Capacity, MAX_SIZES, MAX_WORKERS, PROFILE_FORMAT, Profile, ProfileError, SizeShare, Source, Sourced,
};
pub use provenance::{
    AcceleratorFacts, DiskFacts, GuestFacts, HostFacts, IN_MEMORY, MachineFacts, Provenance, RUN_FORMAT,
    parse_provenance,
};
pub use records::Records;
pub use sample::Sample;
pub use samples::{SamplesKey, SamplesMeasured, SamplesRecord, TimeCounts};
pub use samples_summary::{SampleNumbers, SamplesSideNumbers, SamplesSummary, TimePeak};
pub use set_start::{MemberStart, SetStart};
pub use setup::{BackingFacts, DeviceFacts, NotHonoured, SetupFacts};
pub use sides_plan::SidesPlan;
pub use summary::{
    AdaptersSummary, Conclusion, DeviatedNumbers, DeviationSummary, DisturbedNumbers, Estimated, GuestRatios,
    KindNumbers, LooseStart, MachineNumbers, NativeVsVmSummary, NeighbourNumbers, NeighboursSummary,
    PairNumbers, PointNumbers, PointRatio, ShareNumbers, SideNumbers, StandingNumbers,
};
pub use systems::{Ranged, Simulated, SystemFate, SystemNumbers, SystemRow, SystemVmNumbers, SystemsSummary};
pub use table_facts::TableFacts;
pub use tiles::{INFRASTRUCTURE, TILE_COLUMNS, TileRow, TileTable};
pub use tiles_plan::{
    TileClient, TileLevels, TileLoad, TileLoadKind, TileMemberPlan, TileNumbers, TilesHost, TilesPlan,
};
pub use tiles_study::{
    PowerSample, TileDone, TileEnergy, TileHostSecond, TileMemberMeasured, TileSecond, TilesFailureDetail,
    TilesKey, TilesMeasured, TilesRecord,
};
pub use tiles_study_summary::{TileBreach, TileHostNumbers, TileVoid, TilesStudySummary};
pub use tiles_summary::{
    TileChangeNumbers, TileMemberNumbers, TileSideNumbers, TileStepNumbers, TilesSummary,
};
pub use users::{UsersOpenLoop, UsersOperation, UsersOutcome, UsersPlan, UsersSecond, UsersService};
pub use verification::{Damage, DamagedBlock, Verification};
pub use workload::{Better, CommandEnd, JobOutcome, Metric, WorkloadOutcome, idle_percent};

/// Version of the formats of records. Raised when a field changes its meaning or goes away.
pub const FORMAT: u32 = 1;
