//! The server's side, option by option and request by request.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

use crate::common;

use common::memory_server::{MemoryServer, config};
use common::speech::*;
use virtbench_nbd::ErrorCode;
use virtbench_nbd::server::{Op, Tls, Violation};

const ACK: u32 = 1;
const ERR: u32 = 1 << 31;

fn greeted(tls: Tls) -> MemoryServer {
    let mut server = MemoryServer::new(&config(tls));
    server.send(usize::MAX).unwrap();
    assert_eq!(server.take_sent(), b"NBDMAGICIHAVEOPT\x00\x03");
    server.receive(&hello(), false).unwrap();
    server
}

/// What the server answers to options.
fn answers(server: &mut MemoryServer, options: &[Vec<u8>]) -> Vec<(u32, u32, Vec<u8>)> {
    server.receive(&options.concat(), false).unwrap();
    server.send(usize::MAX).unwrap();
    option_replies(&server.take_sent())
}

fn kinds(replies: &[(u32, u32, Vec<u8>)]) -> Vec<u32> {
    replies.iter().map(|(_, kind, _)| *kind).collect()
}

/// A server in the transmission phase.
fn attached(name: &str, structured: bool) -> MemoryServer {
    let mut server = greeted(Tls::Off);
    if structured {
        answers(&mut server, &[option(STRUCTURED_REPLY, &[])]);
        answers(&mut server, &[contexts(SET_META_CONTEXT, name, &["base:allocation"])]);
    }
    let replies = answers(&mut server, &[go(GO, name, &[])]);
    assert_eq!(replies.last().unwrap(), &(GO, ACK, vec![]));
    server
}

/// What is sent in answer to requests.
fn replies(server: &mut MemoryServer, requests: &[Vec<u8>]) -> Vec<u8> {
    server.receive(&requests.concat(), false).unwrap();
    server.settle().unwrap();
    server.take_sent()
}

#[test]
fn every_export_is_listed_and_described() {
    let mut server = greeted(Tls::Off);
    let listed = answers(&mut server, &[option(LIST, &[])]);
    assert_eq!(listed, [(LIST, 2, string("disk")), (LIST, 2, string("frozen")), (LIST, ACK, vec![])]);
    let info = answers(&mut server, &[go(INFO, "frozen", &[1, 2, 3])]);
    let size_and_flags = [&[0, 0][..], &8192u64.to_be_bytes(), &[0b1, 0b0000_1111]].concat();
    let sizes = [&[0, 3][..], &[512u32, 4096, 8192].map(u32::to_be_bytes).concat()].concat();
    let name = [&[0, 1][..], b"frozen"].concat();
    assert_eq!(info, [(INFO, 3, size_and_flags), (INFO, 3, name), (INFO, 3, sizes), (INFO, ACK, vec![])]);
    let unknown = answers(&mut server, &[go(GO, "floppy", &[3])]);
    assert_eq!(kinds(&unknown), [ERR + 6]);
    let writable = answers(&mut server, &[option(STRUCTURED_REPLY, &[]), go(GO, "disk", &[])]);
    assert_eq!(writable[1].2[10..], [0b1, 0b1110_1101], "flush, FUA, trim, zeroes, DF, multi-conn");
    assert_eq!(server.export, 0);
}

#[test]
fn the_old_way_works_with_and_without_zeroes() {
    for (flags, zeroes) in [([0, 0, 0, 3], 0), ([0, 0, 0, 1], 124), ([0, 0, 0, 0], 124)] {
        let mut server = MemoryServer::new(&config(Tls::Off));
        server.send(18).unwrap();
        server.receive(&[&flags[..], &option(EXPORT_NAME, b"disk")].concat(), false).unwrap();
        server.settle().unwrap();
        let expected = [&65536u64.to_be_bytes()[..], &[0b1, 0b0110_1101], &vec![0; zeroes]].concat();
        assert_eq!(server.take_sent()[18..], expected);
        assert_eq!(replies(&mut server, &[request(0, FLUSH, 9, 0, 0)]), simple(9, 0, &[]));
    }
    let mut server = greeted(Tls::Off);
    assert_eq!(server.receive(&option(EXPORT_NAME, b"floppy"), false), Err(Violation::NoExport));
}

