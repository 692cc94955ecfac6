//! Machines with Windows, over real ssh on loopback, for which Wine stands.

use std::fs;

use crate::support::run_folder::{records, run_json};
use crate::support::windows::{Shell, Windows};
use crate::support::{children, finish, folder, run, signal_pid, virtbench, wait_for};

const LOAD: [&str; 9] =
    ["load", "--size", "4MiB", "--ramp", "20ms", "--time", "300ms", "--json", "--environment"];

/// Waits until nothing is left of a run.
fn is_tidied(machine: &Windows) {
    wait_for("the agent's file to be removed", || machine.left_at_home().is_empty().then_some(()));
}

#[test]
fn a_load_is_applied_on_windows_by_completion_ports_and_nothing_is_left() {
    let machine = Windows::start(Shell::Cmd);
    let far = format!("far={}", machine.address("/C:/bench"));
    let done = run(&[&LOAD[..], &[&far, "--read", "50", "--outstanding", "8"]].concat());
    assert_eq!(done.code(), 0, "{done:?}");
    let json = done.json();
    assert!(json["total"]["iops"].as_f64().is_some_and(|iops| iops > 0.0), "{json}");
    assert_eq!((&json["target"]["direct"], &json["errors"]), (&true.into(), &0.into()), "{json}");
    assert!(machine.names("bench").is_empty(), "{:?}", machine.names("bench"));
    is_tidied(&machine);
}

#[test]
fn linux_and_windows_are_compared_and_the_page_says_which_is_which() {
    let (machine, here) = (Windows::start(Shell::PowerShell), folder());
    let (out, grid) = (here.path().join("run"), here.path().join("grid.toml"));
    fs::write(&grid, "blocks = ['4k']\nreads = [0, 100]\nrandoms = [100]\n").unwrap();
    let far = format!("windows={}", machine.address("/C:/b%20%C3%BC%20%25x"));
    let [out_, grid] = [&out, &grid].map(|path| path.display().to_string());
    let words = [
        "study",
        "compare",
        "--environment",
        "native:",
        "--environment",
        &far,
        "--grid",
        &grid,
        "--size",
        "8MiB",
        "--ramp",
        "20ms",
        "--time",
        "60ms",
        "--repetitions",
        "2",
        "--out",
        &out_,
    ];
    let done = run(&words);
    assert_eq!(done.code(), 0, "{done:?}");
    let facts = &run_json(&out)["machines"][0]["facts"];
    assert!(facts["distribution"].as_str().unwrap().starts_with("Wine "), "{facts}");
    assert!(facts["kernel"].as_str().unwrap().starts_with("Windows NT "), "{facts}");
    assert!(facts["memory_bytes"].as_u64().unwrap() > 1 << 28, "{facts}");
    let processors = facts["processors"].as_u64().unwrap();
    let far: Vec<_> = records(&out).into_iter().filter(|record| record["environment"] == "windows").collect();
    assert_eq!(far.len(), 4, "two points, each twice");
    for record in &far {
        let host = &record["host"];
        assert_eq!(host["processors"], processors, "{record}");
        assert_eq!(host["each_percent"].as_array().unwrap().len() as u64, processors, "{record}");
        let drift = record["clock"]["drift_ppm"].as_f64().unwrap();
        assert!(drift.abs() < 1e5, "{record}");
    }
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("windows is Wine on Linux, not Windows"), "the page says what the machine is");
    is_tidied(&machine);
    assert!(machine.names("b ü %x").is_empty(), "{:?}", machine.names("b ü %x"));
}

