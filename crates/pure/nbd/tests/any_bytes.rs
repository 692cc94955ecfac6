//! Clients that say anything, in any pieces.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

use crate::common;

use common::invent::play;
use common::memory_server::{MemoryServer, config};
use common::speech::*;
use proptest::prelude::*;
use virtbench_nbd::server::{Tls, Violation};

/// What a client says: mostly right, sometimes not.
fn conversation() -> impl Strategy<Value = Vec<u8>> {
    let place = || prop_oneof![4 => (0u64..16).prop_map(|n| n * 512), 1 => any::<u64>()];
    let len = || prop_oneof![4 => (1u32..18).prop_map(|n| n * 512), 1 => 0u32..9000];
    let negotiation = prop_oneof![
        Just(option(STRUCTURED_REPLY, &[])),
        Just(option(LIST, &[])),
        Just(go(INFO, "disk", &[1, 3])),
        Just(contexts(SET_META_CONTEXT, "disk", &["base:allocation"])),
        (0u32..12, prop::collection::vec(any::<u8>(), 0..40))
            .prop_filter("these begin another phase", |(kind, _)| ![EXPORT_NAME, ABORT].contains(kind))
            .prop_map(|(kind, data)| option(kind, &data)),
    ];
    let transmission = prop_oneof![
        (any::<u64>(), place(), len()).prop_map(|(cookie, at, len)| request(0, READ, cookie, at, len)),
        (0u16..2, any::<u64>(), place(), len(), any::<u8>())
            .prop_map(|(flags, cookie, at, len, fill)| write(flags, cookie, at, &vec![fill; len as usize])),
        (0u16..32, 3u16..9, any::<u64>(), place(), len())
            .prop_map(|(flags, command, cookie, at, len)| request(flags, command, cookie, at, len)),
    ];
    let vec = |strategy: BoxedStrategy<Vec<u8>>| {
        prop::collection::vec(strategy, 0..20).prop_map(|parts| parts.concat())
    };
    (vec(negotiation.boxed()), vec(transmission.boxed()), prop::collection::vec(any::<u8>(), 0..60))
        .prop_map(|(first, then, noise)| [hello(), first, go(GO, "disk", &[3]), then, noise].concat())
}

/// Says it in pieces of these lengths, and takes the answers after each.
fn said(bytes: &[u8], pieces: &[usize], direct: bool) -> (Vec<u8>, Vec<u8>, Result<(), Violation>) {
    let mut server = MemoryServer::new(&config(Tls::Off));
    // Otherwise refusals would overtake what is in flight, which they may.
    server.eager = true;
    let mut rest = bytes;
    let mut ended = Ok(());
    for len in pieces.iter().cycle() {
        if rest.is_empty() || ended.is_err() {
            break;
        }
        let (piece, more) = rest.split_at((*len).min(rest.len()));
        rest = more;
        ended = server.receive(piece, direct).and_then(|()| server.settle());
    }
    server.send_only(usize::MAX);
    (server.take_sent(), server.disks.swap_remove(0), ended)
}

proptest! {
    #[test]
    fn pieces_change_nothing(
        bytes in conversation(),
        pieces in prop::collection::vec(1usize..3000, 1..20),
        direct in any::<bool>(),
    ) {
        let whole = said(&bytes, &[usize::MAX], false);
        let cut = said(&bytes, &pieces, direct);
        prop_assert_eq!(&whole.2, &cut.2);
        prop_assert!(whole.1 == cut.1, "the disks differ");
        prop_assert!(whole.0 == cut.0, "the answers differ: {} and {} bytes", whole.0.len(), cut.0.len());
    }

    #[test]
    fn no_client_panics_a_server_or_exceeds_its_limits(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        play(&bytes);
    }

    #[test]
    fn raw_bytes_end_or_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200), good in any::<bool>()) {
        let bytes = if good { [hello(), option(STRUCTURED_REPLY, &[]), bytes].concat() } else { bytes };
        let _ = said(&bytes, &[7], true);
    }
}
