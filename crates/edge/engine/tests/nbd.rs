//! Loads on NBD servers that others wrote.

#![allow(clippy::unwrap_used)]

use crate::common;

use std::process::Command;

use common::servers::{
    assert_sound, assert_trims_flushes_and_verifies, counted, nbdkit, open, request, rounds, storage_daemon,
    uri,
};
use common::{apply, attempt};
use tempfile::TempDir;
use virtbench_engine::nbd::NbdError;
use virtbench_engine::{EngineError, Target, TargetError};
use virtbench_nbd::client::ClientError;
use virtbench_record::TargetKind;
use virtbench_workload::LoadSpec;

#[test]
fn nbdkit_memory_is_loaded_by_several_workers_again_and_again() {
    let folder = TempDir::new().unwrap();
    let socket = folder.path().join("s");
    let _server = nbdkit(&socket, &["memory", "64M"]);
    let target = open(&uri(&socket, "")).unwrap();
    assert_eq!((target.facts().kind, target.facts().size_bytes), (TargetKind::Nbd, 64 << 20));
    for (workers, block_bytes) in [(1, 4096), (3, 512), (2, 128 << 10)] {
        let outcome = apply(&LoadSpec { workers, ..counted(&target, block_bytes) }, &target);
        assert_sound(&outcome);
        assert_eq!(outcome.total.bytes, outcome.total.operations * block_bytes);
    }
}

#[test]
fn what_is_written_over_nbd_arrives_at_its_place() {
    let folder = TempDir::new().unwrap();
    let (socket, image) = (folder.path().join("s"), folder.path().join("image"));
    std::fs::write(&image, vec![0u8; 4 << 20]).unwrap();
    let server = nbdkit(&socket, &["file", image.to_str().unwrap()]);
    let target = open(&uri(&socket, "")).unwrap();
    let outcome = apply(&rounds(&target), &target);
    assert!(outcome.write.operations > 1024, "the load went round less than once");
    drop((target, server));
    let bytes = std::fs::read(&image).unwrap();
    let blocks: std::collections::BTreeSet<&[u8]> = bytes.chunks(4096).collect();
    assert_eq!(blocks.len(), 1024, "blocks were lost or written twice");
    assert!(blocks.iter().all(|block| block.chunks(512).all(|sector| sector.iter().any(|byte| *byte != 0))));
}

#[test]
fn errors_of_the_server_are_counted_by_kind() {
    let folder = TempDir::new().unwrap();
    let socket = folder.path().join("s");
    let filter =
        ["--log=null", "--filter=error", "memory", "16M", "error-pread=ENOSPC", "error-pread-rate=20%"];
    let _server = nbdkit(&socket, &filter);
    let target = open(&uri(&socket, "")).unwrap();
    let outcome = apply(&counted(&target, 4096), &target);
    assert!(outcome.read.operations > 10 && outcome.write.operations > 10);
    let kinds: Vec<&String> = outcome.error_kinds.keys().collect();
    assert!(matches!(kinds[..], [kind] if kind.contains("No space left")), "{kinds:?}");
}

