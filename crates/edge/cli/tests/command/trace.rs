//! `virtbench load --trace` as a user runs it.

use std::fs;
use std::process::Command;

use crate::support::{folder, run};

const CSV: &str = "time_ms,offset,size,operation\n0,0,4096,write\n20,8192,4096,w\n20,4096,4096,read\n\
    # a comment\n30,,,flush\n40,16384,8192,trim\n60,65536,8192,write\n";

#[test]
fn a_csv_is_replayed_to_its_end_at_every_pace() {
    let folder = folder();
    let trace = folder.path().join("t.csv");
    fs::write(&trace, CSV).unwrap();
    let target = folder.path().join("t.img");
    for target in [target.to_str().unwrap(), "null"] {
        for (pace, least_ns, open) in
            [("recorded", 60_000_000, true), ("2x", 30_000_000, true), ("max", 0, false)]
        {
            let words =
                ["load", "--trace", trace.to_str().unwrap(), "--pace", pace, "--target", target, "--json"];
            let done = run(&words);
            assert_eq!(done.code(), 0, "{done:?}");
            let json = done.json();
            assert_eq!(json["replay"], serde_json::json!({"operations": 6, "started": 6, "whole": true}));
            let of = |side: &str| json[side]["operations"].as_u64().unwrap();
            assert_eq!([of("read"), of("write"), of("trim"), of("flush")], [1, 3, 1, 1], "{pace}");
            assert_eq!(json["write"]["bytes"], 16384);
            assert!(json["elapsed_ns"].as_u64().unwrap() >= least_ns, "{pace}: {}", json["elapsed_ns"]);
            assert_eq!(json["open_loop"].is_object(), open, "{pace}");
            assert_eq!(json["spec"]["trace"]["extent_bytes"], 73728);
        }
    }
    // Made as large as the trace needs, in whole sectors.
    assert_eq!(fs::metadata(target).unwrap().len(), 73728);
}

#[test]
fn what_fio_has_recorded_is_replayed() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let recorded = Command::new("fio")
        .args([
            "--name=t",
            "--rw=randwrite",
            "--bs=8k",
            "--size=256k",
            "--ioengine=psync",
            "--rate_iops=1000",
        ])
        .args([format!("--filename={}", path("fio.img")), format!("--write_iolog={}", path("log"))])
        .output()
        .unwrap_or_else(|error| panic!("fio cannot be run ({error}): apt-get install fio"));
    assert!(recorded.status.success(), "{recorded:?}");
    let (log, target) = (path("log"), path("t.img"));
    for pace in ["recorded", "max"] {
        let json = run(&["load", "--trace", &log, "--pace", pace, "--target", &target, "--json"]).json();
        assert_eq!((&json["replay"]["whole"], &json["write"]["bytes"]), (&true.into(), &(256 << 10).into()));
        assert_eq!(json["write"]["operations"], 32, "{pace}");
    }
}

#[test]
fn a_table_says_how_much_was_replayed_and_what_was_put_right() {
    let folder = folder();
    let trace = folder.path().join("t.csv");
    fs::write(&trace, "time_s,offset,size,operation\n1700000000,0,512,read\n1699999999.9,512,512,read\n")
        .unwrap();
    let done = run(&["load", "--target", "null", "--trace", trace.to_str().unwrap()]);
    assert_eq!(done.code(), 0, "{done:?}");
    assert!(done.stdout.contains("2 of 2 operations (100.0 %) at pace recorded"), "{}", done.stdout);
    assert!(done.stdout.contains("note: line 3 is earlier"), "{}", done.stdout);
}

