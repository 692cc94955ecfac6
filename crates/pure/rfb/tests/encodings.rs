//! What each encoding makes of the picture, and what a broken one is.

#![allow(clippy::unwrap_used)]

use crate::common;

use common::{packed, pixel, protocol_error, ready, rectangle, short, stream, update};
use virtbench_rfb::{Damage, Rectangle, RfbError, ServerEvent};

const RED: u32 = 0x00ff_0000;
const BLUE: u32 = 0x0000_00ff;

#[test]
fn raw_and_copied_pixels_arrive_and_what_changed_is_counted() {
    let mut client = ready(4, 4);
    client.pass_over(vec![Rectangle { x: 0, y: 0, width: 1, height: 1 }]);
    let pixels: Vec<u8> = [RED, BLUE, RED, BLUE].iter().flat_map(|colour| pixel(*colour)).collect();
    let events = client.take(&update(&[rectangle([0, 0, 2, 2], 0, &pixels)])).unwrap();
    let bounds = Rectangle { x: 0, y: 0, width: 2, height: 2 };
    assert_eq!(events, [ServerEvent::Updated(Damage { changed: 3, bounds, sent: 4 })], "one is passed over");
    assert_eq!((client.frame().pixel(0, 0), client.frame().pixel(1, 1)), (RED, BLUE));
    let again = client.take(&update(&[rectangle([0, 0, 2, 2], 0, &pixels)])).unwrap();
    assert_eq!(again, [ServerEvent::Updated(Damage { sent: 4, ..Damage::default() })]);
    // Overlapping: what is read is what stood there before.
    client.take(&update(&[rectangle([1, 1, 2, 2], 1, &[0, 0, 0, 0])])).unwrap();
    assert_eq!(client.frame().pixel(1, 1), RED);
    assert_eq!(client.frame().pixel(2, 2), BLUE);
    let beyond = client.take(&update(&[rectangle([1, 1, 2, 2], 1, &[0, 3, 0, 0])]));
    assert!(protocol_error(beyond).contains("beyond the picture"));
}

#[test]
fn tiles_of_hextile_keep_their_colours_for_the_next() {
    let mut client = ready(32, 16);
    let mut data = vec![2 | 4 | 8];
    data.extend(pixel(RED));
    data.extend(pixel(BLUE));
    data.extend([1, 0x23, 0x10]);
    // The second tile has the background of the first, and a part with a colour of its own.
    data.extend([8 | 16, 1]);
    data.extend(pixel(0x1234));
    data.extend([0xff, 0x00]);
    client.take(&update(&[rectangle([0, 0, 32, 16], 5, &data)])).unwrap();
    let frame = client.frame();
    assert_eq!((frame.pixel(0, 0), frame.pixel(2, 3), frame.pixel(3, 3)), (RED, BLUE, BLUE));
    assert_eq!((frame.pixel(4, 3), frame.pixel(16, 0), frame.pixel(31, 15)), (RED, RED, 0x1234));
    let mut beyond = vec![2 | 4 | 8];
    beyond.extend([pixel(RED), pixel(BLUE)].concat());
    beyond.extend([1, 0xff, 0x11]);
    let told = client.take(&update(&[rectangle([0, 0, 16, 16], 5, &beyond)]));
    assert!(protocol_error(told).contains("beyond it"));
}