#[test]
fn options_that_are_wrong_are_refused_and_the_next_is_answered() {
    let mut server = greeted(Tls::Off);
    let mut cut = go(GO, "disk", &[3, 3]);
    cut[15] -= 2;
    cut.truncate(cut.len() - 2);
    let long = "x".repeat(5000);
    let wrong = [
        option(LIST, b"?"),
        option(STRUCTURED_REPLY, b"?"),
        option(STARTTLS, &[]),
        option(99, b"what?"),
        option(4, &[]),
        cut,
        option(GO, &[0xff; 8]),
        go(INFO, &long, &[]),
        option(INFO, &vec![0; 20_000]),
        contexts(SET_META_CONTEXT, "disk", &["base:allocation"]),
        go(INFO, "disk", &[]),
    ];
    let replies = answers(&mut server, &wrong);
    let [unsup, policy, invalid, too_big] = [1, 2, 3, 9].map(|kind| ERR + kind);
    let expected =
        [invalid, invalid, policy, unsup, unsup, invalid, invalid, too_big, too_big, invalid, 3, ACK];
    assert_eq!(kinds(&replies), expected);
}

#[test]
fn contexts_hold_for_their_export_only() {
    let mut server = greeted(Tls::Off);
    answers(&mut server, &[option(STRUCTURED_REPLY, &[])]);
    let context = [&[0, 0, 0, 0][..], b"base:allocation"].concat();
    for queries in [&[][..], &["base:"], &["qemu:x", "base:allocation"]] {
        let listed = answers(&mut server, &[contexts(LIST_META_CONTEXT, "disk", queries)]);
        assert_eq!(listed, [(9, 4, context.clone()), (9, ACK, vec![])]);
    }
    assert_eq!(kinds(&answers(&mut server, &[contexts(SET_META_CONTEXT, "disk", &["base:"])])), [ACK]);
    assert_eq!(kinds(&answers(&mut server, &[contexts(LIST_META_CONTEXT, "no", &[])])), [ERR + 6]);
    let set = answers(&mut server, &[contexts(SET_META_CONTEXT, "disk", &["base:allocation"])]);
    assert_eq!(set[0].2[..4], [0, 0, 0, 1]);
    answers(&mut server, &[go(GO, "frozen", &[])]);
    let status = replies(&mut server, &[request(0, BLOCK_STATUS, 1, 0, 512)]);
    assert_eq!(status, structured(1, 0x8001, &[0, 0, 0, 22, 0, 0]), "the context was set for another export");
    let mut server = attached("disk", true);
    let status = replies(&mut server, &[request(8, BLOCK_STATUS, 1, 1024, 4096)]);
    assert_eq!(status, structured(1, 5, &[1u32, 4096, 0].map(u32::to_be_bytes).concat()));
}

#[test]
fn with_tls_required_nothing_is_told_before() {
    let mut server = greeted(Tls::Required);
    let before =
        [option(LIST, &[]), go(INFO, "disk", &[]), go(GO, "floppy", &[]), option(STRUCTURED_REPLY, &[])];
    assert_eq!(kinds(&answers(&mut server, &before)), [ERR + 5; 4]);
    assert_eq!(kinds(&answers(&mut server, &[option(STARTTLS, &[])])), [ACK]);
    assert!(server.tls_started);
    let after = [option(STARTTLS, &[]), go(GO, "disk", &[])];
    assert_eq!(kinds(&answers(&mut server, &after)), [ERR + 3, 3, ACK]);
    let mut server = greeted(Tls::Required);
    assert_eq!(server.receive(&option(EXPORT_NAME, b"disk"), false), Err(Violation::NoExport));
}

