//! Studies of applications, of a control plane, and predictions.

use virtbench_model::predict::{Breakdown, Part, PredictionMethod, Rounding, WhatIf};
use virtbench_model::{Prediction, Span};
use virtbench_record::{
    Capacity, Case, CaseSet, FORMAT, OltpCause, OltpEvent, OltpRecord, OltpStep, OltpTimeline,
    PROFILE_FORMAT, Plan, PredictionsPlan, Profile, Provenance, Quantity, Records, Source, Sourced, Status,
    Trial,
};
use virtbench_report::{PredictionPage, prediction_html};
use virtbench_units::LatencyRecorder;

use super::synthetic::described;

use virtbench_samples::application;
use virtbench_samples::oltp as database;
use virtbench_samples::operations;
use virtbench_samples::samples as network;

/// Natively ten times as fast; in its third second the database writes a checkpoint.
pub fn database() -> (Provenance, Records) {
    let mut records: Vec<OltpRecord> = Vec::new();
    for (side, scale) in [("native", 10), ("vm", 1)] {
        for (users, rate, idle) in [(1, 20, 60.0), (2, 38, 25.0), (4, 50, 1.0), (8, 51, 0.5)] {
            let measured = database::measured(users, [rate * scale; 10], idle);
            records.push(database::record(side, OltpStep::Search, users, 0, measured));
        }
        let seconds = [50, 52, 31, 49, 51, 50, 48, 53, 50, 51].map(|rate| rate * scale);
        records.push(database::record(side, OltpStep::Saturation, 4, 0, database::measured(4, seconds, 1.0)));
    }
    for (number, record) in records.iter_mut().enumerate() {
        let Status::Measured(measured) = &mut record.status else { continue };
        let checkpoint =
            OltpEvent { cause: OltpCause::Checkpoint, begin_ns: 2_000_000_000, end_ns: 2_900_000_000 };
        let mut recorder = LatencyRecorder::new();
        (1..=100u64).for_each(|part| recorder.record(part * 400_000 * u64::from(record.key.users)));
        if let Some(new_order) = measured.outcome.transactions.get_mut("new_order") {
            new_order.latency_ns = recorder.summary();
        }
        measured.timeline = Some(OltpTimeline { events: vec![checkpoint], ..OltpTimeline::default() });
        let slower = if number < 5 { 1.0 } else { 1.2 };
        measured.known.extend([
            (Quantity::CyclesPerTransaction, 3e6 * slower * 1.1),
            (Quantity::CyclesPerInstruction, 1.5 * slower),
            (Quantity::InstructionsPerTransaction, 2e6 * 1.1),
        ]);
    }
    (described(Plan::Oltp(database::plan())), Records::Oltp(records))
}

pub fn application() -> (Provenance, Records) {
    (described(Plan::Application(application::plan())), Records::Application(application::records()))
}

pub fn network() -> (Provenance, Records) {
    let sides = [("native", 1.0), ("tap", 0.2), ("tap-vhost", 0.5)];
    let records =
        sides.iter().flat_map(|(side, scale)| (0..3).map(|number| network::record(side, number, *scale)));
    (described(Plan::Network(network::plan())), Records::Samples(records.collect()))
}

pub fn operations() -> (Provenance, Records) {
    let facts = described(Plan::Operations(operations::plan()));
    let mut records = operations::records();
    for (minute, record) in (0..).zip(&mut records) {
        record.started_unix_ns = minute * 60_000_000_000;
    }
    (facts, Records::Operations(records))
}

pub fn predictions() -> (Provenance, Records) {
    let case = |name: &str| Case {
        name: name.into(),
        command: vec![name.into()],
        metric: Some("elapsed".into()),
        workers: 1,
        with: Vec::new(),
        prepare: None,
    };
    let plan = PredictionsPlan {
        set: Some(CaseSet::HeldOut),
        cases: vec![case("git"), case("xz <b>")],
        trials: 3,
        runs: 3,
        method: None,
        vcpus: 2,
        memory_bytes: 1 << 30,
        adapter: "virtio-blk".into(),
        storages: Vec::new(),
        size_bytes: 1 << 30,
        filesystem: "ext4".into(),
        accelerator: "auto".into(),
        limit_ns: 1,
    };
    let trial = |(number, (case, predicted, truth)): (u32, (&str, f64, f64))| Trial {
        format: FORMAT,
        case: case.into(),
        storage: None,
        trial: number,
        capacity_name: "runs/h".into(),
        reference: 1000.0,
        predicted,
        truth,
        intervals: [0.02, 0.05, 0.1, 0.2, 0.3, 0.4]
            .map(|part| [predicted * (1.0 - part), predicted * (1.0 + part)])
            .into(),
        in_turn: None,
        bottleneck: String::new(),
        machine_percent: None,
        reference_percent: None,
        reference_host: None,
        machine_host: None,
    };
    let tried =
        [("git", 120.0, 100.0), ("git", 90.0, 100.0), ("xz <b>", 700.0, 640.0), ("xz <b>", 610.0, 640.0)];
    let trials = Records::Trials((0..).zip(tried).map(trial).collect());
    (described(Plan::Predictions(plan)), trials)
}

pub fn prediction() -> String {
    let prediction = Prediction {
        method: PredictionMethod::Queueing,
        why: "operations overlap".into(),
        reference: Capacity { name: "transactions/s".into(), value: 200.0 },
        ratio: 0.5,
        interval: Some(Span { low: 0.4, high: 0.6 }),
        draws: Vec::new(),
        breakdown: Some([
            Breakdown(vec![(Part::User, 3.0), (Part::Disk, 7.0)]),
            Breakdown(vec![(Part::User, 3.0), (Part::Virtualization, 1.0), (Part::Disk, 16.0)]),
        ]),
        bottleneck: "the disk".into(),
        what_if: vec![WhatIf { change: "a disk twice as fast".into(), capacity: 150.0 }],
        beyond: Vec::new(),
        cautions: Vec::new(),
        rounding: Rounding::Exact,
    };
    let page = PredictionPage {
        prediction: &prediction,
        profile: &profile(),
        from: "native",
        to: "vm",
        actual_capacity: Some(80.0),
    };
    prediction_html(&page, "0")
}

fn profile() -> Profile {
    let no = || Sourced::unavailable("not seen");
    Profile {
        profile_format: PROFILE_FORMAT,
        name: "a database".into(),
        host: None,
        host_use: None,
        elapsed_ns: None,
        devices: Vec::new(),
        capacity: None,
        io_per_second: Sourced::known(100.0, Source::Tracefs),
        reads_per_second: no(),
        writes_per_second: no(),
        bytes_per_second: no(),
        sizes: Sourced::unavailable("not seen"),
        random: Sourced::unavailable("not seen"),
        workers: Sourced::unavailable("not seen"),
        outstanding_mean: no(),
        outstanding_peak_per_worker: Sourced::unavailable("not seen"),
        latency_ns: no(),
        think_ns: no(),
        cpu_user_percent: no(),
        cpu_system_percent: no(),
        cpu_kernel_threads_percent: no(),
        footprint: Sourced::unavailable("not counted"),
        copied_bytes_per_second: no(),
        processors: Sourced::unavailable("not seen"),
        command: Vec::new(),
        metric: None,
        notes: Vec::new(),
    }
}
