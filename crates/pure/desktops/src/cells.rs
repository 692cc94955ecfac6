//! A block of large cells of two shades, by which a picture carries 64 bits.
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

use thiserror::Error;

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