#[test]
fn what_the_agent_asks_of_the_file_is_seen_from_outside() {
    let here = folder();
    let trace = here.path().join("trace");
    let calls = here.path().join("calls");
    let strace = format!(
        "export WINEDEBUG=-all,trace+file,trace+sync\n\
         exec strace -f -qq -y -e trace=openat,pread64,pwrite64 -o {} wine cmd.exe /c \"$line\" 2>> {}",
        trace.display(),
        calls.display()
    );
    let machine = Windows::with(Shell::Cmd, &strace);
    let far = format!("far={}", machine.address("/C:/bench"));
    let more = ["--bs", "8k", "--read", "100", "--random", "100", "--outstanding", "4"];
    let done = run(&[&LOAD[..], &[&far], &more].concat());
    assert_eq!(done.code(), 0, "{done:?}");
    let text = fs::read_to_string(&trace).unwrap();
    let reads: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("pread64(") && line.contains("/bench/.virtbench-agent/disk>"))
        .collect();
    let operations = done.json()["total"]["operations"].as_u64().unwrap();
    let of_blocks = reads.iter().filter(|line| line.contains(", 8192, ")).count() as u64;
    assert!(of_blocks >= operations, "{of_blocks} reads of 8 KiB for {operations} operations");
    let places: std::collections::BTreeSet<&str> = reads
        .iter()
        .filter_map(|line| line.rsplit_once(") = 8192")?.0.rsplit_once(", ").map(|(_, at)| at))
        .collect();
    // A host that is busy leaves time for few: of so many that are drawn at random most are different ones, up to the file's blocks.
    let expected = of_blocks.min(4 * 1024 / 8);
    assert!(2 * places.len() as u64 > expected, "{} places of {expected} blocks: {places:?}", places.len());
    assert!(places.iter().all(|at| at.parse::<u64>().is_ok_and(|at| at % 8192 == 0)), "{places:?}");
    // By Wine's own account of the calls: past the cache and overlapped, and four are there whenever the port is asked.
    let calls = fs::read(&calls).unwrap();
    let calls = String::from_utf8_lossy(&calls);
    let opened = calls.lines().rfind(|line| line.contains("CreateFileW") && line.contains("\\\\disk\""));
    assert!(opened.is_some_and(|line| line.ends_with("attributes 0x60000000")), "{opened:?}");
    let of_load = calls.split("GetQueuedCompletionStatusEx ");
    let begun: Vec<usize> = of_load.map(|part| part.matches("trace:file:ReadFile ").count()).collect();
    let whole = begun.iter().filter(|count| **count == 4).count();
    assert!(whole > 0 && 2 * whole > begun.len() && begun[1..].iter().all(|count| *count <= 4), "{begun:?}");
}

#[test]
fn what_windows_lacks_is_refused_by_name_and_bad_folders_are_told() {
    let machine = Windows::start(Shell::Cmd);
    fs::write(machine.drive().join("file"), "precious").unwrap();
    for (folder, more, words) in [
        ("/C:/no/such", vec![], "there is no C:/no"),
        ("/C:/file", vec![], "file"),
        ("/Q:/bench", vec![], "Q:/"),
        ("/C:/bench", vec!["--sqpoll"], "completion ports"),
        ("/C:/bench", vec!["--read", "50", "--trim", "50"], "FSCTL_FILE_LEVEL_TRIM"),
    ] {
        let far = format!("far={}", machine.address(folder));
        let done = run(&[&LOAD[..], &[&far], &more].concat());
        assert!(done.code() != 0 && done.stderr.contains(words), "{folder} {more:?}: {done:?}");
        is_tidied(&machine);
    }
    assert_eq!(fs::read(machine.drive().join("file")).unwrap(), b"precious");
    let lost = machine.address("/srv").replace("/srv", "/~/own");
    let done = run(&[&LOAD[..], &[&format!("far={lost}")]].concat());
    assert_eq!(done.code(), 0, "a folder in the user's own is found by the probe: {done:?}");
}

#[test]
fn a_machine_whose_connection_is_cut_keeps_nothing() {
    let machine = Windows::start(Shell::Cmd);
    let far = format!("far={}", machine.address("/C:/bench"));
    let child = virtbench().args([&LOAD[..6], &["600s", "--environment", &far]].concat()).spawn().unwrap();
    wait_for("the agent's file", || {
        machine.names("bench/.virtbench-agent").contains(&"disk".to_owned()).then_some(())
    });
    let ssh = children(child.id()).into_iter().find(|(_, name)| name == "ssh").unwrap().0;
    signal_pid(ssh, "KILL");
    let ended = finish(child);
    assert_eq!(ended.code(), 6, "{ended:?}");
    is_tidied(&machine);
    wait_for("the work folder to be removed", || machine.names("bench").is_empty().then_some(()));
}

#[test]
fn a_drive_of_windows_without_room_is_told() {
    let (machine, here) = (Windows::start(Shell::Cmd), folder());
    let far = format!("far={}", machine.address("/E:/bench"));
    machine.has_drive('e', here.path());
    let huge = ["load", "--size", "900TiB", "--time", "100ms", "--environment", &far];
    let done = run(&huge);
    assert!(done.code() != 0 && done.stderr.contains("no room for 900 TiB"), "{done:?}");
    is_tidied(&machine);
    assert!(fs::read_dir(here.path().join("bench")).map_or(0, Iterator::count) == 0);
}
