//! `virtbench load` as a user runs it.

use std::fs;
use std::time::Duration;

use crate::support::{Finished, finish, folder, run, signal, virtbench, wait_for};

const SHORT: [&str; 6] = ["--ramp", "20ms", "--time", "200ms", "--size", "8MiB"];

fn load(target: &str, more: &[&str]) -> Finished {
    let mut arguments = vec!["load", "--target", target];
    arguments.extend(SHORT);
    arguments.extend(more);
    run(&arguments)
}

#[test]
fn json_is_one_object_with_the_promised_fields_and_nothing_else_is_printed() {
    let folder = folder();
    let target = folder.path().join("t.img");
    let done = load(target.to_str().unwrap(), &["--read", "70", "--json", "--seed", "7"]);
    assert_eq!(done.code(), 0, "{done:?}");
    // That others use the host is said, which tests running beside this one do.
    let said = done.stderr.lines().find(|line| !line.starts_with("note: "));
    assert_eq!(said, None, "progress is for terminals");
    let json = done.json();
    for side in ["total", "read", "write"] {
        for field in ["operations", "iops", "bytes_per_second"] {
            assert!(json[side][field].as_f64().unwrap() > 0.0, "{side}.{field}");
        }
        for field in ["min", "mean", "stddev", "max", "p50", "p90", "p95", "p99", "p99_9"] {
            assert!(json[side]["latency_ns"][field].is_number(), "{side}.latency_ns.{field}");
        }
    }
    assert_eq!(json["errors"], 0);
    assert_eq!(json["elapsed_ns"], 200_000_000);
    assert_eq!((&json["seed"], &json["spec"]["seed"]), (&7.into(), &7.into()));
    assert!(json["host_cpu_percent"].as_f64().unwrap() >= 0.0);
    let share = json["read"]["operations"].as_f64().unwrap() / json["total"]["operations"].as_f64().unwrap();
    assert!((0.6..0.8).contains(&share), "{share} were reads");
}

#[test]
fn a_table_is_printed_for_people() {
    let done = load("null", &[]);
    assert_eq!(done.code(), 0, "{done:?}");
    for word in ["IOPS", "p99.99", "host CPU", "IOPS per %CPU", "KB/s per %CPU", "seed"] {
        assert!(done.stdout.contains(word), "{word} is missing:\n{}", done.stdout);
    }
    for what in ["null (the engine alone, 8 MiB)", "4 KiB, read, random; 1 worker x queue depth 16, io_uring"]
    {
        assert!(done.stdout.contains(what), "what ran is missing:\n{}", done.stdout);
    }
    let bandwidth = done.stdout.lines().find(|line| line.starts_with("bandwidth")).unwrap();
    assert!(bandwidth.contains("iB/s"), "{bandwidth}");
    assert!(done.stdout.contains("in flight at the end"), "{}", done.stdout);
    let tables = done.stdout.lines().filter(|line| !line.starts_with("note: "));
    assert!(tables.clone().all(|line| line.chars().count() <= 80), "{}", done.stdout);
}

#[test]
fn latencies_have_the_unit_that_fits() {
    let done = load("null", &["--fault", "delay=30ms@100%"]);
    assert_eq!(done.code(), 0, "{done:?}");
    let p50 = done.stdout.lines().find(|line| line.trim_start().starts_with("p50")).unwrap();
    assert!(p50.contains(" ms"), "{p50}");
}

#[test]
fn operations_in_flight_at_the_end_are_shown_and_counted() {
    let rate = ["--rate", "2000", "--outstanding", "1000", "--timeout", "60s", "--fault", "delay=2s@30%"];
    let done = load("null", &rate);
    assert_eq!(done.code(), 0, "{done:?}");
    assert!(done.stdout.contains("(saturated)") && done.stdout.contains("are the tail"), "{}", done.stdout);
    let json = load("null", &[&rate[..], &["--json"]].concat()).json();
    let in_flight = &json["in_flight_at_end"];
    let operations = in_flight["operations"].as_u64().unwrap();
    assert!(operations > 50 && in_flight["overdue"].as_u64().unwrap() > 20, "{in_flight}");
    assert_eq!(in_flight["completed"].as_u64(), Some(operations), "{in_flight}");
    assert!(in_flight["counted_in_ns"]["p99"].as_f64() > json["total"]["latency_ns"]["p99"].as_f64());
}

