//! Numbers of a video's frames: found wherever they are, and never another one than was drawn.

use proptest::prelude::*;
use virtbench_desktops::{CELL, HEIGHT, WIDTH, find_frame_number, frame_level, read_frame_number};

/// A picture of grey stripes with a frame's number in it.
fn pixel(number: u16, place: (u16, u16), x: u16, y: u16) -> u8 {
    match (x.checked_sub(place.0), y.checked_sub(place.1)) {
        (Some(dx), Some(dy)) if dx < WIDTH && dy < HEIGHT => frame_level(number, dx, dy),
        _ => u8::try_from((x / 3 + y * 5) % 256).unwrap_or(0),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_frame_number_is_found_where_it_is(number: u16, x in 0_u16..97, y in 0_u16..69) {
        let (left, top) = find_frame_number(240, 100, |px, py| pixel(number, (x, y), px, py)).unwrap();
        prop_assert!(left.abs_diff(x) <= 2 && top.abs_diff(y) <= 2, "{left}, {top}");
        prop_assert_eq!(read_frame_number(|px, py| pixel(number, (x, y), left + px, top + py)), Ok(number));
    }

    /// A picture that is half of one frame and half of another, cut at any line.
    #[test]
    fn of_two_frames_in_one_picture_no_third_is_read(one: u16, other: u16, cut in 0_u16..HEIGHT) {
        let torn = |x: u16, y: u16| frame_level(if y < cut { one } else { other }, x, y);
        if let Ok(read) = read_frame_number(torn) {
            prop_assert!(read == one || read == other, "{one} and {other}: {read}");
        }
    }

    #[test]
    fn cells_that_are_turned_over_leave_no_other_number(number: u16, cells in 1_u64..) {
        let damaged = |x: u16, y: u16| {
            let shade = frame_level(number, x, y);
            let inner = (x / CELL).checked_sub(1).filter(|column| *column < 16);
            let turned = inner.is_some_and(|column| cells >> (y / CELL * 16 + column) & 1 == 1);
            if turned { 255 - shade } else { shade }
        };
        // Four cells of one bit, turned over together, are another number: that is no damage, but another picture.
        let rows: Vec<u64> = (0..4).map(|row| cells >> (16 * row) & 0xffff).collect();
        if rows.iter().any(|row| *row != rows[0]) {
            prop_assert!(read_frame_number(damaged).is_err());
        }
    }
}
