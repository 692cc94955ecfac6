//! The marker: cells in a corner of the picture that tell what an operation is at, and the number of a video's frame in the same cells.
//!
//! ```text
//! D  c c c c c c c c c c c c c c c c  L     D dark, L light: by them the reader knows the two shades
//! L  c c c c c c c c c c c c c c c c  D     c   64 bits, the highest first, light where one is set
//! D  c c c c c c c c c c c c c c c c  L
//! L  c c c c c c c c c c c c c c c c  D
//! ```
//!
//! A cell is as large as the blocks in which lossy encodings damage a picture, and is judged by the mean of its middle. What does
//! not fit, shades that do not differ, cells between the shades, is unreadable: nothing is guessed.
//!
//! ```text
//! row 1  the number     row 2  its bits the other way round     rows 3 and 4  the same again
//! ```
//!
//! So each bit is there four times, twice in each shade. Whatever makes a video can draw it: it takes no checksum, and a picture that
//! is half of one frame and half of another does not fit.

use thiserror::Error;

/// Sequences and revisions that a marker can tell: ten bits each.
const NUMBERS: u16 = 1 << 10;

/// What an operation is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Nothing goes on.
    Idle,
    /// It has begun.
    Begun,
    /// It is over.
    Ended,
    /// It is given up.
    Failed,
}

impl Phase {
    const ALL: [Self; 4] = [Self::Idle, Self::Begun, Self::Ended, Self::Failed];

    fn number(self) -> u32 {
        match self {
            Self::Idle => 3,
            Self::Begun => 5,
            Self::Ended => 10,
            Self::Failed => 12,
        }
    }
}

/// What the marker tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marker {
    /// The operation's number in the run, below 1024; after the last one it begins anew.
    pub sequence: u16,
    /// The operation's number in the day.
    pub operation: u8,
    /// What it is at.
    pub phase: Phase,
    /// How often its end was taken back because something was drawn after it, up to 1023.
    pub revision: u16,
}

impl Marker {
    /// The last revision of an end.
    pub const LAST_REVISION: u16 = NUMBERS - 1;

    /// The sequence that follows.
    #[must_use]
    pub fn sequence_after(sequence: u16) -> u16 {
        sequence.wrapping_add(1) % NUMBERS
    }

    fn bits(self) -> u64 {
        let word = self.phase.number() << 28
            | u32::from(self.operation) << 20
            | u32::from(self.sequence % NUMBERS) << 10
            | u32::from(self.revision % NUMBERS);
        u64::from(word) << 32 | u64::from(crc32fast::hash(&word.to_be_bytes()))
    }

    fn from_bits(bits: u64) -> Option<Self> {
        let [word @ .., _, _, _, _] = bits.to_be_bytes();
        if u64::from(crc32fast::hash(&word)) != bits & u64::from(u32::MAX) {
            return None;
        }
        let word = u32::from_be_bytes(word);
        let number = |shift: u32| u16::try_from(word >> shift & u32::from(NUMBERS - 1)).ok();
        let phase = Phase::ALL.into_iter().find(|phase| phase.number() == word >> 28)?;
        let operation = u8::try_from(word >> 20 & 0xff).ok()?;
        Some(Self { sequence: number(10)?, operation, phase, revision: number(0)? })
    }
}

/// The shade of a pixel of the marker, `x` and `y` from its upper left corner: all three colours have it.
#[must_use]
pub fn level(marker: Marker, x: u16, y: u16) -> u8 {
    level_of(marker.bits(), x, y)
}

/// Reads the marker; `luminance` is asked for pixels from the marker's upper left corner, and answers from 0 to 255.
///
/// # Errors
/// There is none that can be read without guessing.
pub fn read_marker(luminance: impl Fn(u16, u16) -> u8) -> Result<Marker, Unreadable> {
    Marker::from_bits(read_cells(luminance)?).ok_or(Unreadable::Checksum)
}

/// Side of a cell, in pixels.
pub const CELL: u16 = 8;

const COLUMNS: u16 = 18;

const ROWS: u16 = 4;

/// Width of the block, in pixels.
pub const WIDTH: u16 = CELL * COLUMNS;

