//! NBD as other people's clients speak it.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

use crate::common;

use std::path::Path;

use common::{DISK_BYTES, Daemon, run, success};
use virtbench_workload::{AccessLine, AccessSpec};

fn nbdinfo(arguments: &[&str]) -> String {
    success("nbdinfo", "libnbd-bin", arguments)
}

fn qemu_io(uri: &str, commands: &[&str]) -> String {
    let commands = commands.iter().flat_map(|command| ["-c", command]);
    success("qemu-io", "qemu-utils", &["-f", "raw", uri].into_iter().chain(commands).collect::<Vec<_>>())
}

/// Bytes that no two sectors share.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 512 * 31 + at % 251) as u8).collect()
}

#[test]
fn nbdinfo_sees_every_export_as_it_is() {
    let daemon = Daemon::serve("");
    let listed = nbdinfo(&["--list", &daemon.uri("")]);
    for word in ["alpha", "beta", "frozen", "newstyle-fixed", "structured"] {
        assert!(listed.contains(word), "{word}: {listed}");
    }
    assert_eq!(nbdinfo(&["--size", &daemon.uri("beta")]).trim(), DISK_BYTES.to_string());
    for can in ["--can=multi-conn", "--can=fua", "--can=trim", "--can=zero", "--can=df", "--can=flush"] {
        nbdinfo(&[can, &daemon.uri("alpha")]);
    }
    nbdinfo(&["--is=read-only", &daemon.uri("frozen")]);
    assert!(nbdinfo(&["--map", &daemon.uri("alpha")]).contains("data"));
    let unknown = run("nbdinfo", "libnbd-bin", &[&daemon.uri("gamma")]);
    assert!(!unknown.status.success());
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("gamma"));
}

#[test]
fn nbdcopy_brings_back_what_it_took_over_several_connections() {
    let daemon = Daemon::serve("");
    let (source, copy) = (daemon.path("source"), daemon.path("copy"));
    std::fs::write(&source, pattern(DISK_BYTES as usize)).unwrap();
    let uri = daemon.uri("beta");
    let many = ["--connections=4", "--requests=64"];
    success("nbdcopy", "libnbd-bin", &[&many[..], &["--flush", source.to_str().unwrap(), &uri]].concat());
    success("nbdcopy", "libnbd-bin", &[&many[..], &[&uri, copy.to_str().unwrap()]].concat());
    assert!(std::fs::read(&source).unwrap() == std::fs::read(&copy).unwrap());
    let image = std::fs::read(daemon.path("image")).unwrap();
    let (at, len) = (1 << 20, DISK_BYTES as usize);
    assert!(image[at..at + len].iter().all(|byte| *byte == 0), "another disk was written");
    assert!(image[at + len..at + 2 * len] == pattern(len), "it is not where the disk is");
    compare(&source, &uri);
}

fn compare(file: &Path, uri: &str) {
    let said = success(
        "qemu-img",
        "qemu-utils",
        &["compare", "-f", "raw", "-F", "raw", file.to_str().unwrap(), uri],
    );
    assert!(said.contains("identical"), "{said}");
}

#[test]
fn qemu_io_writes_zeroes_discards_and_reads_back() {
    let daemon = Daemon::serve("");
    let said = qemu_io(
        &daemon.uri("alpha"),
        &[
            "write -P 7 0 8M",
            "write -f -P 8 4k 4k",
            "write -z 1M 1M",
            "write -z -u -f 2M 64k",
            "flush",
            "discard 3M 1M",
            "aio_write -P 9 5M 512",
            "aio_write -P 9 6M 1M",
            "aio_flush",
            "read -P 7 0 4k",
            "read -P 8 4k 4k",
            "read -P 0 1M 1M",
            "read -P 0 2M 64k",
            "read -P 9 6M 1M",
        ],
    );
    assert!(!said.to_lowercase().contains("fail"), "{said}");
    let refused = run("qemu-io", "qemu-utils", &["-f", "raw", "-c", "write 0 4k", &daemon.uri("frozen")]);
    assert!(!refused.status.success(), "a read-only disk was written");
}

#[test]
fn a_flush_on_one_connection_covers_writes_on_another() {
    let daemon = Daemon::serve("");
    let writer = daemon.uri("alpha");
    qemu_io(&writer, &["write -P 5 0 1M"]);
    qemu_io(&writer, &["flush", "read -P 5 0 1M"]);
    let mut file = vec![0; DISK_BYTES as usize];
    file[..1 << 20].fill(5);
    let path = daemon.path("expected");
    std::fs::write(&path, file).unwrap();
    compare(&path, &writer);
}

#[test]
fn fio_verifies_what_it_wrote() {
    let daemon = Daemon::serve("");
    let uri = format!("--uri={}", daemon.uri("alpha"));
    let said = success(
        "fio",
        "fio",
        &[
            "--name=v",
            "--ioengine=nbd",
            &uri,
            "--rw=randwrite",
            "--bs=4k",
            "--iodepth=16",
            "--size=8M",
            "--verify=crc32c",
            "--verify_fatal=1",
            "--do_verify=1",
            // Else fio leaves a file where it runs.
            "--verify_state_save=0",
        ],
    );
    assert!(said.contains("err= 0"), "{said}");
}

#[test]
fn our_own_client_verifies_trims_and_flushes_over_several_connections() {
    let daemon = Daemon::serve("");
    let target = common::target(daemon.uri("beta"));
    assert_eq!(target.facts().size_bytes, DISK_BYTES);
    let line = AccessLine::new(4096, 50.0, 100.0);
    let mut spec = common::load(AccessSpec::single(line), DISK_BYTES);
    for workers in [1, 3] {
        let outcome = common::apply(
            &virtbench_workload::LoadSpec { workers, verify: workers == 1, ..spec.clone() },
            &target,
        );
        assert_eq!(outcome.error_kinds, Default::default());
        assert!(outcome.read.operations > 10 && outcome.write.operations > 10, "{outcome:?}");
    }
    spec.flush_every = Some(4);
    spec.access.lines[0].trim_percent = 50.0;
    let outcome = common::apply(&spec, &target);
    assert_eq!(outcome.error_kinds, Default::default());
    assert!(outcome.trim.unwrap().operations > 0 && outcome.flush.unwrap().operations > 0);
}
