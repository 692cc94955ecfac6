//! Loads on QEMU's vhost-user-blk server.

#![allow(clippy::unwrap_used)]

use crate::common;

use std::os::unix::net::UnixListener;
use std::path::Path;

use common::servers::{
    Server, assert_sound, assert_trims_flushes_and_verifies, counted, nbdkit, open, request, rounds,
    storage_daemon,
};
use common::{apply, attempt};
use tempfile::TempDir;
use virtbench_engine::{EngineError, Target, TargetError, TargetRequest, VhostUserError};
use virtbench_record::TargetKind;
use virtbench_workload::LoadSpec;

fn serve(socket: &Path, blockdev: &str, options: &str) -> Server {
    let address = format!("addr.type=unix,addr.path={}", socket.display());
    storage_daemon(socket, blockdev, &format!("vhost-user-blk,id=e,node-name=disk,{address},{options}"))
}

fn name(socket: &Path) -> String {
    format!("vhost-user:{}", socket.display())
}

#[test]
fn several_workers_load_it_again_and_again() {
    let folder = TempDir::new().unwrap();
    let socket = folder.path().join("s");
    let null = "null-co,node-name=disk,size=67108864,read-zeroes=on";
    let _server = serve(&socket, null, "writable=on,num-queues=3");
    let target = open(&name(&socket)).unwrap();
    assert_eq!((target.facts().kind, target.facts().size_bytes), (TargetKind::VhostUser, 64 << 20));
    for (workers, outstanding, block_bytes) in [(1, 1, 4096), (3, 8, 512), (2, 400, 4096)] {
        let load = LoadSpec { workers, outstanding, ..counted(&target, block_bytes) };
        let outcome = apply(&load, &target);
        assert_sound(&outcome);
        assert_eq!(outcome.notes.iter().any(|note| note.contains("vhost-user ring")), outstanding > 341);
    }
    let misfit = attempt(&LoadSpec { workers: 4, ..counted(&target, 4096) }, &target).unwrap_err();
    assert!(matches!(&misfit, EngineError::Misfit(why) if why.contains("--workers 4")), "{misfit}");
    let misfit = attempt(&counted(&target, 100), &target).unwrap_err();
    assert!(matches!(&misfit, EngineError::Misfit(why) if why.contains("--bs 100")), "{misfit}");
}

#[test]
fn what_is_written_over_vhost_user_arrives_at_its_place() {
    let folder = TempDir::new().unwrap();
    let (socket, image) = (folder.path().join("s"), folder.path().join("image"));
    std::fs::write(&image, vec![0u8; 1 << 20]).unwrap();
    let file = format!("file,node-name=disk,filename={}", image.display());
    let server = serve(&socket, &file, "writable=on");
    let target = open(&name(&socket)).unwrap();
    let outcome = apply(&rounds(&target), &target);
    assert!(outcome.write.operations > 256, "the load went round less than once");
    drop((target, server));
    let bytes = std::fs::read(&image).unwrap();
    let blocks: std::collections::BTreeSet<&[u8]> = bytes.chunks(4096).collect();
    assert_eq!(blocks.len(), 256, "blocks were lost or written twice");
}

#[test]
fn foreign_data_is_not_written_unasked() {
    let folder = TempDir::new().unwrap();
    let socket = folder.path().join("s");
    let _server = serve(&socket, "null-co,node-name=disk,size=16777216", "writable=off");
    let unasked = TargetRequest { allow_overwrite: false, ..request(&name(&socket)) };
    assert!(matches!(Target::open(&unasked, |_, _| true), Err(TargetError::Foreign(_))));
    // Only starting the device shows that it is read-only.
    let target = open(&name(&socket)).unwrap();
    let refused = attempt(&counted(&target, 4096), &target).unwrap_err().to_string();
    assert!(refused.contains("read-only"), "{refused}");
    drop(target);
    let reading = TargetRequest { writes: false, ..unasked };
    let target = Target::open(&reading, |_, _| true).unwrap();
    let mut load = counted(&target, 4096);
    load.access.lines[0].read_percent = 100.0;
    assert!(apply(&load, &target).read.operations > 10);
}

#[test]
fn servers_that_are_none_are_told_apart() {
    let folder = TempDir::new().unwrap();
    let socket = folder.path().join("s");
    let error = open(&name(&socket)).unwrap_err();
    assert!(matches!(error, TargetError::VhostUser(VhostUserError::Failed { .. })), "{error}");
    // One that listens and never answers.
    let _listener = UnixListener::bind(&socket).unwrap();
    let error = open(&name(&socket)).unwrap_err();
    assert!(matches!(error, TargetError::VhostUser(VhostUserError::Silent { .. })), "{error}");
    // One that speaks something else.
    let other = folder.path().join("nbd");
    let _server = nbdkit(&other, &["memory", "1M"]);
    let error = open(&name(&other)).unwrap_err();
    assert!(matches!(error, TargetError::VhostUser(_)), "{error}");
}

#[test]
fn trims_and_flushes_are_timed_and_what_was_written_is_read_again() {
    let folder = TempDir::new().unwrap();
    let (socket, image) = (folder.path().join("s"), folder.path().join("image"));
    std::fs::write(&image, vec![0u8; 4 << 20]).unwrap();
    let file = format!("file,node-name=disk,discard=unmap,filename={}", image.display());
    let _server = serve(&socket, &file, "writable=on");
    assert_trims_flushes_and_verifies(&open(&name(&socket)).unwrap());
}
