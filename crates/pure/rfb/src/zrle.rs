//! ZRLE (RFC 6143, section 7.7.6): tiles of 64 by 64 pixels, with palettes and runs, in one zlib stream of the connection.

use flate2::{Decompress, FlushDecompress, Status};

use crate::frame::Frame;
use crate::protocol::{RfbError, Wire};
use crate::rectangle::Rectangle;

const TILE: u16 = 64;
const SHORT_PIXEL_BYTES: usize = 3;
/// A tile's kind and the largest palette.
const TILE_HEADER_BYTES: usize = 1 + 127 * SHORT_PIXEL_BYTES;
/// A run of one pixel: its colour and its length.
const RUN_BYTES: usize = SHORT_PIXEL_BYTES + 1;

/// The connection's zlib stream.
pub(crate) struct Zrle {
    stream: Decompress,
    plain: Vec<u8>,
}

impl std::fmt::Debug for Zrle {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Zrle").finish_non_exhaustive()
    }
}

/// What a rectangle comes to at most once it is decompressed, in bytes.
fn most_plain(area: Rectangle) -> usize {
    let tiles = usize::from(area.width.div_ceil(TILE)) * usize::from(area.height.div_ceil(TILE));
    tiles * TILE_HEADER_BYTES + area.pixels() as usize * RUN_BYTES
}

/// What it may take compressed, in bytes: zlib's own overhead is far less.
pub(crate) fn most_packed(area: Rectangle) -> usize {
    most_plain(area) + most_plain(area) / 8 + 1024
}

impl Zrle {
    pub(crate) fn new() -> Self {
        Self { stream: Decompress::new(true), plain: Vec::new() }
    }

    pub(crate) fn take(&mut self, packed: &[u8], area: Rectangle, frame: &mut Frame) -> Result<(), RfbError> {
        self.unpack(packed, most_plain(area))?;
        let mut wire = Wire(&self.plain);
        for tile in area.tiles(TILE) {
            put_tile(&mut wire, tile, frame)?;
        }
        if !wire.0.is_empty() {
            return Err(RfbError::Protocol(format!("{} bytes after the last tile", wire.0.len())));
        }
        Ok(())
    }

    fn unpack(&mut self, packed: &[u8], most: usize) -> Result<(), RfbError> {
        self.plain.clear();
        // One more, by which too much is noticed.
        self.plain.reserve(most + 1);
        let mut rest = packed;
        loop {
            let before = (self.stream.total_in(), self.plain.len());
            let status = self
                .stream
                .decompress_vec(rest, &mut self.plain, FlushDecompress::Sync)
                .map_err(|error| RfbError::Protocol(format!("its zlib stream is broken: {error}")))?;
            let taken = usize::try_from(self.stream.total_in() - before.0).unwrap_or(rest.len());
            rest = rest.get(taken..).unwrap_or(&[]);
            if self.plain.len() > most {
                return Err(RfbError::Protocol(format!("a rectangle unpacks to more than {most} bytes")));
            }
            if status == Status::StreamEnd && !rest.is_empty() {
                return Err(RfbError::Protocol("its zlib stream has ended".into()));
            }
            if rest.is_empty() && self.plain.len() == before.1 {
                return Ok(());
            }
            if taken == 0 && self.plain.len() == before.1 {
                return Err(RfbError::Protocol("its zlib stream goes on no more".into()));
            }
        }
    }
}

fn put_tile(wire: &mut Wire<'_>, tile: Rectangle, frame: &mut Frame) -> Result<(), RfbError> {
    let kind = wire.u8()?;
    match kind {
        0 => put(tile, frame, || wire.short_pixel()),
        1 => {
            let colour = wire.short_pixel()?;
            frame.fill(tile, colour);
            Ok(())
        }
        2..=16 => packed(wire, tile, frame, kind),
        128 => {
            let mut left = tile.pixels();
            let mut run = (0, 0);
            put(tile, frame, || {
                if run.1 == 0 {
                    run = (wire.short_pixel()?, run_length(wire, left)?);
                }
                run.1 -= 1;
                left -= 1;
                Ok(run.0)
            })
        }
        130..=255 => palette_runs(wire, tile, frame, kind - 128),
        _ => Err(RfbError::Protocol(format!("a ZRLE tile of kind {kind}"))),
    }
}

fn put(
    tile: Rectangle,
    frame: &mut Frame,
    mut next: impl FnMut() -> Result<u32, RfbError>,
) -> Result<(), RfbError> {
    let mut row = [0; TILE as usize];
    for y in (0..tile.height).map(|row| tile.y + row) {
        for place in &mut row[..usize::from(tile.width)] {
            *place = next()?;
        }
        frame.put(tile.x, y, row[..usize::from(tile.width)].iter().copied());
    }
    Ok(())
}

fn palette(wire: &mut Wire<'_>, count: u8) -> Result<Vec<u32>, RfbError> {
    (0..count).map(|_| wire.short_pixel()).collect()
}

fn colour(palette: &[u32], index: u8) -> Result<u32, RfbError> {
    let no = || RfbError::Protocol(format!("colour {index} of a palette of {}", palette.len()));
    palette.get(usize::from(index)).copied().ok_or_else(no)
}

/// Indices of 1, 2 or 4 bits, each row from a new byte on.
fn packed(wire: &mut Wire<'_>, tile: Rectangle, frame: &mut Frame, count: u8) -> Result<(), RfbError> {
    let colours = palette(wire, count)?;
    let bits = match count {
        2 => 1,
        3 | 4 => 2,
        _ => 4,
    };
    for y in (0..tile.height).map(|row| tile.y + row) {
        let row = wire.bytes((usize::from(tile.width) * bits).div_ceil(8))?;
        let indices = (0..usize::from(tile.width)).map(|at| {
            let byte = row.get(at * bits / 8).copied().unwrap_or(0);
            byte >> (8 - bits - at * bits % 8) & (0xff >> (8 - bits))
        });
        let pixels = indices.map(|index| colour(&colours, index)).collect::<Result<Vec<_>, _>>()?;
        frame.put(tile.x, y, pixels.into_iter());
    }
    Ok(())
}

fn palette_runs(wire: &mut Wire<'_>, tile: Rectangle, frame: &mut Frame, count: u8) -> Result<(), RfbError> {
    let colours = palette(wire, count)?;
    let mut left = tile.pixels();
    let mut run = (0, 0);
    put(tile, frame, || {
        if run.1 == 0 {
            let index = wire.u8()?;
            let length = if index & 128 == 0 { 1 } else { run_length(wire, left)? };
            run = (colour(&colours, index & 127)?, length);
        }
        run.1 -= 1;
        left -= 1;
        Ok(run.0)
    })
}

/// One more than the sum of its bytes, of which the last is the first that is not 255.
fn run_length(wire: &mut Wire<'_>, most: u32) -> Result<u32, RfbError> {
    let mut length = 1;
    loop {
        let byte = wire.u8()?;
        length += u32::from(byte);
        if length > most {
            return Err(RfbError::Protocol("a run reaches beyond its tile".into()));
        }
        if byte != 255 {
            return Ok(length);
        }
    }
}
