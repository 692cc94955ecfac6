//! The page, the sentences and the table of a study of desktops.

#![allow(clippy::unwrap_used)]

#[allow(unused, reason = "each test file uses its own part")]
use crate::pages::synthetic;

use std::collections::BTreeMap;

use virtbench_record::{
    DesktopDone, DesktopGroup, DesktopNumbers, DesktopOperation, DesktopTimes, DesktopVideo, DesktopsKey,
    DesktopsMeasured, DesktopsPlan, DesktopsRecord, Plan, Records, Status,
};
use virtbench_report::{documents, takeaway};
use virtbench_samples::host::host_use;

const SECOND_NS: u64 = 1_000_000_000;

fn plan() -> DesktopsPlan {
    DesktopsPlan {
        recipe: "desktop".into(),
        root: "0".into(),
        addresses: Vec::new(),
        masks: Vec::new(),
        link: None,
        day: "office".into(),
        day_file: String::new(),
        operations: vec![DesktopOperation {
            application: "player".into(),
            operation: "play".into(),
            group: DesktopGroup::B,
        }],
        limit_a_ns: SECOND_NS,
        limit_b_ns: 6 * SECOND_NS,
        share: 0.95,
        errors: 0.05,
        vm: false,
        desktops: DesktopNumbers::Given(vec![1]),
        repetitions: 1,
        time_ns: 60 * SECOND_NS,
        vcpus: 1,
        memory_bytes: 1 << 30,
        seed: 1,
        accelerator: "auto".into(),
    }
}

/// One user, who sees 240 of 250 frames in 9.56 seconds each time, if there is a video at all.
fn records(video: Option<DesktopVideo>) -> Records {
    Records::Desktops(vec![record(1, 4, video)])
}

/// So many operations of a second each, with so many desktops.
fn record(desktops: u32, operations: usize, video: Option<DesktopVideo>) -> DesktopsRecord {
    let times = DesktopTimes {
        latency_ns: SECOND_NS,
        first_change_ns: None,
        last_change_ns: None,
        inside_ns: Some(11 * SECOND_NS),
        around_ns: Some(10 * SECOND_NS),
        video,
    };
    let users = (0..desktops).cycle().take(operations);
    let done = |user| DesktopDone {
        user,
        operation: 0,
        begun_ns: 0,
        storm: false,
        times: Some(times),
        failed: None,
    };
    let host = host_use(100.0, 90.0, 10.0);
    let measured = DesktopsMeasured {
        ready_ns: SECOND_NS,
        operations: users.map(done).collect(),
        gone: Vec::new(),
        restless: std::collections::BTreeMap::new(),
        echo: None,
        pictures: Vec::new(),
        client_cpu_ns: 1,
        elapsed_ns: 60 * SECOND_NS,
        host,
    };
    DesktopsRecord::new(DesktopsKey { desktops, repetition: 0 }, 0, Status::measured(measured))
}

#[test]
fn what_is_sure_is_told_from_what_was_measured() {
    let facts = synthetic::described(Plan::Desktops(plan()));
    let told = |records: &[(u32, usize)]| {
        let records = records.iter().map(|(desktops, operations)| record(*desktops, *operations, None));
        takeaway(&facts, &Records::Desktops(records.collect())).details.join("\n")
    };
    // Of a few operations the slowest says nothing of what 95 % take at most.
    let some = told(&[(1, 4), (2, 400), (3, 4)]);
    assert!(some.contains("Sure by 95 % intervals: 2 desktops. Beyond that, up to 3, "), "{some}");
    assert!(told(&[(1, 4)]).contains("no number is sure"));
    let cautions = takeaway(&facts, &Records::Desktops(vec![record(1, 4, None)])).cautions.join("\n");
    assert!(cautions.contains("Of 4 operations the session's own clock tells more time"), "{cautions}");
    assert!(!told(&[(1, 400)]).contains("sure"));
}

#[test]
fn whose_screen_users_sit_before_is_said() {
    let told = |vm: bool, accelerator: &str| {
        let mut facts = synthetic::described(Plan::Desktops(DesktopsPlan { vm, ..plan() }));
        facts.guest = virtbench_samples::grid::provenance(virtbench_samples::grid::small_plan()).guest;
        facts.guest.as_mut().unwrap().accelerator.name = accelerator.into();
        takeaway(&facts, &records(None)).cautions.join("\n")
    };
    let (uml, tcg) = (told(true, "uml"), told(true, "tcg"));
    assert!(
        uml.contains("each desktop serves VNC itself") && uml.starts_with("User Mode Linux runs"),
        "{uml}"
    );
    assert!(!tcg.contains("VNC") && !told(false, "tcg").contains("VNC"), "{tcg}");
}

#[test]
fn how_many_fit_by_the_picture_stands_beside_how_many_fit_by_the_marker() {
    let facts = synthetic::described(Plan::Desktops(plan()));
    let seen = |desktops: u32, last_change_ns: u64| {
        let mut record = record(desktops, 400, None);
        if let Status::Measured(measured) = &mut record.status {
            for times in measured.operations.iter_mut().filter_map(|done| done.times.as_mut()) {
                times.last_change_ns = Some(last_change_ns);
            }
        }
        record
    };
    let records = Records::Desktops(vec![seen(1, 2 * SECOND_NS), seen(2, 7 * SECOND_NS)]);
    let told = takeaway(&facts, &records);
    assert!(told.headline.contains("2 desktops fit"), "{}", told.headline);
    assert!(told.headline.contains("(1 by the last change of the picture)"), "{}", told.headline);
    let details = told.details.join("\n");
    assert!(
        details.contains("at most 6.00 s apart in half of the operations and 6.00 s in 95.0 %"),
        "{details}"
    );
    let html = documents(&facts, &records, &BTreeMap::new()).unwrap().html;
    assert!(html.contains("B, last change") && html.contains(">7.00<"));
}

#[test]
fn what_arrived_of_videos_stands_on_the_page_and_in_the_table() {
    let video = DesktopVideo {
        frames: 250,
        rate: 25,
        seen: 240,
        elapsed_ns: 9_560_000_000,
        freeze_ns: 200_000_000,
        unreadable: 0,
    };
    let facts = synthetic::described(Plan::Desktops(plan()));
    let seen = records(Some(video));
    let written = documents(&facts, &seen, &BTreeMap::new()).unwrap();
    for words in ["id=\"videos\"", "longest freeze, ms", ">25.0<", ">4.0<", ">200<"] {
        assert!(written.html.contains(words), "{words}");
    }
    assert!(written.csv.contains(",250,240,9560000000,200000000"), "{}", written.csv);
    let told = takeaway(&facts, &seen).details.join("\n");
    assert!(
        told.contains(
            "users saw 25.0 of 25 frames a second in player play; 4.0 % of the frames were dropped"
        ),
        "{told}"
    );
    let without = documents(&facts, &records(None), &BTreeMap::new()).unwrap();
    assert!(!without.html.contains("id=\"videos\""));
}
