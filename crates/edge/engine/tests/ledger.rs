//! What a load wrote, checked by a later process against the ledger it left.

#![allow(clippy::unwrap_used)]

use crate::common;

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use common::servers::{nbdkit, request, uri};
use common::{apply, folder, spec, target};
use virtbench_engine::{Control, EngineError, LedgerError, Target, run, verify};
use virtbench_record::{Damage, Verification};
use virtbench_workload::{Amount, LoadSpec, Traversal};

const BLOCK: u64 = 4096;
/// Few blocks, so that each is written many times.
const REGION: u64 = 64 * BLOCK;

fn writing() -> LoadSpec {
    LoadSpec { verify: true, region_bytes: REGION, ..spec(0.0) }
}

fn check(spec: &LoadSpec, target: &Target) -> (Verification, Option<String>) {
    let verified = verify(spec, target, &Control::new(1)).unwrap();
    (verified.found, verified.note)
}

fn refusal(spec: &LoadSpec, target: &Target) -> LedgerError {
    match verify(spec, target, &Control::new(1)) {
        Err(EngineError::Ledger(error)) => error,
        other => panic!("{other:?}"),
    }
}

fn damages(found: &Verification) -> Vec<(u64, Damage)> {
    found.examples.iter().map(|example| (example.offset / BLOCK, example.damage)).collect()
}

/// A target with a ledger, and their files.
fn prepared(folder: &Path) -> (Target, PathBuf, PathBuf) {
    let [path, ledger] = ["t.img", "ledger"].map(|name| folder.join(name));
    (target(&path).with_ledger(ledger.clone()), path, ledger)
}

fn editor(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).open(path).unwrap()
}

#[test]
fn blocks_that_are_reverted_swapped_torn_or_zeroed_after_the_load_are_found() {
    let folder = folder();
    let (target, path, _) = prepared(folder.path());
    let passes = |count| LoadSpec {
        time_ns: 60_000_000_000,
        amount: Some(Amount { passes: Some(count), ..Amount::default() }),
        traversal: Traversal { every_block_once: true, ..Traversal::default() },
        ..writing()
    };
    apply(&passes(1), &target);
    let old = fs::read(&path).unwrap();
    // The versions of a second load begin anew.
    apply(&passes(2), &target);
    let (found, note) = check(&writing(), &target);
    assert_eq!((found.damaged(), found.complete, note), (0, true, None), "{:?}", found.examples);
    assert_eq!((found.blocks_checked, found.blocks_unknown), (64, 0));

    let new = fs::read(&path).unwrap();
    let file = editor(&path);
    let block = |bytes: &[u8], index: usize| bytes[index * 4096..(index + 1) * 4096].to_vec();
    file.write_all_at(&block(&old, 3), 3 * BLOCK).unwrap();
    file.write_all_at(&block(&new, 8), 7 * BLOCK).unwrap();
    file.write_all_at(&block(&new, 7), 8 * BLOCK).unwrap();
    file.write_all_at(&old[12 * 4096..12 * 4096 + 2048], 12 * BLOCK).unwrap();
    file.write_all_at(&[0; 4096], 20 * BLOCK).unwrap();
    let (found, _) = check(&writing(), &target);
    let expected = [
        (3, Damage::Lost),
        (7, Damage::Misplaced),
        (8, Damage::Misplaced),
        (12, Damage::Torn),
        (20, Damage::Corrupt),
    ];
    assert_eq!(damages(&found), expected, "{:?}", found.examples);
}

#[test]
fn a_ledger_that_is_missing_damaged_foreign_or_of_another_load_is_said_to_be() {
    let folder = folder();
    let (target, _, ledger) = prepared(folder.path());
    apply(&writing(), &target);
    let other = refusal(&LoadSpec { seed: 6, ..writing() }, &target);
    assert!(matches!(other, LedgerError::Other { .. }) && other.to_string().contains("seed 5"), "{other}");
    let bytes = fs::read(&ledger).unwrap();
    assert!(bytes.len() < 8192, "{} bytes for 64 blocks", bytes.len());
    // The header, a version, the numbers of flushes, the end.
    for at in [10, 30, 60, 4090, 4100, bytes.len() - 1] {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        fs::write(&ledger, flipped).unwrap();
        let error = refusal(&writing(), &target);
        assert!(matches!(error, LedgerError::Damaged { .. }), "byte {at}: {error}");
    }
    fs::write(&ledger, &bytes[..4500]).unwrap();
    assert!(matches!(refusal(&writing(), &target), LedgerError::Damaged { .. }));
    fs::write(&ledger, "precious").unwrap();
    assert!(matches!(refusal(&writing(), &target), LedgerError::NotOne(_)));
    let error = run(&writing(), &target, &Control::new(1), 0, |_| ()).unwrap_err();
    assert!(matches!(error, EngineError::Ledger(LedgerError::NotOne(_))), "{error}");
    assert_eq!(fs::read(&ledger).unwrap(), b"precious", "what is no ledger is not overwritten");
    fs::remove_file(&ledger).unwrap();
    let (found, note) = check(&writing(), &target);
    assert_eq!(found.damaged(), 0);
    assert!(note.unwrap().contains("lost writes are not found"));
}

#[test]
fn what_was_flushed_before_a_server_was_killed_must_be_there_and_what_came_later_may_be() {
    let folder = folder();
    let (disk, socket) = (folder.path().join("disk"), folder.path().join("s"));
    File::create(&disk).unwrap().set_len(common::SIZE).unwrap();
    // Reading the region back must keep to the longest request that the server takes.
    let limits = ["blocksize-maximum=64K", "blocksize-error-policy=error"];
    let plugin = ["--filter=blocksize-policy", "file", disk.to_str().unwrap()];
    let serve = || nbdkit(&socket, &[&plugin[..], &limits].concat());
    let open = || {
        let target = Target::open(&request(&uri(&socket, "")), |_, _| true).unwrap();
        target.with_ledger(folder.path().join("ledger"))
    };
    let load = LoadSpec { flush_every: Some(8), time_ns: 20_000_000_000, ..writing() };
    let server = serve();
    let served = open();
    let control = Control::new(1);
    let over = AtomicBool::new(false);
    let outcome = thread::scope(|scope| {
        scope.spawn(|| {
            while control.completed() < 2_000 && !over.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(1));
            }
            server.kill();
        });
        let outcome = run(&load, &served, &control, 0, |_| ()).unwrap();
        over.store(true, Ordering::Relaxed);
        outcome
    });
    assert!(outcome.errors > 0 && outcome.interrupted, "the server was not killed under load");
    fs::remove_file(&socket).unwrap();
    let _server = serve();
    let again = open();
    let (found, _) = check(&load, &again);
    assert_eq!(found.damaged(), 0, "{:?}", found.examples);
    assert!(found.blocks_checked > 50, "{found:?}");
    // A block that goes back to what it was before its flush is lost for sure.
    let file = editor(&disk);
    file.write_all_at(&[0; 4096], 0).unwrap();
    let (found, _) = check(&load, &again);
    assert_eq!(found.damaged(), 1, "{:?}", found.examples);
}
