use super::*;
use virtbench_fence::catalogue;
use virtbench_fence_sim::calibrate::calibrate;

use crate::{Sharing, Store};

fn op(time_ms: u64, offset: u64, len: u32) -> TraceOp {
    TraceOp { time_ns: time_ms * 1_000_000, offset, len, action: TraceAction::Read, line: 1 }
}

/// Random reads of 4 KiB, `per_second` of them for ten seconds.
fn reads(per_second: u64, seed: u64) -> Vec<TraceOp> {
    let mut random = virtbench_units::Random::new(seed);
    (0..10 * per_second).map(|n| op(n * 1000 / per_second, random.below(1 << 20) * BLOCK, 4096)).collect()
}

fn settings() -> Settings {
    Settings { replications: 3, ..Settings::default() }
}

fn predictors() -> Predictors {
    let settings = settings();
    calibrate(&settings.hdd, &settings.ssd, settings.calibration_bytes, settings.seed).unwrap().predictors
}

#[test]
fn a_light_trace_is_disturbed_by_a_heavy_one_without_a_fence_and_hardly_by_virtual_devices() {
    let replays = Replays::new(&[reads(4, 1), reads(90, 2)], Pace::Speed(1.0)).unwrap();
    let predictors = predictors();
    let of = |system: System| replays.measure(&system, &settings(), &predictors).unwrap();
    let without = of(System::new(Store::Hdd, Sharing::Listed(&catalogue::FIFO)));
    let behind = of(System::new(Store::Hdd, Sharing::Listed(&catalogue::PACED)));
    assert_eq!((without[0].requests, without[1].requests), (40, 900));
    assert!(without[0].figures.response_deviation.estimate.mean > 25.0, "{:?}", without[0]);
    assert!(
        behind[0].figures.response_deviation.estimate.mean
            < without[0].figures.response_deviation.estimate.mean / 2.0,
        "{:?}",
        behind[0]
    );
    // All of the light one's requests were answered, alone and in company.
    assert!(without[0].figures.throughput[0].mean > 3.0, "{:?}", without[0]);
}

#[test]
fn operations_become_whole_blocks_as_long_as_a_guest_s_requests() {
    let long = requests(&op(0, 1000, 300_000));
    assert_eq!(
        long.iter().map(|op| (op.offset, op.len)).collect::<Vec<_>>(),
        [(0, 131_072), (131_072, 131_072), (262_144, 40_960)]
    );
    let flush = TraceOp { action: TraceAction::Flush, ..op(0, 0, 0) };
    assert_eq!(requests(&flush), []);
    assert!(matches!(Replays::new(&[vec![flush]], Pace::Speed(1.0)), Err(ReplayError::Nothing(0))));
}

#[test]
fn what_cannot_be_replayed_is_said() {
    assert!(matches!(Replays::new(&[], Pace::Speed(1.0)), Err(ReplayError::Machines(0))));
    assert!(matches!(Replays::new(&[reads(1, 1)], Pace::Max), Err(ReplayError::NoPace)));
    let far = Replays::new(&[vec![op(0, 1 << 45, 4096)]], Pace::Speed(1.0)).unwrap();
    let system = System::new(Store::Hdd, Sharing::Listed(&catalogue::FIFO));
    let found = far.measure(&system, &settings(), &predictors());
    assert!(matches!(found, Err(ReplayError::Beyond { machine: 0, line: 1, .. })), "{found:?}");
    // A trace that goes back in time is refused by the world; readers sort it.
    let back = Replays::new(&[vec![op(5, 0, 4096), op(4, 0, 4096)]], Pace::Speed(1.0)).unwrap();
    let found = back.measure(&system, &settings(), &predictors());
    assert_eq!(found.unwrap_err(), ReplayError::World(WorldError::TraceOrder { disk: 0, index: 1 }));
}