#[test]
fn each_line_of_a_mix_has_its_results() {
    let mix = ["--mix", "size=4k,share=50,read=100", "--mix", "size=8k,share=50,read=0,random=0"];
    let done = load("null", &mix);
    for line in ["line of the mix", "4 KiB, read, random", "8 KiB, write, sequential"] {
        assert!(done.stdout.contains(line), "{line} is missing:\n{}", done.stdout);
    }
    let json = load("null", &[&mix[..], &["--json"]].concat()).json();
    let of = |line: usize, field: &str| json["lines"][line][field].as_u64().unwrap();
    assert_eq!(of(0, "operations"), json["read"]["operations"].as_u64().unwrap());
    assert_eq!(of(1, "bytes"), json["write"]["bytes"].as_u64().unwrap());
    assert!(json["lines"][1]["latency_ns"]["p99_99"].is_number());
}

#[test]
fn a_smaller_test_file_is_made_larger_only_with_consent() {
    let folder = folder();
    let path = folder.path().join("t.img");
    let target = path.to_str().unwrap();
    assert_eq!(load(target, &[]).code(), 0);
    let job = folder.path().join("job.fio");
    fs::write(
        &job,
        "[j]\nrw=randread\nbs=4k\nsize=16m\ndirect=1\nioengine=io_uring\nruntime=1\ntime_based=1\n",
    )
    .unwrap();
    let asked: [&[&str]; 2] = [&["--size", "16MiB"], &["--spec", job.to_str().unwrap(), "--time", "50ms"]];
    for asked in asked {
        let words = [&["load", "--target", target, "--ramp", "0s"], asked].concat();
        let done = run(&words);
        assert_eq!(done.code(), 3, "{done:?}");
        assert!(done.stderr.contains("--size 8388608") && done.stderr.contains("--grow"), "{}", done.stderr);
        assert_eq!(fs::metadata(&path).unwrap().len(), 8 << 20);
    }
    let grown =
        run(&["load", "--target", target, "--size", "16MiB", "--grow", "--ramp", "0s", "--time", "50ms"]);
    assert_eq!((grown.code(), fs::metadata(&path).unwrap().len()), (0, 16 << 20), "{grown:?}");
    // What is larger than asked for is used in part, which the table says.
    let part = load(target, &[]);
    assert!(part.stdout.contains("the first 8 MiB of 16 MiB"), "{}", part.stdout);
}

#[test]
fn an_export_that_cannot_be_written_is_refused_before_the_load() {
    let folder = folder();
    let target = folder.path().join("t.img");
    let kept = folder.path().join("kept.json");
    fs::write(&kept, "mine").unwrap();
    for export in [folder.path().join("no/such/x.hlog"), folder.path().to_owned()] {
        let words = [format!("hlog={}", export.display()), format!("fio-json={}", kept.display())];
        let done = load(target.to_str().unwrap(), &["--export", &words[1], "--export", &words[0]]);
        assert_eq!((done.code(), done.stdout.as_str()), (2, ""), "{done:?}");
        assert!(done.stderr.contains("--export: cannot write"), "{}", done.stderr);
        assert!(!target.exists(), "the load's target was made all the same");
        assert_eq!(fs::read_to_string(&kept).unwrap(), "mine");
    }
}

#[test]
fn a_file_system_without_direct_io_is_said_to_be_so() {
    let folder = tempfile::TempDir::new_in("/dev/shm").unwrap();
    let json = load(folder.path().join("t.img").to_str().unwrap(), &["--json"]).json();
    let notes = json["notes"].to_string();
    assert!(notes.contains("is on tmpfs: this is memory, not a disk"), "{notes}");
    assert_eq!(json["target"]["direct"], false);
    let table = load(folder.path().join("t.img").to_str().unwrap(), &[]).stdout;
    assert!(table.contains("is on tmpfs: this is memory, not a disk"), "{table}");
}

#[test]
fn sizes_mean_what_their_unit_says() {
    for (size, bytes) in [("1MB", 1_000_000u64), ("1MiB", 1 << 20), ("1M", 1 << 20)] {
        let json =
            run(&["load", "--target", "null", "--size", size, "--ramp", "0s", "--time", "20ms", "--json"])
                .json();
        assert_eq!(json["spec"]["region_bytes"].as_u64(), Some(bytes), "{size}");
    }
}

#[test]
fn a_mix_is_applied_by_its_shares() {
    let mix = ["--mix", "size=4k,share=50,read=100", "--mix", "size=8k,share=50,read=0,random=0", "--json"];
    let json = load("null", &mix).json();
    let mean =
        |side: &str| json[side]["bytes"].as_f64().unwrap() / json[side]["operations"].as_f64().unwrap();
    assert_eq!((mean("read"), mean("write")), (4096.0, 8192.0));
}