#[test]
fn what_was_said_in_the_open_does_not_count_under_tls() {
    let mut server = greeted(Tls::Offered);
    let smuggled = [option(STARTTLS, &[]), go(GO, "disk", &[])].concat();
    assert!(matches!(server.receive(&smuggled, false), Err(Violation::Protocol(_))));
    let mut server = greeted(Tls::Offered);
    answers(&mut server, &[option(STRUCTURED_REPLY, &[]), option(STARTTLS, &[])]);
    let go = answers(&mut server, &[go(GO, "disk", &[])]);
    assert_eq!(go[0].2[11] & 0x80, 0, "structured replies were agreed on before TLS");
}

#[test]
fn requests_do_what_they_say() {
    for structured_replies in [false, true] {
        let mut server = attached("disk", structured_replies);
        let sent = replies(&mut server, &[write(1, 7, 1024, &[9; 1024]), request(0, READ, 8, 512, 1024)]);
        let data = [vec![1; 512], vec![9; 512]].concat();
        let read = match structured_replies {
            false => simple(8, 0, &data),
            true => structured(8, 1, &[&512u64.to_be_bytes()[..], &data].concat()),
        };
        assert_eq!(sent, [simple(7, 0, &[]), read].concat());
        assert!(server.log[0].fua && server.log[0].op == Op::Write && !server.log[1].fua);
        let others = [
            request(2, WRITE_ZEROES, 1, 1024, 512),
            request(1, WRITE_ZEROES, 2, 2048, 512),
            request(0, TRIM, 3, 0, 512),
            request(0, FLUSH, 4, 0, 0),
        ];
        let acks = [simple(1, 0, &[]), simple(2, 0, &[]), simple(3, 0, &[]), simple(4, 0, &[])];
        assert_eq!(replies(&mut server, &others), acks.concat());
        let ops: Vec<Op> = server.log[2..].iter().map(|request| request.op).collect();
        let zeroes = |may_trim| Op::WriteZeroes { may_trim };
        assert_eq!(ops, [zeroes(false), zeroes(true), Op::Trim, Op::Flush]);
        assert!(server.disks[0][1024..1536].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn requests_that_are_wrong_fail_and_the_next_goes_on() {
    let mut server = attached("disk", false);
    let wrong = [
        (request(0, READ, 0, 65536, 512), 22),
        (request(0, READ, 1, u64::MAX - 511, 512), 22),
        (write(0, 2, 65024, &[1; 1024]), 28),
        (request(0, WRITE_ZEROES, 3, 65024, 1024), 28),
        (request(0, TRIM, 4, 0, u32::MAX - 511), 22),
        (request(0, READ, 5, 1, 512), 22),
        (request(0, READ, 6, 0, 511), 22),
        (request(0, READ, 7, 0, 0), 22),
        (write(0, 8, 0, &[]), 22),
        (write(0, 9, 0, &[1; 8704]), 22),
        (request(0, READ, 10, 0, 8704), 22),
        (request(4, READ, 11, 0, 512), 22),
        (request(2, WRITE, 12, 0, 0), 22),
        (request(0, 5, 13, 0, 512), 22),
        (request(0, 99, 14, 0, 512), 22),
        (request(0, BLOCK_STATUS, 15, 0, 512), 22),
        (request(0, FLUSH, 16, 512, 512), 22),
        (write(64, 17, 0, &[1; 512]), 22),
    ];
    let requests: Vec<Vec<u8>> = wrong.iter().map(|(bytes, _)| bytes.clone()).collect();
    let expected: Vec<u8> =
        (0u64..).zip(&wrong).flat_map(|(cookie, (_, error))| simple(cookie, *error, &[])).collect();
    assert_eq!(replies(&mut server, &requests), expected);
    assert_eq!(replies(&mut server, &[request(0, READ, 1, 0, 512)]), simple(1, 0, &[0; 512]));
    assert_eq!(server.log.len(), 1);
    let mut server = attached("frozen", false);
    let refused = replies(&mut server, &[write(0, 1, 0, &[1; 512]), request(0, TRIM, 2, 0, 512)]);
    assert_eq!(refused, [simple(1, 1, &[]), simple(2, 1, &[])].concat());
    let mut server = attached("disk", true);
    let failed = replies(&mut server, &[request(4, READ, 1, 1, 512), write(0, 2, 1, &[1; 512])]);
    assert_eq!(failed, [structured(1, 0x8001, &[0, 0, 0, 22, 0, 0]), simple(2, 22, &[])].concat());
}

#[test]
fn errors_of_the_device_reach_the_client() {
    let mut server = attached("disk", false);
    let requests = [request(0, READ, 1, 0, 512), write(0, 2, 0, &[1; 512]), request(0, FLUSH, 3, 0, 0)];
    server.receive(&requests.concat(), false).unwrap();
    // The last comes first.
    for code in [ErrorCode::Io, ErrorCode::NoSpc, ErrorCode::Shutdown] {
        server.complete(server.under_way.len() - 1, Err(code));
    }
    server.send(usize::MAX).unwrap();
    assert_eq!(server.take_sent(), [simple(3, 5, &[]), simple(2, 28, &[]), simple(1, 108, &[])].concat());
}

#[test]
fn a_client_holds_no_more_than_its_limits() {
    let mut server = attached("disk", false);
    let reads: Vec<u8> = (0..100).flat_map(|n| request(0, READ, n, 0, 512)).collect();
    server.receive(&reads, false).unwrap();
    assert_eq!((server.under_way.len(), server.connection.is_full()), (4, true));
    // Completed is not yet sent: the slots are still held.
    (0..4).for_each(|_| server.complete(0, Ok(())));
    assert_eq!(server.connection.under_way(), 0);
    assert!(server.connection.is_full() && server.under_way.is_empty());
    // Half of the first reply frees nothing; the rest of it frees one.
    server.send(300).unwrap();
    assert!(server.under_way.is_empty());
    server.send(228).unwrap();
    assert_eq!(server.under_way.len(), 1);
    server.settle().unwrap();
    assert_eq!((server.log.len(), server.take_sent().len()), (100, 100 * 528));
    let mut server = attached("disk", false);
    server.receive(&[request(0, READ, 1, 0, 8192), request(0, READ, 2, 0, 8192)].concat(), false).unwrap();
    server.receive(&request(0, READ, 3, 0, 512), false).unwrap();
    assert_eq!(server.under_way.len(), 2, "16 KiB are held, and no more");
    server.settle().unwrap();
    assert_eq!(server.log.len(), 3);
}

#[test]
fn options_wait_until_their_answers_are_taken() {
    let mut server = greeted(Tls::Off);
    let lists: Vec<u8> = (0..60).flat_map(|_| option(LIST, &[])).collect();
    server.receive(&lists, false).unwrap();
    server.send(usize::MAX).unwrap();
    assert_eq!(option_replies(&server.take_sent()).len(), 180);
    let more: Vec<u8> = (0..10).flat_map(|_| option(99, &[])).collect();
    assert_eq!(server.receive(&more, false), Err(Violation::TooManyOptions(64)));
}

#[test]
fn a_driver_without_memory_may_refuse_a_payload() {
    let mut server = attached("disk", false);
    server.receive(&request(0, WRITE, 1, 0, 1024), false).unwrap();
    let (slot, at, left) = server.connection.wanted().unwrap();
    assert_eq!((at, left), (0, 1024));
    assert!(!server.connection.complete(0, slot, Ok(())), "it has not come");
    assert!(server.connection.complete(0, slot, Err(ErrorCode::NoMem)));
    assert_eq!(server.connection.wanted(), None);
    let rest = [vec![7; 1024], request(0, FLUSH, 2, 0, 0)].concat();
    server.receive(&rest, false).unwrap();
    server.settle().unwrap();
    assert_eq!(server.take_sent(), [simple(1, 12, &[]), simple(2, 0, &[])].concat());
    assert_eq!((server.disks[0][0], server.log.len()), (0, 1));
    assert!(!server.connection.complete(0, slot, Ok(())) && !server.connection.complete(0, 1000, Ok(())));
}

#[test]
fn silence_and_stalls_have_their_ends() {
    let server = MemoryServer::new(&config(Tls::Off));
    assert_eq!(server.connection.next_deadline(), Some(10_000));
    assert_eq!(server.connection.on_timer(9_999), Ok(()));
    assert_eq!(server.connection.on_timer(10_000), Err(Violation::Silent));
    let mut server = attached("disk", false);
    assert_eq!(server.connection.next_deadline(), None, "a client may be idle");
    server.now_ns = 50_000;
    server.receive(&request(0, WRITE, 1, 0, 512)[..20], false).unwrap();
    assert_eq!(server.connection.next_deadline(), Some(51_000));
    server.now_ns = 50_500;
    server.receive(&request(0, WRITE, 1, 0, 512)[20..], false).unwrap();
    server.receive(&[0; 511], true).unwrap();
    assert_eq!(server.connection.on_timer(51_500), Err(Violation::Stalled));
    server.connection.hold(51_000, true);
    assert_eq!(server.connection.next_deadline(), None, "it is not the client who halts");
    server.connection.hold(60_000, false);
    assert_eq!(server.connection.next_deadline(), Some(61_000));
    server.receive(&[0; 1], true).unwrap();
    assert_eq!(server.connection.next_deadline(), None, "the device may take its time");
    server.now_ns = 90_000;
    server.complete(0, Ok(()));
    assert_eq!(server.connection.next_deadline(), Some(91_000), "the reply is not taken");
    server.send(usize::MAX).unwrap();
    assert_eq!(server.connection.next_deadline(), None);
}

#[test]
fn goodbyes_wait_for_what_is_under_way() {
    let mut server = attached("disk", false);
    let last = [request(0, READ, 1, 0, 512), request(0, DISCONNECT, 2, 0, 0), request(0, READ, 3, 0, 512)];
    server.receive(&last.concat(), false).unwrap();
    assert!(!server.connection.is_over());
    server.settle().unwrap();
    assert!(server.connection.is_over());
    assert_eq!((server.log.len(), server.take_sent()), (1, simple(1, 0, &[0; 512])));
    let mut server = greeted(Tls::Off);
    assert_eq!(answers(&mut server, &[option(ABORT, &[])]), [(ABORT, ACK, vec![])]);
    assert!(server.connection.is_over());
}

#[test]
fn a_server_that_goes_down_says_so() {
    let mut server = attached("disk", false);
    server.receive(&request(0, READ, 1, 0, 512), false).unwrap();
    server.connection.shut_down();
    let sent = replies(&mut server, &[write(0, 2, 0, &[1; 512])]);
    assert_eq!(sent, [simple(2, 108, &[]), simple(1, 0, &[0; 512])].concat());
    let mut server = greeted(Tls::Off);
    server.connection.shut_down();
    assert_eq!(kinds(&answers(&mut server, &[go(GO, "disk", &[])])), [ERR + 7]);
}

#[test]
fn what_is_not_the_protocol_ends_the_connection() {
    let wrong: [&[u8]; 3] = [&[0, 0, 0, 7], b"GET / HTTP/1.1\r\n", &[&hello()[..], &[b'x'; 16]].concat()];
    for bytes in wrong {
        let mut server = MemoryServer::new(&config(Tls::Off));
        assert!(matches!(server.receive(bytes, false), Err(Violation::Protocol(_))), "{bytes:?}");
    }
    let mut server = MemoryServer::new(&config(Tls::Off));
    let not_fixed = [&[0, 0, 0, 0][..], &go(GO, "disk", &[])].concat();
    assert!(matches!(server.receive(&not_fixed, false), Err(Violation::Protocol(_))));
    let mut server = attached("disk", false);
    assert!(matches!(server.receive(&[0; 28], false), Err(Violation::Protocol(_))));
}
