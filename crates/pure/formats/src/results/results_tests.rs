use std::io::Read as _;

use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

use super::*;
use crate::results::fixture::outcome;

fn job<'a>(name: &'a str, outcome: &'a LoadOutcome) -> JobResult<'a> {
    JobResult { name, outcome, host: None, started_unix_ns: 1_795_250_475_000_000_000 }
}

#[test]
fn the_csv_has_a_cell_under_each_head() {
    let outcome = outcome(70, 30);
    let host = HostUse {
        cpu_percent: 150.0,
        user_percent: 50.0,
        system_percent: 100.0,
        steal_percent: 0.0,
        others_percent: None,
        runnable: None,
        processors: 2,
        each_percent: Vec::new(),
        each_user_percent: Vec::new(),
    };
    for host in [None, Some(&host)] {
        let text = iometer_csv("1.0", &[JobResult { host, ..job("a, b", &outcome) }]).unwrap();
        let (head, row) = text.split_once("'Results\n").unwrap().1.split_once('\n').unwrap();
        let row = row.trim_end();
        assert_eq!(head.split(',').count(), row.split(',').count(), "{row}");
        let cell = |name: &str| {
            let at = head.split(',').position(|column| column == name).unwrap_or_else(|| panic!("{name}"));
            row.split(',').nth(at).unwrap().to_owned()
        };
        assert_eq!(cell("Access Specification Name"), "a  b");
        assert_eq!(cell("Read I/Os"), "70");
        assert_eq!(cell("Write I/Os"), "30");
        assert_eq!(cell("Bytes Written"), (30 * 4096).to_string());
        assert_eq!(cell("Queue Depth"), "16");
        assert_eq!(cell("Maximum Response Time"), "0.070000");
        // Reads take 1 to 70 us, writes 1 to 30 us.
        assert_eq!(cell("0 to 50 uS"), "79");
        assert_eq!(cell("50 to 100 uS"), "21");
        assert_eq!(cell("% CPU Utilization"), if host.is_some() { "75.000000" } else { "" });
    }
}

#[test]
fn the_histogram_log_is_read_back() {
    let outcome = outcome(70, 30);
    let text = hlog(&[job("with a, comma", &outcome), job("b", &outcome)]).unwrap();
    let mut found = Vec::new();
    for entry in IntervalLogIterator::new(text.as_bytes()) {
        if let LogEntry::Interval(interval) = entry.unwrap() {
            let decoded = decode_histogram(interval.encoded_histogram()).unwrap();
            found.push((interval.tag().unwrap().as_str().to_owned(), decoded.len()));
        }
    }
    let expected = [("with_a__comma/read", 70), ("with_a__comma/write", 30), ("b/read", 70), ("b/write", 30)];
    assert_eq!(found, expected.map(|(tag, count)| (tag.to_owned(), count)));
}

#[test]
fn openmetrics_keeps_the_rules_of_the_format() {
    let outcome = outcome(70, 0);
    let text = openmetrics(&[job("a\"b\\c\nd", &outcome), job("e", &outcome)]).unwrap();
    assert!(text.ends_with("# EOF\n"));
    let mut families = Vec::new();
    let mut last = 0;
    for line in text.lines() {
        if let Some(head) = line.strip_prefix("# TYPE ") {
            let name = head.split(' ').next().unwrap();
            assert!(!families.contains(&name), "{name} is declared twice");
            families.push(name);
        } else if !line.starts_with('#') {
            assert!(line.starts_with(families.last().unwrap()), "{line} stands outside its family");
            let (sample, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
            assert!(sample.ends_with('}'), "{line}");
            if sample.contains("_bucket") {
                let count: u64 = value.parse().unwrap();
                assert!(
                    count >= last || sample.contains("le=\"0.000001\""),
                    "{line}: buckets are cumulative"
                );
                last = count;
            }
        }
    }
    assert!(text.contains("job=\"a\\\"b\\\\c\\nd\""));
    assert!(text.contains("direction=\"read\",le=\"0.00005\"} 50"), "{text}");
    assert!(text.contains("direction=\"read\",le=\"+Inf\"} 70"));
}

#[test]
fn a_damaged_histogram_is_an_error() {
    let mut outcome = outcome(5, 5);
    outcome.read.histogram = Some("nonsense".into());
    let job = job("a", &outcome);
    assert!(fio_json("1", &[job]).is_err());
    assert!(iometer_csv("1", &[job]).is_err());
    assert!(hlog(&[job]).is_err());
    assert!(openmetrics(&[job]).is_err());
}

/// Every field that fio writes is there with the same type.
#[test]
#[allow(clippy::disallowed_methods)]
fn fio_json_has_the_fields_of_fio() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.img");
    let mut child = std::process::Command::new("fio")
        .args([
            "--output-format=json",
            "--name=t",
            "--rw=randrw",
            "--bs=4k",
            "--size=256k",
            "--ioengine=psync",
        ])
        .arg(format!("--filename={}", file.display()))
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("fio is needed: run scripts/setup.sh test");
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success());
    let real: serde_json::Value = serde_json::from_str(&text).unwrap();
    let outcome = outcome(70, 30);
    let ours: serde_json::Value =
        serde_json::from_str(&fio_json("0.1.0", &[job("t", &outcome)]).unwrap()).unwrap();
    let mut checked = 0;
    same("", &real, &ours, &mut checked);
    assert!(checked > 150, "only {checked} fields were compared");
    // And what fio-plot looks its files up by.
    let options = &ours["jobs"][0]["job options"];
    for (key, value) in [("rw", "randrw"), ("bs", "4k"), ("iodepth", "16"), ("numjobs", "1")] {
        assert_eq!(options[key], value);
    }
    assert_eq!(ours["jobs"][0]["read"]["clat_ns"]["percentile"]["50.000000"], 35_007);
}

