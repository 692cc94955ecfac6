//! Whatever a server says: no panic, bounded memory, the same answer in whatever pieces.

#![allow(clippy::unwrap_used)]

use crate::common;

use common::{client, greeting, packed, pixel, ready, rectangle, short, stream, update};
use proptest::collection::vec;
use proptest::prelude::*;

fn meant() -> Vec<u8> {
    let mut zlib = stream();
    let run = packed(&mut zlib, &[&[128][..], &short(0xff), &[5], &short(0xff00), &[29]].concat());
    let tile = [&[2 | 4 | 8][..], &pixel(1), &pixel(2), &[1, 0x11, 0x22]].concat();
    update(&[
        rectangle([0, 0, 6, 6], 16, &run),
        rectangle([1, 1, 7, 7], 5, &tile),
        rectangle([0, 0, 2, 1], 0, &[pixel(7), pixel(8)].concat()),
        rectangle([2, 2, 2, 2], 1, &[0, 0, 0, 0]),
    ])
}

proptest! {
    #[test]
    fn any_bytes_are_taken_or_refused(bytes in vec(any::<u8>(), 0..400)) {
        let _ = client().take(&bytes);
        let _ = ready(16, 16).take(&bytes);
    }

    #[test]
    fn damaged_messages_are_taken_or_refused(at in 0usize..140, with in any::<u8>(), cut in 0usize..140) {
        let mut bytes = meant();
        let place = at % bytes.len();
        bytes[place] = with;
        let mut client = ready(16, 16);
        let first = client.take(&bytes[..cut.min(bytes.len())]);
        if first.is_ok() {
            let _ = client.take(&bytes[cut.min(bytes.len())..]);
        }
    }

    #[test]
    fn pieces_make_no_difference(cuts in vec(1usize..40, 1..60)) {
        let bytes = [greeting(16, 16), meant()].concat();
        let mut whole = client();
        let events = whole.take(&bytes).unwrap();
        let mut pieces = client();
        let (mut at, mut told) = (0, Vec::new());
        for cut in cuts.iter().cycle() {
            let end = (at + cut).min(bytes.len());
            told.extend(pieces.take(&bytes[at..end]).unwrap());
            at = end;
            if at == bytes.len() {
                break;
            }
        }
        prop_assert_eq!(told, events);
        prop_assert_eq!(pieces.frame().pixels(), whole.frame().pixels());
    }
}
