//! What was measured, and where: the formats that outlive a run.
//!
//! A run is a folder. [`Provenance`] is its `run.json`: everything needed to judge or repeat the
//! run. [`Plan`] in it says which study it is, and what [`Records`] its `results.jsonl` has, a line
//! written when it is measured. Both carry their format; a reader refuses a newer one. The crate holds values only; reading and writing
//! files is for others.

mod appliance;
mod application;
mod application_study_plan;
mod colocation;
mod colocation_plan;
mod costs;
mod desktops;
mod desktops_plan;
mod fence_status;
mod footprint;
mod host_use;
mod measurement;
mod oltp;
mod oltp_study;
mod operations;
mod operations_study;
mod outcome;
mod papers;
mod plan;
mod platform_plan;
mod point;
mod predictions;
mod predictions_plan;
mod profile;
mod provenance;
mod records;
mod samples;
mod setup;
mod sides_plan;
mod storages;
mod summary;
mod systems;
mod tiles;
mod tiles_plan;
mod tiles_study;
mod users;
mod workload;

pub use appliance::{ApplianceFacts, ApplianceRoot, CrossingCost, PathCost, ServiceReady};
pub use application::{
    ApplicationFailureDetail, ApplicationKey, ApplicationMeasured, ApplicationMetricNumbers,
    ApplicationRatios, ApplicationRecord, ApplicationRow, ApplicationSideNumbers, ApplicationStudySide,
    ApplicationStudySummary, ApplicationSummary, ApplicationTable, NeighbourMeasured, Quantity, TierMeasured,
};
pub use application_study_plan::{
    ApplianceSide, ApplicationLoad, ApplicationMetric, ApplicationPlan, ApplicationTier,
};
pub use colocation::{MemberMeasured, MemberRecord, MemberStart, MemberStatus, SetRecord, SetStart};
pub use colocation_plan::{ColocationPlan, Home, MemberPlan, SetPlan, SetRole};
pub use costs::{
    COSTS_FORMAT, Cost, CostPart, Costs, CostsError, CostsOrigin, LeftOut, Reference, ReferenceRun, scaled_ns,
};
pub use desktops::{
    DesktopAgreement, DesktopDone, DesktopEcho, DesktopGone, DesktopGroupNumbers, DesktopOperationNumbers,
    DesktopPercentile, DesktopPicture, DesktopTimes, DesktopVideo, DesktopVideoNumbers, DesktopsKey,
    DesktopsMeasured, DesktopsNumbers, DesktopsRecord, DesktopsSummary,
};
pub use desktops_plan::{
    DesktopGroup, DesktopLink, DesktopNumbers, DesktopOperation, DesktopsPlan, PicturePart,
};
pub use fence_status::{
    DiskStatus, FenceStatus, OfWindow, PacedStatus, PredictionStatus, SlotStatus, SteadinessStatus,
    TokenStatus,
};
pub use footprint::{Crossings, DiskCounts, Footprint, IoStalls};
pub use host_use::{
    ClockFacts, FrequencyFacts, GuestsState, HostTuning, HostUse, IdleBaseline, KsmFacts, ProcessRole,
    ProcessUse, role_percent, unattributed_percent,
};
pub use measurement::{Measurement, MeasurementKey, NoDetail, Status};
pub use oltp::{
    DatabaseKind, OltpChoice, OltpDeferred, OltpIsolation, OltpKind, OltpMix, OltpOpenLoop, OltpOutcome,
    OltpPlan, OltpSecond, OltpStudyPlan, OltpTransactions, OltpUsers, OltpViolation,
};
pub use oltp_study::{
    OltpCause, OltpCauseNumbers, OltpCurveNumbers, OltpEvent, OltpFailureDetail, OltpHostSecond, OltpKey,
    OltpMeasured, OltpRecord, OltpSideNumbers, OltpStep, OltpSummary, OltpTimeline,
};
pub use operations::{
    CloneKind, FailureKind, JobFigure, OperationKind, OperationsLoad, OperationsPlan, Phase, Phases,
    PlatformFacts,
};
pub use operations_study::{
    CloneNumbers, DensityNumbers, JobSummary, LatencyNumbers, ManagementNumbers, ManagementProcess,
    ManagementUse, OperationLine, OperationNumbers, OperationsKey, OperationsMeasured, OperationsRecord,
    OperationsStepNumbers, OperationsSummary, SteadyWindow, TenantMeasured, TenantNumbers,
};
pub use outcome::{
    Damage, DamagedBlock, DirectionStats, InFlightAtEnd, Interval, LoadOutcome, OpenLoop, Replayed,
    TakenHistogram, TargetFacts, TargetKind, Verification,
};
pub use papers::{
    ClaimFinding, ClaimVerdict, JudgedClaim, PaperTable, PaperTableCell, PaperTableRow, PapersSummary,
};
pub use plan::{ComparePlan, GridPlan, Plan};
pub use platform_plan::{PlatformDomain, PlatformPlan, PlatformReference, PlatformRun};
pub use point::{
    ClockCheck, Measured, PointKey, PointMetrics, PointRecord, PointStatus, Record, RecordError, ResultRow,
    ResultTable, TableFacts, parse_records,
};
pub use predictions::{
    Compute, Coverage, ModelLoadError, ModelRun, ModelRuns, PredictedCase, PredictionsSummary, Trial,
};
pub use predictions_plan::{Case, CaseSet, PredictionsPlan};
pub use profile::{
    Band, Capacity, MAX_SIZES, MAX_WORKERS, PROFILE_FORMAT, Profile, ProfileError, SizeShare, Source, Sourced,
};
pub use provenance::{
    AcceleratorFacts, DiskFacts, GuestFacts, HostFacts, IN_MEMORY, MachineFacts, Provenance, RUN_FORMAT,
    parse_provenance,
};
pub use records::Records;
pub use samples::{
    NumaPages, ObservedDisk, PlatformDomainNumbers, PlatformMetric, PlatformObserved, PlatformSummary,
    SampleNumbers, SamplesKey, SamplesMeasured, SamplesRecord, SamplesSideNumbers, SamplesSummary,
    TimeCounts, TimePeak,
};
pub use setup::{BackingFacts, DeviceFacts, NotHonoured, SetupFacts};
pub use sides_plan::{NetworkPathKind, NetworkPlan, SidesPlan};
pub use storages::{OperationSpeed, StorageSpeed};
pub use summary::{
    AdaptersSummary, Conclusion, DeviatedNumbers, DeviationSummary, DisturbedNumbers, Estimated, GuestRatios,
    KindNumbers, LooseStart, MachineNumbers, NativeVsVmSummary, NeighbourNumbers, NeighboursSummary,
    PairNumbers, PointNumbers, PointRatio, ShareNumbers, SideNumbers, StandingNumbers,
};
pub use systems::{Ranged, Simulated, SystemFate, SystemNumbers, SystemRow, SystemVmNumbers, SystemsSummary};
pub use tiles::{
    INFRASTRUCTURE, TILE_COLUMNS, TileChangeNumbers, TileMemberNumbers, TileRow, TileSideNumbers,
    TileStepNumbers, TileTable, TilesSummary,
};
pub use tiles_plan::{
    TileAlone, TileClient, TileLevels, TileLoad, TileLoadKind, TileMemberPlan, TileNumbers, TilesHost,
    TilesPlan,
};
pub use tiles_study::{
    PowerSample, TileBreach, TileDone, TileEnergy, TileHostNumbers, TileHostSecond, TileMemberMeasured,
    TilePredicted, TilePredictedMember, TilePredictionErrors, TileSecond, TileVoid, TilesFailureDetail,
    TilesKey, TilesMeasured, TilesRecord, TilesStudySummary,
};
pub use users::{UsersOpenLoop, UsersOperation, UsersOutcome, UsersPlan, UsersSecond, UsersService};
pub use workload::{Better, CommandEnd, JobOutcome, Metric, Sample, WorkloadOutcome, idle_percent};

/// Version of the formats of records. Raised when a field changes its meaning or goes away.
pub const FORMAT: u32 = 1;