fn same(path: &str, real: &serde_json::Value, ours: &serde_json::Value, checked: &mut u32) {
    use serde_json::Value;
    // Which options a job has, and which disks a host has, is for each run to say.
    if ["/global options", "/jobs/0/job options", "/disk_util"].contains(&path) {
        assert_eq!(std::mem::discriminant(real), std::mem::discriminant(ours), "{path}");
        return;
    }
    match (real, ours) {
        (Value::Object(real), Value::Object(ours)) => {
            for (key, value) in real {
                let path = format!("{path}/{key}");
                same(&path, value, ours.get(key).unwrap_or_else(|| panic!("{path} is missing")), checked);
            }
        }
        (Value::Array(real), Value::Array(ours)) => {
            for (index, (real, ours)) in real.iter().zip(ours).enumerate() {
                same(&format!("{path}/{index}"), real, ours, checked);
            }
        }
        (Value::Number(a), Value::Number(b)) => assert_eq!(a.is_f64(), b.is_f64(), "{path}: {a} and {b}"),
        _ => assert_eq!(std::mem::discriminant(real), std::mem::discriminant(ours), "{path}"),
    }
    *checked += 1;
}

#[test]
fn trims_starts_and_times_are_in_every_export() {
    let mut outcome = fixture::outcome(0, 0);
    let trims = fixture::outcome(0, 40);
    (outcome.trim, outcome.total) = (Some(trims.write.clone()), trims.total.clone());
    outcome.spec.start_bytes = 32 << 20;
    let jobs = [job("t", &outcome)];
    let json: serde_json::Value = serde_json::from_str(&fio_json("1", &jobs).unwrap()).unwrap();
    let trim = &json["jobs"][0]["trim"];
    assert_eq!((&trim["total_ios"], &trim["io_bytes"]), (&40.into(), &(40 * 4096).into()));
    assert!(
        trim["clat_ns"]["percentile"]["50.000000"].as_u64() > Some(0)
            && json["jobs"][0]["write"]["total_ios"] == 0
    );
    assert_eq!(json["global options"]["offset"], (32u64 << 20).to_string());
    assert!(json["global options"]["name"].is_null(), "each job has its own");
    let metrics = openmetrics(&jobs).unwrap();
    assert!(
        metrics.contains("virtbench_operations_total{job=\"t\",target=\"/x\",direction=\"trim\"} 40"),
        "{metrics}"
    );
    assert!(hlog(&jobs).unwrap().contains("Tag=t/trim"));
    let csv = iometer_csv("1", &jobs).unwrap();
    let (head, values) = csv.split_once("'Results\n").unwrap().1.split_once('\n').unwrap();
    let at = head.split(',').position(|name| name == "Starting Sector").unwrap();
    assert_eq!(values.lines().next().unwrap().split(',').nth(at), Some("65536"));
    assert_eq!(csv.matches("'Time Stamp\n").count(), 2, "{csv}");
}