#[test]
fn lines_of_a_mix_trim_and_seek_each_in_its_own_way() {
    let mix =
        ["--mix", "size=4k,share=50,distribution=stride:8k", "--mix", "size=4k,share=50,read=0,trim=100"];
    let json = load("null", &[&mix[..], &["--json"]].concat()).json();
    assert!(json["trim"]["operations"].as_u64().unwrap() > 0, "{json}");
    assert_eq!(json["write"]["operations"], 0);
    assert_eq!(json["spec"]["access"]["lines"][0]["placement"]["strided"]["stride_bytes"], 8192);
}

#[test]
fn nonsense_is_refused_with_the_flag_and_exit_code_2() {
    for (arguments, word) in [
        (vec!["--bs", "0"], "block size"),
        (vec!["--bs", "4q"], "4q"),
        (vec!["--read", "101"], "--read"),
        (vec!["--random", "-1"], "--random"),
        (vec!["--outstanding", "0"], "--outstanding"),
        (vec!["--workers", "100000"], "--workers"),
        (vec!["--time", "5"], "--time"),
        (vec!["--burst", "0"], "burst"),
        (vec!["--engine", "psync", "--outstanding", "4"], "psync"),
        (vec!["--mix", "size=4k,share=30"], "30 %"),
        (vec!["--mix", "size=4k,share=100", "--bs", "4k"], "--bs"),
        (vec!["--mix", "size=4k,share=100,colour=red"], "colour"),
        (vec!["--bs", "16MiB"], "--size"),
        (vec!["--frobnicate"], "--frobnicate"),
    ] {
        let mut words = vec!["load", "--target", "null", "--size", "8MiB", "--ramp", "0s"];
        words.extend(&arguments);
        let done = run(&words);
        assert_eq!(done.code(), 2, "{arguments:?}: {done:?}");
        assert!(done.stderr.contains(word), "{arguments:?}: {}", done.stderr);
        assert_eq!(done.stdout, "");
    }
}

#[test]
fn targets_that_cannot_be_used_are_exit_code_3_and_stay_as_they_are() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("precious"), vec![7; 8 << 20]).unwrap();
    let small = path("small");
    fs::write(&small, [0; 4096]).unwrap();
    for (target, more, word) in [
        (path("."), vec![], "directory"),
        (path("precious"), vec!["--read", "50"], "--allow-overwrite"),
        (small, vec![], "--size"),
        (path("no/such/folder/t"), vec![], "cannot create"),
        ("/dev/null".into(), vec![], "neither"),
        (path("huge"), vec!["--size", "1000TiB"], "no room"),
    ] {
        let mut words = vec!["load", "--target", &target, "--time", "50ms"];
        if !more.contains(&"--size") {
            words.extend(["--size", "8MiB"]);
        }
        words.extend(&more);
        let done = run(&words);
        assert_eq!(done.code(), 3, "{target}: {done:?}");
        assert!(done.stderr.contains(word), "{target}: {}", done.stderr);
    }
    assert_eq!(fs::read(path("precious")).unwrap(), vec![7; 8 << 20]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "something was left behind");
}

#[test]
fn a_signal_ends_the_load_and_keeps_what_was_measured() {
    for name in ["INT", "TERM"] {
        let child = virtbench()
            .args(["load", "--target", "null", "--ramp", "0s", "--time", "60s", "--json"])
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(500));
        signal(&child, name);
        let done = finish(child);
        assert_eq!(done.code(), 130, "{done:?}");
        let json = done.json();
        assert_eq!(json["interrupted"], true);
        assert!(json["total"]["operations"].as_u64().unwrap() > 0);
        assert!(json["elapsed_ns"].as_u64().unwrap() < 30_000_000_000);
    }
}

#[test]
fn a_signal_during_preparation_leaves_no_file() {
    let folder = folder();
    let target = folder.path().join("t.img");
    let child = virtbench().args(["load", "--size", "4GiB", "--target"]).arg(&target).spawn().unwrap();
    wait_for("writing to begin", || fs::read_dir(folder.path()).unwrap().next().map(drop));
    signal(&child, "INT");
    let done = finish(child);
    assert_eq!(done.code(), 130, "{done:?}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn operations_that_fail_are_exit_code_5_with_results() {
    let folder = folder();
    let target = folder.path().join("t.img");
    load(target.to_str().unwrap(), &[]);
    let child = virtbench()
        .args(["load", "--ramp", "0s", "--time", "20s", "--json", "--target"])
        .arg(&target)
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(700));
    fs::OpenOptions::new().write(true).open(&target).unwrap().set_len(4096).unwrap();
    let done = finish(child);
    assert_eq!(done.code(), 5, "{done:?}");
    assert!(done.json()["errors"].as_u64().unwrap() > 0);
    assert!(done.stderr.contains("short transfer"), "{}", done.stderr);
}

