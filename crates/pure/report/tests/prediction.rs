//! The page of a prediction, without a browser.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use virtbench_model::predict::{Breakdown, Part, PredictionMethod, Rounding, WhatIf};
use virtbench_model::{Prediction, Span};
use virtbench_record::{Capacity, PROFILE_FORMAT, Profile, Source, Sourced};
use virtbench_report::{PredictionPage, prediction_html};

const HOSTILE: &str = "</script><script>alert(1)</script>";

fn profile() -> Profile {
    let no = || Sourced::unavailable("not seen");
    Profile {
        profile_format: PROFILE_FORMAT,
        name: HOSTILE.into(),
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
        notes: vec![HOSTILE.into()],
    }
}

fn prediction() -> Prediction {
    Prediction {
        method: PredictionMethod::Queueing,
        why: "operations overlap".into(),
        reference: Capacity { name: HOSTILE.into(), value: 200.0 },
        ratio: 0.5,
        interval: Some(Span { low: 0.4, high: 0.6 }),
        draws: Vec::new(),
        breakdown: Some([
            Breakdown(vec![(Part::User, 3.0), (Part::Disk, 7.0)]),
            Breakdown(vec![(Part::User, 3.0), (Part::Virtualization, 1.0), (Part::Disk, 16.0)]),
        ]),
        bottleneck: "the disk".into(),
        what_if: vec![WhatIf { change: HOSTILE.into(), capacity: 150.0 }],
        beyond: Vec::new(),
        cautions: vec![HOSTILE.into()],
        rounding: Rounding::Exact,
    }
}

#[test]
fn the_page_of_a_prediction_holds_its_figures_and_no_markup_of_others() {
    let (profile, prediction) = (profile(), prediction());
    let page = PredictionPage {
        prediction: &prediction,
        profile: &profile,
        from: "native",
        to: "vm",
        actual_capacity: Some(80.0),
    };
    let html = prediction_html(&page, "0");
    assert!(!html.contains("<script>alert"));
    for shown in ["waiting elsewhere", "Content-Security-Policy"] {
        assert_eq!(html.contains(shown), shown.starts_with("Content"), "{shown}");
    }
    for shown in
        ["disk (L)", "virtualization of computing (V)", "16.0", "20.0", "unavailable: not seen", "tracefs"]
    {
        assert!(html.contains(shown), "{shown}");
    }
    let takeaway = page.takeaway();
    assert!(
        takeaway.headline.contains("expect 100 ") && takeaway.headline.contains("80.0 to 120"),
        "{takeaway:?}"
    );
    assert!(takeaway.details[1].contains("25.0 % off"), "{takeaway:?}");
}