#[test]
fn bad_traces_are_refused_with_their_line_before_anything_is_made() {
    let folder = folder();
    let trace = folder.path().join("t.csv");
    let target = folder.path().join("t.img");
    let head = "time_us,offset,size,operation\n";
    for (text, more, words) in [
        (format!("{head}1,0,512,erase\n"), vec![], vec!["line 2", "operation", "erase"]),
        (format!("{head}1,0,512,read\n2,0,0,read\n"), vec![], vec!["line 3", "size of 0"]),
        (format!("{head}1,0,512,read\nx,0,512,read\n"), vec![], vec!["line 3", "time"]),
        (format!("{head}1,-512,512,read\n"), vec![], vec!["line 2", "offset"]),
        (format!("{head}1,18446744073709551615,512,read\n"), vec![], vec!["line 2", "beyond any device"]),
        (format!("{head}1,0,99999999999,write\n"), vec![], vec!["line 2", "99999999999"]),
        (format!("{head}1,0,512,read\n2,8192,512,read\n"), vec!["--size", "8k"], vec!["line 3", "--size"]),
        (head.to_owned(), vec![], vec!["no operation"]),
        (String::new(), vec![], vec!["no operation"]),
        ("fio version 9 iolog\n".into(), vec![], vec!["docs/formats.md"]),
        ("fio version 3 iolog\n1 a wait 1 1\n".into(), vec![], vec!["line 2", "version 2"]),
        (
            format!("{head}0,0,512,read\n700000000000,0,512,read\n"),
            vec![],
            vec!["longer than a week", "--pace"],
        ),
        (format!("{head}0,0,512,read\n10,0,512,read\n"), vec!["--ramp", "1s"], vec!["--trace and --ramp"]),
        (format!("{head}0,0,512,read\n"), vec!["--pace", "0x"], vec!["recorded, max"]),
        (format!("{head}0,0,512,read\n"), vec!["--bs", "4k"], vec!["--bs"]),
        (format!("{head}0,0,512,read\n"), vec!["--rate", "9/s"], vec!["--rate"]),
        (format!("{head}0,1,512,read\n"), vec!["--verify"], vec!["--verify and --trace"]),
    ] {
        fs::write(&trace, &text).unwrap();
        let mut line = vec!["load", "--trace", trace.to_str().unwrap(), "--target", target.to_str().unwrap()];
        line.extend(more);
        let done = run(&line);
        assert_eq!(done.code(), 2, "{text}: {done:?}");
        for word in words {
            assert!(done.stderr.contains(word), "{text}: {word:?} is missing: {}", done.stderr);
        }
        assert!(!target.exists(), "{text}");
    }
    let missing = run(&["load", "--target", "null", "--trace", "no/such/trace"]);
    assert!(missing.code() == 2 && missing.stderr.contains("no/such/trace"), "{missing:?}");
    assert_eq!(run(&["load", "--target", "null", "--pace", "max"]).code(), 2);
}

#[test]
fn an_unaligned_operation_names_its_line_and_goes_through_the_page_cache() {
    let folder = folder();
    let trace = folder.path().join("t.csv");
    let target = folder.path().join("t.img");
    fs::write(&trace, "time_us,offset,size,operation\n0,0,4096,read\n1,100,7,write\n").unwrap();
    let words = ["load", "--trace", trace.to_str().unwrap(), "--target", target.to_str().unwrap()];
    let refused = run(&words);
    assert_eq!(refused.code(), 3, "{refused:?}");
    assert!(refused.stderr.contains("line 3") && refused.stderr.contains("--buffered"), "{}", refused.stderr);
    let done = run(&[&words[..], &["--buffered", "--json"]].concat());
    assert_eq!((done.code(), &done.json()["write"]["bytes"]), (0, &7.into()), "{done:?}");
}

#[test]
fn a_trace_is_for_the_load_command_alone() {
    let folder = folder();
    let trace = folder.path().join("t.csv");
    fs::write(&trace, CSV).unwrap();
    let trace = trace.to_str().unwrap();
    for other in [&["saturate", "--target", "null"][..], &["study", "native-vs-vm"]] {
        let refused = run(&[other, &["--trace", trace]].concat());
        assert!(refused.code() == 2 && refused.stderr.contains("'--trace'"), "{refused:?}");
    }
}