/// Height of the block, in pixels.
pub const HEIGHT: u16 = CELL * ROWS;

const DARK: u8 = 32;

const LIGHT: u8 = 224;

/// How far apart the two shades have to be.
const LEAST_CONTRAST: u32 = 48;

/// A cell is as near to one shade as a third of the way to the other, or it is neither.
const NEAR: u32 = 3;

/// What is left out at the edges of a cell, where neighbours run into it.
const EDGE: u16 = 2;

/// Why nothing can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Unreadable {
    /// Nothing there looks like one.
    #[error("there is no marker in its corner of the picture")]
    Absent,
    /// A cell is neither dark nor light.
    #[error("the marker is too damaged to read")]
    Unclear,
    /// The cells are clear, but do not belong together: an update that is half there, or damage.
    #[error("the marker's checksum does not fit")]
    Checksum,
}

/// Whether a cell of the two outer columns is light.
fn known(column: u16, row: u16) -> bool {
    (row % 2 == 1) == (column == 0)
}

/// The shade of a pixel of the block, `x` and `y` from its upper left corner: all three colours have it.
pub(crate) fn level_of(bits: u64, x: u16, y: u16) -> u8 {
    let (column, row) = (x / CELL, y / CELL);
    let light = if column == 0 || column + 1 >= COLUMNS {
        known(column, row)
    } else {
        let place = u32::from(row) * u32::from(COLUMNS - 2) + u32::from(column - 1);
        bits >> (63 - place.min(63)) & 1 == 1
    };
    if light { LIGHT } else { DARK }
}

/// The bits of the block; `luminance` is asked for pixels from its upper left corner, and answers from 0 to 255.
///
/// # Errors
/// There is none that can be read without guessing.
pub(crate) fn read_cells(luminance: impl Fn(u16, u16) -> u8) -> Result<u64, Unreadable> {
    let mean = |column: u16, row: u16| {
        let middle = EDGE..CELL - EDGE;
        let sum: u32 = middle
            .clone()
            .flat_map(|y| middle.clone().map(move |x| (x, y)))
            .map(|(x, y)| u32::from(luminance(column * CELL + x, row * CELL + y)))
            .sum();
        sum / (u32::from(CELL - 2 * EDGE) * u32::from(CELL - 2 * EDGE))
    };
    let shades = |light: bool| {
        let outer = [0, COLUMNS - 1].into_iter().flat_map(|column| (0..ROWS).map(move |row| (column, row)));
        outer
            .filter(move |(column, row)| known(*column, *row) == light)
            .map(|(column, row)| mean(column, row))
    };
    let count = u32::from(ROWS);
    let (light, dark) = (shades(true).sum::<u32>() / count, shades(false).sum::<u32>() / count);
    if light < dark + LEAST_CONTRAST {
        return Err(Unreadable::Absent);
    }
    let near = (light - dark) / NEAR;
    let clear = |cell: u32| match (cell.abs_diff(dark) < near, cell.abs_diff(light) < near) {
        (true, false) => Some(0),
        (false, true) => Some(1),
        _ => None,
    };
    if !shades(true).all(|cell| clear(cell) == Some(1)) || !shades(false).all(|cell| clear(cell) == Some(0)) {
        return Err(Unreadable::Absent);
    }
    let mut bits = 0;
    for row in 0..ROWS {
        for column in 1..COLUMNS - 1 {
            let bit = clear(mean(column, row)).ok_or(Unreadable::Unclear)?;
            bits = bits << 1 | bit;
        }
    }
    Ok(bits)
}

/// Whether a block may begin here: by one pixel of each cell whose shade is known, at next to no cost.
pub(crate) fn may_begin(luminance: impl Fn(u16, u16) -> u8) -> bool {
    let shade = |column: u16, row: u16| u32::from(luminance(column * CELL + CELL / 2, row * CELL + CELL / 2));
    (0..ROWS).all(|row| {
        let (left, right) = (shade(0, row), shade(COLUMNS - 1, row));
        if known(0, row) { left > right + LEAST_CONTRAST / 2 } else { right > left + LEAST_CONTRAST / 2 }
    })
}

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
