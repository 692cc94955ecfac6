//! The day `office` for real: LibreOffice, a browser, a reader of PDF, mail, a video, used through VNC.

use std::collections::BTreeSet;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::run_folder::records;
use crate::support::{folder, virtbench};
use serde_json::Value;

/// The root's packages are 200 MB, and their scripts take minutes.
const BUILD_LIMIT: Duration = Duration::from_secs(1800);

#[test]
#[ignore = "builds a root with LibreOffice, which takes minutes: make soak runs it"]
fn every_operation_of_the_day_office_is_seen_to_end() {
    let temp = folder();
    let out = temp.path().join("run");
    let mut command = virtbench();
    command.args(["study", "desktops", "--day", "office", "--desktops", "1", "--time", "300s", "--out"]);
    command.arg(&out).stdout(fs::File::create(temp.path().join("out")).unwrap());
    command.stderr(fs::File::create(temp.path().join("err")).unwrap());
    let (begun, mut study) = (Instant::now(), command.spawn().unwrap());
    let status = loop {
        if let Some(status) = study.try_wait().unwrap() {
            break status;
        }
        if begun.elapsed() > BUILD_LIMIT {
            study.kill().unwrap();
            panic!("still running after {BUILD_LIMIT:?}");
        }
        thread::sleep(Duration::from_millis(200));
    };
    assert!(status.success(), "{}", fs::read_to_string(temp.path().join("err")).unwrap());
    let record = &records(&out)[0];
    let operations = record["operations"].as_array().unwrap();
    let failed: Vec<&Value> = operations.iter().filter(|done| !done["failed"].is_null()).collect();
    assert!(failed.is_empty() && record["gone"] == Value::Array(Vec::new()), "{failed:?}");
    let kinds: BTreeSet<u64> = operations.iter().filter_map(|done| done["operation"].as_u64()).collect();
    assert_eq!(kinds.len(), 41, "every operation of the day: {kinds:?}");
    let videos: Vec<&Value> =
        operations.iter().map(|done| &done["times"]["video"]).filter(|video| video.is_object()).collect();
    assert!(!videos.is_empty(), "{operations:?}");
    for video in videos {
        // How many arrive is the host's affair; a player that is not looked at well shows none, or halves.
        assert_eq!((&video["frames"], &video["rate"]), (&250.into(), &25.into()), "{video}");
        assert!(video["seen"].as_u64() > Some(25) && video["seen"].as_u64() <= Some(250), "{video}");
    }
}