#[test]
fn the_ledger_of_a_load_that_is_killed_tells_what_must_be_there() {
    let folder = folder();
    let path = folder.path().join("t.img");
    let target = path.to_str().unwrap();
    let ledger = folder.path().join("t.img.virtbench-ledger");
    let words = ["--target", target, "--size", "256KiB", "--read", "0", "--seed", "7", "--flush-every", "4"];
    let mut child = virtbench().arg("load").args(words).args(["--verify", "--time", "60s"]).spawn().unwrap();
    // The numbers of flushes stand at the end of the first page.
    wait_for("flushes", || {
        let bytes = fs::read(&ledger).ok()?;
        (u32::from_le_bytes(bytes.get(4092..4096)?.try_into().ok()?) > 100).then_some(())
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let check = || run(&[&["load"], &words[..], &["--verify-only", "--json"]].concat());
    let done = check();
    assert_eq!(done.code(), 0, "{done:?}");
    assert!(done.json()["note"].as_str().unwrap().contains("was killed"), "{done:?}");
    assert!(done.json()["blocks_checked"].as_u64().unwrap() > 32, "{done:?}");
    // One block goes back to nothing at all.
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[0; 4096], 8192).unwrap();
    let done = check();
    assert_eq!(done.code(), 5, "{done:?}");
    assert!(done.stderr.contains("offset 8192"), "{done:?}");
}

#[test]
fn a_vhost_user_server_that_never_answers_is_left_with_exit_code_3() {
    let folder = tempfile::TempDir::new().unwrap();
    let socket = folder.path().join("s");
    // Connections are taken by the kernel; nobody ever reads from them.
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let done = load(&format!("vhost-user:{}", socket.display()), &["--timeout", "500ms"]);
    assert_eq!(done.code(), 3, "{done:?}");
    assert!(done.stderr.contains("no answer within"), "{done:?}");
}

#[test]
fn a_vhost_user_server_that_completes_nothing_ends_the_load_at_its_timeout() {
    let folder = tempfile::TempDir::new().unwrap();
    let socket = folder.path().join("s");
    let export = format!(
        "vhost-user-blk,id=e,node-name=disk,addr.type=unix,addr.path={},num-queues=2",
        socket.display()
    );
    // Each request takes a quarter of an hour.
    let disk = "null-co,node-name=disk,size=1073741824,read-zeroes=on,latency-ns=900000000000";
    let mut server = std::process::Command::new("qemu-storage-daemon")
        .args(["--blockdev", disk, "--export", &export])
        .spawn()
        .unwrap_or_else(|error| panic!("qemu-storage-daemon ({error}): run `make setup-test`"));
    wait_for("the server", || {
        assert!(server.try_wait().unwrap().is_none(), "qemu-storage-daemon ended at once");
        virtbench_host::listens_at(&socket).then_some(())
    });
    let more = ["--timeout", "500ms", "--workers", "2", "--json"];
    let done = load(&format!("vhost-user:{}", socket.display()), &more);
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(done.code(), 5, "{done:?}");
    let json = done.json();
    assert_eq!((&json["interrupted"], &json["total"]["operations"]), (&true.into(), &0.into()));
    assert!(json["notes"].to_string().contains("--timeout 500ms"), "{}", json["notes"]);
}

#[test]
fn a_generator_that_stood_still_says_so() {
    let words = ["load", "--target", "null", "--ramp", "0s", "--time", "3s", "--json"];
    let child = virtbench().args(words).spawn().unwrap();
    // It runs by now, or stands still before it does, which is no part of the figures.
    std::thread::sleep(Duration::from_millis(800));
    signal(&child, "STOP");
    std::thread::sleep(Duration::from_millis(1500));
    signal(&child, "CONT");
    let done = finish(child);
    assert_eq!(done.code(), 0, "{done:?}");
    let notes = done.json()["notes"].to_string();
    assert!(notes.contains("stood still for 1s") && notes.contains("(once)"), "{notes}");
}

#[test]
fn output_into_a_closed_pipe_is_no_error() {
    let mut child =
        virtbench().args(["load", "--target", "null", "--ramp", "0s", "--time", "50ms"]).spawn().unwrap();
    drop(child.stdout.take());
    let status = child.wait().unwrap();
    assert!(status.success(), "{status}");
}
