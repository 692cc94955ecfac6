//! The number of a video's frame, in cells of its picture.
//!
//! ```text
//! row 1  the number     row 2  its bits the other way round     rows 3 and 4  the same again
//! ```
//!
//! So each bit is there four times, twice in each shade. Whatever makes a video can draw it: it takes no checksum, and a picture that
//! is half of one frame and half of another does not fit.

use crate::cells::{HEIGHT, Unreadable, WIDTH, level_of, may_begin, read_cells};

/// How far from the best place a number can still be read, in pixels, at most.
const TOLERANCE: u16 = 8;

fn bits(number: u16) -> u64 {
    [number, !number, number, !number].into_iter().fold(0, |bits, row| bits << 16 | u64::from(row))
}

/// The shade of a pixel of a frame's number, `x` and `y` from its upper left corner: all three colours have it.
#[must_use]
pub fn frame_level(number: u16, x: u16, y: u16) -> u8 {
    level_of(bits(number), x, y)
}

/// Reads a frame's number; `luminance` is asked for pixels from the number's upper left corner, and answers from 0 to 255.
///
/// # Errors
/// There is none that can be read without guessing.
pub fn read_frame_number(luminance: impl Fn(u16, u16) -> u8) -> Result<u16, Unreadable> {
    let found = read_cells(luminance)?;
    let [high, low, ..] = found.to_be_bytes();
    let number = u16::from_be_bytes([high, low]);
    if bits(number) == found { Ok(number) } else { Err(Unreadable::Checksum) }
}

/// Looks for a frame's number anywhere in a picture of `width` by `height` pixels; returns its upper left corner.
pub fn find_frame_number(width: u16, height: u16, luminance: impl Fn(u16, u16) -> u8) -> Option<(u16, u16)> {
    let (right, bottom) = (width.checked_sub(WIDTH)?, height.checked_sub(HEIGHT)?);
    let is_at = |x: u16, y: u16| {
        x <= right
            && y <= bottom
            && may_begin(|dx, dy| luminance(x + dx, y + dy))
            && read_frame_number(|dx, dy| luminance(x + dx, y + dy)).is_ok()
    };
    let mut places = (0..=bottom).flat_map(|y| (0..=right).map(move |x| (x, y)));
    let (left, top) = places.find(|(x, y)| is_at(*x, *y))?;
    // It can be read somewhat beside its place as well: its place is in the middle.
    let columns = (0..=TOLERANCE).take_while(|beside| is_at(left + beside, top)).count();
    let x = left + half(columns);
    let rows = (0..=TOLERANCE).take_while(|below| is_at(x, top + below)).count();
    Some((x, top + half(rows)))
}

fn half(count: usize) -> u16 {
    u16::try_from(count.saturating_sub(1) / 2).unwrap_or(0)
}
