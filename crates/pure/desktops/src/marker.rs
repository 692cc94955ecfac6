//! The marker: a block of large cells of two shades in a corner of the picture.
//!
//! ```text
//! D  c c c c c c c c c c c c c c c c  L     D dark, L light: by them the reader knows the two shades
//! L  c c c c c c c c c c c c c c c c  D     c   64 bits: version, phase, operation, sequence, CRC-32
//! D  c c c c c c c c c c c c c c c c  L
//! L  c c c c c c c c c c c c c c c c  D
//! ```
//!
//! A cell is as large as the blocks in which lossy encodings damage a picture, and is judged by the mean of its middle. What does
//! not fit, shades that do not differ, cells between the shades, another checksum, is unreadable: nothing is guessed.

use thiserror::Error;

/// Side of a cell, in pixels.
pub const CELL: u16 = 8;
const COLUMNS: u16 = 18;
const ROWS: u16 = 4;
/// Width of the marker, in pixels.
pub const WIDTH: u16 = CELL * COLUMNS;
/// Height of the marker, in pixels.
pub const HEIGHT: u16 = CELL * ROWS;

const VERSION: u32 = 5;
const DARK: u8 = 32;
const LIGHT: u8 = 224;
/// How far apart the two shades have to be.
const LEAST_CONTRAST: u32 = 48;
/// A cell is as near to one shade as a third of the way to the other, or it is neither.
const NEAR: u32 = 3;
/// What is left out at the edges of a cell, where neighbours run into it.
const EDGE: u16 = 2;

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
    /// The operation's number in the run; after the last one it begins anew.
    pub sequence: u16,
    /// The operation's number in the day.
    pub operation: u8,
    /// What it is at.
    pub phase: Phase,
}

/// Why there is no marker.
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

impl Marker {
    fn bits(self) -> u64 {
        let word = VERSION << 28
            | self.phase.number() << 24
            | u32::from(self.operation) << 16
            | u32::from(self.sequence);
        u64::from(word) << 32 | u64::from(crc32fast::hash(&word.to_be_bytes()))
    }

    fn from_bits(bits: u64) -> Option<Self> {
        let bytes = bits.to_be_bytes();
        let [first, operation, high, low, check @ ..] = bytes;
        if crc32fast::hash(&bytes[..4]) != u32::from_be_bytes(check) || u32::from(first >> 4) != VERSION {
            return None;
        }
        let phase = Phase::ALL.into_iter().find(|phase| phase.number() == u32::from(first & 15))?;
        Some(Self { sequence: u16::from_be_bytes([high, low]), operation, phase })
    }
}

/// Whether a cell of the two outer columns is light.
fn known(column: u16, row: u16) -> bool {
    (row % 2 == 1) == (column == 0)
}

/// The shade of a pixel of the marker, `x` and `y` from its upper left corner: all three colours have it.
#[must_use]
pub fn level(marker: Marker, x: u16, y: u16) -> u8 {
    let (column, row) = (x / CELL, y / CELL);
    let light = if column == 0 || column + 1 >= COLUMNS {
        known(column, row)
    } else {
        let place = u32::from(row) * u32::from(COLUMNS - 2) + u32::from(column - 1);
        marker.bits() >> (63 - place.min(63)) & 1 == 1
    };
    if light { LIGHT } else { DARK }
}

/// Reads the marker; `luminance` is asked for pixels from the marker's upper left corner, and answers from 0 to 255.
///
/// # Errors
/// There is none that can be read without guessing.
pub fn read_marker(luminance: impl Fn(u16, u16) -> u8) -> Result<Marker, Unreadable> {
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
    Marker::from_bits(bits).ok_or(Unreadable::Checksum)
}
