//! NBD servers that are silent, lie, or go away. Every one of them must end in an error or in counted
//! failures, within limits.

#![allow(clippy::unwrap_used)]

use crate::common;

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;
use std::time::{Duration, Instant};

use common::servers::{open, spec, uri};
use common::{apply, attempt};
use proptest::prelude::*;
use tempfile::TempDir;
use virtbench_engine::nbd::NbdError;
use virtbench_engine::{TargetError, TargetRequest};
use virtbench_workload::LoadSpec;

const GREETING: &[u8] = b"NBDMAGICIHAVEOPT\x00\x03";

/// A server that behaves like this with each client.
fn fake(folder: &TempDir, behave: impl Fn(&mut UnixStream) + Send + 'static) -> String {
    let socket = folder.path().join("s");
    let listener = UnixListener::bind(&socket).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            // A test that has ended must not leave its server waiting.
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            behave(&mut stream);
        }
    });
    uri(&socket, "")
}

fn option_reply(kind: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 3, 0xe8, 0x89, 4, 0x55, 0x65, 0xa9, 0, 0, 0, 7];
    bytes.extend(kind.to_be_bytes());
    bytes.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
    bytes.extend(data);
    bytes
}

/// A whole handshake for an export of this size.
fn shake_hands(stream: &mut UnixStream, size_bytes: u64) {
    let _ = stream.write_all(GREETING);
    let _ = stream.read_exact(&mut [0; 4 + 16 + 8]);
    let information = [&[0, 0][..], &size_bytes.to_be_bytes(), &[0, 0b1101]].concat();
    let _ = stream.write_all(&[option_reply(3, &information), option_reply(1, &[])].concat());
}

/// The next request: its cookie, whether it reads, and its length. Takes a write's data.
fn request(stream: &mut UnixStream) -> Option<(u64, bool, usize)> {
    let mut bytes = [0; 28];
    stream.read_exact(&mut bytes).ok()?;
    let len = u32::from_be_bytes(bytes[24..28].try_into().unwrap()) as usize;
    let kind = bytes[7];
    if kind == 1 {
        stream.read_exact(&mut vec![0; len]).ok()?;
    }
    (kind < 2).then(|| (u64::from_be_bytes(bytes[8..16].try_into().unwrap()), kind == 0, len))
}

fn reply(cookie: u64, data: &[u8]) -> Vec<u8> {
    [&[0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0][..], &cookie.to_be_bytes(), data].concat()
}

