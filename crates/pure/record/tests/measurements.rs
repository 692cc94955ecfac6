//! Lines of `results.jsonl` as version 0.2 wrote them, each study's in a form of its own: they are read, and written as they were.

use serde_json::{Value, json};
use virtbench_record::{
    ApplicationRecord, DesktopsRecord, OltpRecord, OltpStep, OperationsRecord, Record, SamplesRecord,
    TilesRecord,
};

/// Reads a line, and checks that it is written with the same content.
fn read<R: Record>(line: &Value) -> R {
    let record: R = serde_json::from_str(&line.to_string()).unwrap();
    assert_eq!(serde_json::to_value(&record).unwrap(), *line);
    record
}

#[test]
fn failures_of_every_study_are_read_as_version_0_2_wrote_them() {
    let record: OltpRecord = read(&json!({
        "format": 1, "side": "vm", "step": "equal_users", "users": 4, "repetition": 2, "started_unix_ns": 7,
        "status": "failed", "why": "the guest died"
    }));
    assert_eq!(
        (record.key.side.as_str(), record.key.step, record.key.users),
        ("vm", OltpStep::EqualUsers, 4)
    );
    assert_eq!((record.failure(), record.started_unix_ns), (Some("the guest died"), 7));
    assert!(record.measured().is_none() && record.detail().unwrap().outcome.is_none());

    let record: ApplicationRecord = read(&json!({
        "format": 1, "side": "vm", "neighbours": 2, "repetition": 1, "started_unix_ns": 7,
        "status": "failed", "why": "nothing matches", "output": "SET: no"
    }));
    assert_eq!((record.key.neighbours, record.failure()), (2, Some("nothing matches")));
    assert_eq!(record.detail().unwrap().output.as_deref(), Some("SET: no"));

    let record: TilesRecord = read(&json!({
        "format": 1, "tiles": 2, "repetition": 0, "started_unix_ns": 7,
        "status": "failed", "tile": 2, "member": "mail", "why": "postfix was killed"
    }));
    let detail = record.detail().unwrap();
    assert_eq!((detail.tile, detail.member.as_deref()), (Some(2), Some("mail")));

    let record: DesktopsRecord = read(&json!({
        "format": 1, "desktops": 8, "repetition": 0, "started_unix_ns": 7, "status": "failed", "why": "no memory"
    }));
    assert_eq!((record.key.desktops, record.failure()), (8, Some("no memory")));

    let record: OperationsRecord = read(&json!({
        "format": 1, "vms": 10, "piece": 3, "per_minute": 12.5, "started_unix_ns": 7,
        "status": "failed", "why": "nobody answers"
    }));
    assert_eq!((record.key.piece, record.key.per_minute), (3, Some(12.5)));
}

#[test]
fn what_is_no_failure_and_no_result_is_read_as_version_0_2_wrote_it() {
    let record: SamplesRecord = read(&json!({
        "format": 1, "side": "tap-vhost", "repetition": 0, "started_unix_ns": 7,
        "status": "unavailable", "why": "no /dev/vhost-net"
    }));
    assert_eq!((record.unavailable(), record.failure()), (Some("no /dev/vhost-net"), None));
    let record: SamplesRecord = read(&json!({
        "format": 1, "side": "native", "repetition": 0, "started_unix_ns": 7, "status": "measured",
        "samples": [{ "name": "requests", "unit": "1/s", "better": "higher", "value": 0.1 }], "elapsed_ns": 5
    }));
    assert_eq!(record.measured().unwrap().samples[0].value, 0.1);

    let seen = serde_json::to_value(virtbench_record::OperationsMeasured::default()).unwrap();
    let record: OperationsRecord = read(&json!({
        "format": 1, "vms": 10, "piece": 0, "per_minute": null, "started_unix_ns": 7,
        "status": "incomplete", "why": "nobody answered for 9 s of 10 s", "partly": seen
    }));
    assert!(record.measured().is_none() && record.seen().is_some());
    assert_eq!(record.incomplete().unwrap().0, "nobody answered for 9 s of 10 s");
}
