//! The schemas in `schema/` describe what is really written.
//!
//! After a change of format: `VIRTBENCH_UPDATE_SCHEMA=1 cargo test -p virtbench-record --test all schema::`.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test reads and writes files")]

use std::fs;
use std::path::PathBuf;

use schemars::{JsonSchema, schema_for};
use virtbench_record::{
    AdaptersSummary, ApplicationRecord, ApplicationStudySummary, ApplicationSummary, DesktopsRecord,
    DesktopsSummary, DeviationSummary, FenceStatus, LoadOutcome, NativeVsVmSummary, NeighboursSummary,
    OltpOutcome, OltpRecord, OltpSummary, OperationLine, OperationsRecord, OperationsSummary, PapersSummary,
    PlatformSummary, PointRecord, PredictionsSummary, Profile, Provenance, SamplesRecord, SamplesSummary,
    SetRecord, SystemsSummary, TilesRecord, TilesStudySummary, TilesSummary, Trial, UsersOutcome,
    WorkloadOutcome,
};

fn check<T: JsonSchema>(name: &str) {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../schema")).join(name);
    let text = serde_json::to_string_pretty(&schema_for!(T)).unwrap() + "\n";
    if std::env::var("VIRTBENCH_UPDATE_SCHEMA").is_ok() {
        fs::write(&path, &text).unwrap();
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == text, "{name} is out of date: see the head of this test");
}

#[test]
fn published_schemas_are_current() {
    check::<Provenance>("run.schema.json");
    check::<PointRecord>("point.schema.json");
    check::<SetRecord>("set.schema.json");
    check::<LoadOutcome>("load.schema.json");
    check::<WorkloadOutcome>("workload.schema.json");
    check::<Profile>("profile.schema.json");
    check::<NativeVsVmSummary>("study-native-vs-vm.schema.json");
    check::<AdaptersSummary>("study-adapters.schema.json");
    check::<ApplicationSummary>("analyse-application.schema.json");
    check::<TilesSummary>("analyse-tiles.schema.json");
    check::<NeighboursSummary>("study-neighbours.schema.json");
    check::<DeviationSummary>("study-deviation.schema.json");
    check::<OltpOutcome>("oltp.schema.json");
    check::<UsersOutcome>("users.schema.json");
    check::<OltpRecord>("oltp-measurement.schema.json");
    check::<OltpSummary>("study-oltp.schema.json");
    check::<OperationsRecord>("operations.schema.json");
    check::<OperationLine>("operation.schema.json");
    check::<OperationsSummary>("study-operations.schema.json");
    check::<ApplicationRecord>("application-measurement.schema.json");
    check::<ApplicationStudySummary>("study-application.schema.json");
    check::<DesktopsRecord>("desktops.schema.json");
    check::<DesktopsSummary>("study-desktops.schema.json");
    check::<TilesRecord>("tiles.schema.json");
    check::<TilesStudySummary>("study-tiles.schema.json");
    check::<SamplesRecord>("samples.schema.json");
    check::<SamplesSummary>("study-network.schema.json");
    check::<PlatformSummary>("study-platform.schema.json");
    check::<PapersSummary>("papers.schema.json");
    check::<PredictionsSummary>("study-predictions.schema.json");
    check::<Trial>("trial.schema.json");
    check::<SystemsSummary>("study-deviation-systems.schema.json");
    check::<FenceStatus>("fence-status.schema.json");
}