fn nbd_error(name: &str) -> NbdError {
    match open(name) {
        Err(TargetError::Nbd(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn nobody_listens() {
    let folder = TempDir::new().unwrap();
    let socket = folder.path().join("s");
    assert!(matches!(nbd_error(&uri(&socket, "")), NbdError::Connect { .. }));
    drop(UnixListener::bind(&socket).unwrap());
    assert!(matches!(nbd_error(&uri(&socket, "")), NbdError::Connect { .. }));
    assert!(nbd_error("nbd://127.0.0.1:1/").to_string().contains("127.0.0.1:1"));
    assert!(matches!(
        nbd_error(&format!("nbd+unix:///?socket=/{}", "x".repeat(200))),
        NbdError::Connect { .. }
    ));
}

#[test]
fn a_server_that_says_nothing_or_too_slowly_is_left() {
    let silent = TempDir::new().unwrap();
    let slow = TempDir::new().unwrap();
    let silent = fake(&silent, |_| thread::sleep(Duration::from_secs(15)));
    let slow = fake(&slow, |stream| {
        for byte in GREETING {
            thread::sleep(Duration::from_millis(800));
            let _ = stream.write_all(&[*byte]);
        }
    });
    let began = Instant::now();
    thread::scope(|scope| {
        for name in [&silent, &slow] {
            scope.spawn(move || assert!(matches!(nbd_error(name), NbdError::Silent { .. })));
        }
    });
    assert!(began.elapsed() < Duration::from_secs(14), "it was waited for");
}

#[test]
fn handshakes_that_fail_say_why() {
    type Behaviour = fn(&mut UnixStream);
    let cases: [(Behaviour, &str); 6] = [
        (|_| (), "closed the connection during the handshake"),
        (|stream| drop(stream.write_all(&GREETING[..9])), "closed the connection during the handshake"),
        (|stream| drop(stream.write_all(&[b'x'; 4000])), "does not speak"),
        (
            |stream| {
                let _ =
                    stream.write_all(&[GREETING, &option_reply((1 << 31) + 6, b"no disk today")].concat());
                let _ = stream.read(&mut [0; 100]);
            },
            "no disk today",
        ),
        (
            |stream| {
                let mut huge = option_reply(3, &[]);
                huge[16..20].copy_from_slice(&u32::MAX.to_be_bytes());
                let _ = stream.write_all(&[GREETING, &huge].concat());
                let _ = stream.read(&mut [0; 100]);
            },
            "more than the 8 KiB allowed",
        ),
        (|stream| shake_hands(stream, u64::MAX), "an export of"),
    ];
    for (behave, word) in cases {
        let folder = TempDir::new().unwrap();
        let message = nbd_error(&fake(&folder, behave)).to_string();
        assert!(message.contains(word), "{word}: {message}");
    }
}

#[test]
fn an_empty_export_is_too_small() {
    let folder = TempDir::new().unwrap();
    let name = fake(&folder, |stream| shake_hands(stream, 0));
    assert!(matches!(open(&name), Err(TargetError::TooSmall { actual_bytes: 0, .. })));
    let request = TargetRequest { size_bytes: Some(4096), ..common::servers::request(&name) };
    assert!(virtbench_engine::Target::open(&request, |_, _| true).is_err());
}

/// Applies a load of many seconds; it must end long before, with this error counted.
fn assert_gives_up(name: &str, error: &str) {
    let target = open(name).unwrap();
    let load = LoadSpec { time_ns: 60_000_000_000, ..spec(&target, 4096) };
    let began = Instant::now();
    let outcome = apply(&load, &target);
    assert!(began.elapsed() < Duration::from_secs(20), "it did not give up");
    assert!(outcome.interrupted && outcome.errors >= 1000, "{outcome:?}");
    assert!(outcome.error_kinds.keys().all(|kind| kind.contains(error)), "{:?}", outcome.error_kinds);
    assert!(outcome.notes.iter().any(|note| note.contains("gave up")), "{:?}", outcome.notes);
}

#[test]
fn a_server_that_closes_in_the_middle_fails_what_follows() {
    let folder = TempDir::new().unwrap();
    let name = fake(&folder, |stream| {
        shake_hands(stream, 1 << 20);
        for _ in 0..20 {
            let Some((cookie, reads, len)) = request(stream) else { return };
            let _ = stream.write_all(&reply(cookie, &vec![7; if reads { len } else { 0 }]));
        }
        // Half a reply, and gone.
        let _ = stream.write_all(&reply(0, &[])[..7]);
    });
    assert_gives_up(&name, "reset");
}

#[test]
fn wrong_replies_break_the_connection() {
    let replies: [fn(u64) -> Vec<u8>; 4] = [
        |cookie| reply(cookie + 1000, &[]),
        |cookie| reply(cookie | 0xffff_ffff, &[]),
        |_| vec![0; 16],
        // A structured reply, which was not asked for, of 4 GiB.
        |cookie| [&[0x66, 0x8e, 0x33, 0xef, 0, 1, 0, 1][..], &cookie.to_be_bytes(), &[0xff; 4]].concat(),
    ];
    for wrong in replies {
        let folder = TempDir::new().unwrap();
        let name = fake(&folder, move |stream| {
            shake_hands(stream, 1 << 20);
            let Some((cookie, ..)) = request(stream) else { return };
            let _ = stream.write_all(&wrong(cookie));
            let _ = stream.read(&mut [0; 1000]);
        });
        assert_gives_up(&name, "Protocol error");
    }
}

#[test]
fn unknown_errors_of_a_server_are_counted() {
    let folder = TempDir::new().unwrap();
    let name = fake(&folder, |stream| {
        shake_hands(stream, 1 << 20);
        while let Some((cookie, ..)) = request(stream) {
            let mut bytes = reply(cookie, &[]);
            bytes[4..8].copy_from_slice(&0xdead_beef_u32.to_be_bytes());
            if stream.write_all(&bytes).is_err() {
                return;
            }
        }
    });
    assert_gives_up(&name, "Invalid argument");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_hang_a_load(noise in prop::collection::vec(any::<u8>(), 0..200), late in any::<bool>()) {
        let folder = TempDir::new().unwrap();
        let name = fake(&folder, move |stream| {
            if late {
                shake_hands(stream, 1 << 20);
                let _ = request(stream);
            }
            let _ = stream.write_all(&noise);
        });
        let began = Instant::now();
        if let Ok(target) = open(&name) {
            let _ = attempt(&spec(&target, 4096), &target);
        }
        prop_assert!(began.elapsed() < Duration::from_secs(10));
    }
}