#[test]
fn qemu_limits_writes_to_one_worker() {
    let folder = TempDir::new().unwrap();
    let socket = folder.path().join("s");
    let server = format!("addr.type=unix,addr.path={}", socket.display());
    let mut command = Command::new("qemu-storage-daemon");
    command.args(["--blockdev", "null-co,node-name=disk,size=16777216,read-zeroes=on"]);
    command.args(["--nbd-server", &server]);
    command.args(["--export", "nbd,id=e,node-name=disk,name=a disk,writable=on"]);
    let _server = common::servers::serve(&mut command, "qemu-system-common", &socket);
    let target = open(&uri(&socket, "a%20disk")).unwrap();
    assert_sound(&apply(&counted(&target, 4096), &target));
    match open(&uri(&socket, "another")) {
        Err(TargetError::Nbd(NbdError::Server(ClientError::NoExport { name, .. }))) => {
            assert_eq!(name, "another")
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_multi_conn_writes_need_one_worker() {
    let folder = TempDir::new().unwrap();
    let socket = folder.path().join("s");
    let _server = nbdkit(&socket, &["--filter=multi-conn", "memory", "16M", "multi-conn-mode=disable"]);
    let target = open(&uri(&socket, "")).unwrap();
    let two = LoadSpec { workers: 2, ..counted(&target, 4096) };
    match attempt(&two, &target) {
        Err(EngineError::Misfit(message)) => assert!(message.contains("--workers 1"), "{message}"),
        other => panic!("{other:?}"),
    }
    let mut reading = two;
    reading.access.lines[0].read_percent = 100.0;
    assert!(apply(&reading, &target).read.operations > 10);
}

#[test]
fn limits_of_the_server_are_respected() {
    let folder = TempDir::new().unwrap();
    let socket = folder.path().join("s");
    let filter = ["--filter=blocksize-policy", "memory", "16M"];
    let policy = ["blocksize-minimum=4096", "blocksize-preferred=4096", "blocksize-maximum=64K"];
    let _server = nbdkit(&socket, &[&filter[..], &policy].concat());
    let target = open(&uri(&socket, "")).unwrap();
    assert_eq!(target.facts().alignment_bytes, 4096);
    let misfit = |block_bytes| match attempt(&counted(&target, block_bytes), &target) {
        Err(EngineError::Misfit(message)) => message,
        other => panic!("{other:?}"),
    };
    assert!(misfit(512).contains("--bs 512"));
    assert!(misfit(1 << 20).contains("64 KiB at most"));
    assert_sound(&apply(&counted(&target, 65536), &target));
}

#[test]
fn foreign_data_is_not_written_unasked() {
    let folder = TempDir::new().unwrap();
    let socket = folder.path().join("s");
    let _server = nbdkit(&socket, &["--readonly", "memory", "16M"]);
    let name = uri(&socket, "");
    let asked = request(&name);
    let unasked = virtbench_engine::TargetRequest { allow_overwrite: false, ..asked.clone() };
    let refused = |request| Target::open(request, |_, _| true).unwrap_err();
    assert!(matches!(refused(&unasked), TargetError::Foreign(_)));
    assert!(matches!(refused(&asked), TargetError::ReadOnly(_)));
    let large = virtbench_engine::TargetRequest { size_bytes: Some(1 << 30), writes: false, ..asked.clone() };
    assert!(matches!(refused(&large), TargetError::TooSmall { .. }));
    assert!(Target::open(&virtbench_engine::TargetRequest { writes: false, ..asked }, |_, _| true).is_ok());
}

#[test]
fn a_server_for_one_client_lives_through_the_load() {
    let folder = TempDir::new().unwrap();
    let (socket, image) = (folder.path().join("s"), folder.path().join("image"));
    std::fs::write(&image, vec![1u8; 1 << 20]).unwrap();
    let mut command = Command::new("qemu-nbd");
    command.args(["--format=raw", "--socket"]).arg(&socket).arg(&image);
    let _server = common::servers::serve(&mut command, "qemu-utils", &socket);
    let target = open(&uri(&socket, "")).unwrap();
    for _ in 0..2 {
        assert_sound(&apply(&counted(&target, 4096), &target));
    }
}

#[test]
fn vhost_user_and_nbd_need_their_own_servers() {
    let folder = TempDir::new().unwrap();
    let socket = folder.path().join("s");
    let export = format!("vhost-user-blk,id=e,node-name=disk,addr.type=unix,addr.path={}", socket.display());
    let _server = storage_daemon(&socket, "null-co,node-name=disk,size=16777216", &export);
    let error = open(&uri(&socket, "")).unwrap_err();
    let TargetError::Nbd(error) = error else { panic!("{error}") };
    assert!(
        matches!(error, NbdError::Silent { .. } | NbdError::Server(ClientError::Closed { .. })),
        "{error}"
    );
}

#[test]
fn trims_and_flushes_are_timed_and_what_was_written_is_read_again() {
    let folder = TempDir::new().unwrap();
    let socket = folder.path().join("s");
    let _server = nbdkit(&socket, &["memory", "4M"]);
    assert_trims_flushes_and_verifies(&open(&uri(&socket, "")).unwrap());
}

#[test]
fn what_the_server_does_not_offer_is_refused_beforehand() {
    let folder = TempDir::new().unwrap();
    let socket = folder.path().join("s");
    let _server = nbdkit(&socket, &["eval", "get_size=echo 4M", "pread=false", "pwrite=false"]);
    let target = open(&uri(&socket, "")).unwrap();
    let mut load = counted(&target, 4096);
    load.access.lines[0].trim_percent = 50.0;
    let refused = attempt(&load, &target).unwrap_err();
    assert!(matches!(&refused, EngineError::Misfit(why) if why.contains("--trim")), "{refused}");
}