#[test]
fn every_kind_of_zrle_tile_is_read() {
    let mut client = ready(64, 2);
    let mut zlib = stream();
    let mut draw = |plain: &[u8], width| {
        let data = packed(&mut zlib, plain);
        client.take(&update(&[rectangle([0, 0, width, 2], 16, &data)])).unwrap();
        let frame = client.frame();
        (0..2)
            .flat_map(|y| (0..width).map(move |x| (x, y)))
            .map(|(x, y)| frame.pixel(x, y))
            .collect::<Vec<_>>()
    };
    let (red, blue) = (short(RED), short(BLUE));
    assert_eq!(draw(&[&[1], &red[..]].concat(), 2), [RED; 4]);
    assert_eq!(draw(&[&[0], &red[..], &blue, &blue, &red].concat(), 2), [RED, BLUE, BLUE, RED]);
    // Two colours, one bit each, rows from a new byte on.
    assert_eq!(draw(&[&[2], &red[..], &blue, &[0x40, 0x80]].concat(), 2), [RED, BLUE, BLUE, RED]);
    assert_eq!(draw(&[&[3], &red[..], &blue, &blue, &[0x10, 0x20]].concat(), 2), [RED, BLUE, RED, BLUE]);
    // Runs go on in the next row.
    assert_eq!(draw(&[&[128], &red[..], &[2], &blue, &[0]].concat(), 2), [RED, RED, RED, BLUE]);
    assert_eq!(draw(&[&[130], &red[..], &blue, &[0, 129, 2]].concat(), 2), [RED, BLUE, BLUE, BLUE]);
    let long = draw(&[&[128], &red[..], &[127]].concat(), 64);
    assert_eq!(long, vec![RED; 128], "a run of 128 is 127 and one");
}

#[test]
fn broken_zrle_is_an_error() {
    for (plain, why) in [
        (vec![17], "a ZRLE tile of kind 17"),
        (vec![129], "a ZRLE tile of kind 129"),
        (vec![1, 2], "end too early"),
        ([&[1][..], &short(RED), &[9]].concat(), "after the last tile"),
        ([&[128][..], &short(RED), &[4]].concat(), "a run reaches beyond its tile"),
        ([&[130][..], &short(RED), &short(BLUE), &[2]].concat(), "colour 2 of a palette of 2"),
        (vec![1; 100_000], "unpacks to more than"),
    ] {
        let data = packed(&mut stream(), &plain);
        let told = ready(2, 2).take(&update(&[rectangle([0, 0, 2, 2], 16, &data)]));
        assert!(protocol_error(told).contains(why), "{why}");
    }
    let garbage = [&[0, 0, 0, 4][..], b"abcd"].concat();
    let told = ready(2, 2).take(&update(&[rectangle([0, 0, 2, 2], 16, &garbage)]));
    assert!(protocol_error(told).contains("zlib stream is broken"));
    let huge = ready(2, 2).take(&update(&[rectangle([0, 0, 2, 2], 16, &[0xff; 4])]));
    assert!(matches!(huge, Err(RfbError::TooLarge { what: "a ZRLE rectangle", .. })), "{huge:?}");
}

#[test]
fn a_picture_changes_its_size_and_an_update_may_end_early() {
    let mut client = ready(4, 4);
    let raw = rectangle([0, 0, 1, 1], 0, &pixel(RED));
    let mut bytes = update(&[raw, rectangle([0, 0, 0, 0], -224, &[])]);
    // As many as fit are announced; LastRect ends it.
    bytes[2..4].copy_from_slice(&[0xff, 0xff]);
    assert_eq!(client.take(&bytes).unwrap().len(), 1);
    let resized = client.take(&update(&[rectangle([0, 0, 8, 2], -223, &[])])).unwrap();
    assert_eq!(resized, [ServerEvent::Resized, ServerEvent::Updated(Damage::default())]);
    assert_eq!((client.frame().width(), client.frame().height(), client.frame().pixel(0, 0)), (8, 2, 0));
    let gigantic = client.take(&update(&[rectangle([0, 0, 0xffff, 0xffff], -223, &[])]));
    assert!(matches!(gigantic, Err(RfbError::TooLarge { what: "a picture", .. })), "{gigantic:?}");
    let beyond = ready(4, 4).take(&update(&[rectangle([3, 0, 2, 1], 0, &[])]));
    assert!(protocol_error(beyond).contains("beyond the picture of 4x4"));
    let unasked = ready(4, 4).take(&update(&[rectangle([0, 0, 1, 1], 7, &[])]));
    assert!(protocol_error(unasked).contains("encoding 7"));
}
