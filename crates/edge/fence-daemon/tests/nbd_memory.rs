//! NBD clients that hold all the memory they can get: they wait for more, and nobody else does.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

use crate::common;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use common::Daemon;
use common::raw::{self, READ, reply, request};

const CLIENTS: u64 = 24;
const READS: u64 = 40;
const MIB: u32 = 1 << 20;
const LONGEST: u32 = 32 << 20;

/// Clients of `alpha` that ask for far more than they take.
fn hoarders(daemon: &Daemon) -> Vec<UnixStream> {
    let hoarder = |_| {
        let mut stream = raw::attached(&daemon.socket, "alpha");
        let reads: Vec<u8> = (0..READS).flat_map(|cookie| request(READ, cookie, 0, MIB)).collect();
        stream.write_all(&reads).unwrap();
        stream
    };
    let streams: Vec<UnixStream> = (0..CLIENTS).map(hoarder).collect();
    // All that they are given is theirs once the first reply has come that can.
    let mut first = [0; 1];
    streams.iter().take(1).for_each(|mut stream| stream.read_exact(&mut first).unwrap());
    streams
}

#[test]
fn a_client_that_takes_no_replies_waits_for_memory_and_other_disks_have_theirs() {
    let daemon = Daemon::serve("memory = '64 MiB'");
    let hoarders = hoarders(&daemon);
    for round in 0..20 {
        let mut beta = raw::attached(&daemon.socket, "beta");
        let bytes = vec![round as u8; MIB as usize];
        raw::write(&mut beta, u64::from(round * MIB), &bytes);
        assert!(raw::read(&mut beta, u64::from(round * MIB), MIB) == bytes);
    }
    drop(hoarders);
    let mut alpha = raw::attached(&daemon.socket, "alpha");
    assert_eq!(raw::read(&mut alpha, 0, LONGEST).len(), LONGEST as usize, "what they held came back");
}

#[test]
fn a_client_that_waits_for_memory_is_answered_in_the_end() {
    let daemon = Daemon::serve("memory = '64 MiB'");
    let mut streams: Vec<UnixStream> = (0..CLIENTS).map(|_| raw::attached(&daemon.socket, "alpha")).collect();
    std::thread::scope(|scope| {
        for stream in &mut streams {
            let mut asks = stream.try_clone().unwrap();
            scope.spawn(move || {
                for cookie in 0..READS / 4 {
                    asks.write_all(&request(READ, cookie, 0, 3 * MIB)).unwrap();
                    asks.write_all(&request(raw::WRITE, READS + cookie, 0, 3 * MIB)).unwrap();
                    asks.write_all(&vec![0; 3 * MIB as usize]).unwrap();
                }
            });
            scope.spawn(move || {
                for _ in 0..READS / 2 {
                    let (error, cookie) = reply(stream);
                    assert_eq!(error, 0, "request {cookie}");
                    if cookie < READS {
                        stream.read_exact(&mut vec![0; 3 * MIB as usize]).unwrap();
                    }
                }
            });
        }
    });
}
