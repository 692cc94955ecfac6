//! Hextile (RFC 6143, section 7.7.4): tiles of 16 by 16 pixels, each raw or made of few colours.

use crate::frame::Frame;
use crate::protocol::{PIXEL_BYTES, RfbError, Wire};
use crate::rectangle::Rectangle;

const TILE: u16 = 16;
const RAW: u8 = 1;
const BACKGROUND: u8 = 2;
const FOREGROUND: u8 = 4;
const PARTS: u8 = 8;
const COLOURED: u8 = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Kind,
    Raw,
    /// Colours and the number of parts.
    Colours {
        kind: u8,
    },
    Parts {
        kind: u8,
        count: u8,
    },
}

/// A rectangle in Hextile; wants exactly as many bytes as it says.
#[derive(Debug)]
pub(crate) struct Hextile {
    area: Rectangle,
    /// How many tiles are done.
    done: usize,
    tile: Rectangle,
    background: u32,
    foreground: u32,
    state: State,
}

impl Hextile {
    /// Of a rectangle that has pixels.
    pub(crate) fn new(area: Rectangle) -> Self {
        let tile = nth_tile(area, 0).unwrap_or_default();
        Self { area, done: 0, tile, background: 0, foreground: 0, state: State::Kind }
    }

    pub(crate) fn wants(&self) -> usize {
        let pixel = |kind: u8, flag: u8| if kind & flag != 0 { PIXEL_BYTES } else { 0 };
        match self.state {
            State::Kind => 1,
            State::Raw => usize::from(self.tile.width) * usize::from(self.tile.height) * PIXEL_BYTES,
            State::Colours { kind } => {
                pixel(kind, BACKGROUND) + pixel(kind, FOREGROUND) + usize::from(kind & PARTS != 0)
            }
            State::Parts { kind, count } => usize::from(count) * (2 + pixel(kind, COLOURED)),
        }
    }

    /// Takes what it wants; true once the rectangle is whole.
    pub(crate) fn take(&mut self, bytes: &[u8], frame: &mut Frame) -> Result<bool, RfbError> {
        let mut wire = Wire(bytes);
        match self.state {
            State::Kind => {
                let kind = wire.u8()?;
                self.state = if kind & RAW != 0 { State::Raw } else { State::Colours { kind } };
                Ok(false)
            }
            State::Raw => {
                for y in (0..self.tile.height).map(|row| self.tile.y + row) {
                    let row = wire.bytes(usize::from(self.tile.width) * PIXEL_BYTES)?;
                    let pixels = row.chunks_exact(PIXEL_BYTES).map(|pixel| Wire(pixel).pixel().unwrap_or(0));
                    frame.put(self.tile.x, y, pixels);
                }
                Ok(self.next_tile())
            }
            State::Colours { kind } => {
                if kind & BACKGROUND != 0 {
                    self.background = wire.pixel()?;
                }
                if kind & FOREGROUND != 0 {
                    self.foreground = wire.pixel()?;
                }
                frame.fill(self.tile, self.background);
                let count = if kind & PARTS != 0 { wire.u8()? } else { 0 };
                if count == 0 {
                    return Ok(self.next_tile());
                }
                self.state = State::Parts { kind, count };
                Ok(false)
            }
            State::Parts { kind, count } => {
                for _ in 0..count {
                    self.part(kind, &mut wire, frame)?;
                }
                Ok(self.next_tile())
            }
        }
    }

    fn part(&self, kind: u8, wire: &mut Wire<'_>, frame: &mut Frame) -> Result<(), RfbError> {
        let colour = if kind & COLOURED != 0 { wire.pixel()? } else { self.foreground };
        let (place, size) = (wire.u8()?, wire.u8()?);
        let part = Rectangle {
            x: self.tile.x + u16::from(place >> 4),
            y: self.tile.y + u16::from(place & 15),
            width: u16::from(size >> 4) + 1,
            height: u16::from(size & 15) + 1,
        };
        if part.right() > self.tile.right() || part.bottom() > self.tile.bottom() {
            return Err(RfbError::Protocol("a part of a tile reaches beyond it".into()));
        }
        frame.fill(part, colour);
        Ok(())
    }

    fn next_tile(&mut self) -> bool {
        self.done += 1;
        self.state = State::Kind;
        match nth_tile(self.area, self.done) {
            Some(tile) => {
                self.tile = tile;
                false
            }
            None => true,
        }
    }
}

/// Reckoned, because going through all of them each time would take the square of their number.
fn nth_tile(area: Rectangle, number: usize) -> Option<Rectangle> {
    let across = usize::from(area.width.div_ceil(TILE));
    let column = u16::try_from(number % across).ok()?;
    let row = u16::try_from(number / across).ok()?;
    let (x, y) = (column.checked_mul(TILE)?, row.checked_mul(TILE)?);
    (y < area.height).then(|| Rectangle {
        x: area.x + x,
        y: area.y + y,
        width: TILE.min(area.width - x),
        height: TILE.min(area.height - y),
    })
}
