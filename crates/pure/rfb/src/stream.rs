//! What a server sends once a client is let in.

use crate::frame::{Frame, ServerEvent};
use crate::hextile::Hextile;
use crate::protocol::{
    BELL, COLOURS, COPY_RECT, CUT_TEXT, DESKTOP_SIZE, HEXTILE, LAST_RECT, Limits, PIXEL_BYTES, RAW, RfbError,
    UPDATE, Wire, ZRLE,
};
use crate::rectangle::Rectangle;
use crate::zrle::{Zrle, most_packed};

const RECTANGLE_BYTES: usize = 12;
/// What is passed over at once, in bytes.
const SKIP_BYTES: usize = 4096;

#[derive(Debug)]
enum State {
    Kind,
    UpdateHeader,
    Rectangle,
    Raw { area: Rectangle, row: u16 },
    Copy(Rectangle),
    Hextile(Hextile),
    ZrleLength(Rectangle),
    Zrle { area: Rectangle, bytes: usize },
    ColoursHeader,
    CutTextHeader,
    Skip(usize),
}

/// The server's messages; wants exactly as many bytes as it says.
#[derive(Debug)]
pub(crate) struct Stream {
    state: State,
    rectangles: u16,
    zrle: Zrle,
    limits: Limits,
}

impl Stream {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { state: State::Kind, rectangles: 0, zrle: Zrle::new(), limits }
    }

    pub(crate) fn wants(&self) -> usize {
        match &self.state {
            State::Kind => 1,
            State::UpdateHeader => 3,
            State::Rectangle => RECTANGLE_BYTES,
            State::Raw { area, .. } => usize::from(area.width) * PIXEL_BYTES,
            State::Copy(_) | State::ZrleLength(_) => 4,
            State::Hextile(hextile) => hextile.wants(),
            State::Zrle { bytes, .. } => *bytes,
            State::ColoursHeader => 5,
            State::CutTextHeader => 7,
            State::Skip(bytes) => SKIP_BYTES.min(*bytes),
        }
    }

    pub(crate) fn take(
        &mut self,
        bytes: &[u8],
        frame: &mut Frame,
        events: &mut Vec<ServerEvent>,
    ) -> Result<(), RfbError> {
        let mut wire = Wire(bytes);
        match &mut self.state {
            State::Kind => self.kind(wire.u8()?, events)?,
            State::UpdateHeader => {
                wire.u8()?;
                self.rectangles = wire.u16()?;
                self.next_rectangle(frame, events);
            }
            State::Rectangle => {
                let area = wire.rectangle()?;
                self.rectangle(area, wire.i32()?, frame, events)?;
            }
            State::Raw { area, row } => {
                let pixels = bytes.chunks_exact(PIXEL_BYTES).map(|pixel| Wire(pixel).pixel().unwrap_or(0));
                frame.put(area.x, area.y + *row, pixels);
                *row += 1;
                if *row == area.height {
                    self.next_rectangle(frame, events);
                }
            }
            State::Copy(to) => {
                let from = Rectangle { x: wire.u16()?, y: wire.u16()?, ..*to };
                frame.check(from)?;
                frame.copy((from.x, from.y), *to);
                self.next_rectangle(frame, events);
            }
            State::Hextile(hextile) => {
                if hextile.take(bytes, frame)? {
                    self.next_rectangle(frame, events);
                }
            }
            State::ZrleLength(area) => {
                let (area, length) = (*area, wire.u32()? as usize);
                if length > most_packed(area) {
                    let most = most_packed(area) as u64;
                    return Err(RfbError::too_large("a ZRLE rectangle", format!("{length} bytes"), most));
                }
                self.state = State::Zrle { area, bytes: length };
            }
            State::Zrle { area, .. } => {
                self.zrle.take(bytes, *area, frame)?;
                self.next_rectangle(frame, events);
            }
            State::ColoursHeader => {
                wire.bytes(3)?;
                self.state = skip(usize::from(wire.u16()?) * 6);
            }
            State::CutTextHeader => {
                wire.bytes(3)?;
                let (length, most) = (wire.u32()?, self.limits.clipboard_bytes);
                if length > most {
                    return Err(RfbError::too_large("copied text", format!("{length} bytes"), most.into()));
                }
                self.state = skip(length as usize);
            }
            State::Skip(left) => self.state = skip(left.saturating_sub(bytes.len())),
        }
        Ok(())
    }

    fn kind(&mut self, kind: u8, events: &mut Vec<ServerEvent>) -> Result<(), RfbError> {
        self.state = match kind {
            UPDATE => State::UpdateHeader,
            COLOURS => State::ColoursHeader,
            BELL => {
                events.push(ServerEvent::Bell);
                State::Kind
            }
            CUT_TEXT => State::CutTextHeader,
            other => return Err(RfbError::Protocol(format!("a message of kind {other}"))),
        };
        Ok(())
    }

    fn rectangle(
        &mut self,
        area: Rectangle,
        encoding: i32,
        frame: &mut Frame,
        events: &mut Vec<ServerEvent>,
    ) -> Result<(), RfbError> {
        self.rectangles = self.rectangles.saturating_sub(1);
        if encoding == LAST_RECT {
            self.rectangles = 0;
            self.next_rectangle(frame, events);
            return Ok(());
        }
        if encoding == DESKTOP_SIZE {
            let passed_over = frame.passed_over().to_vec();
            *frame = Frame::new(area.width, area.height, &self.limits)?;
            frame.pass_over(passed_over);
            events.push(ServerEvent::Resized);
            self.next_rectangle(frame, events);
            return Ok(());
        }
        frame.check(area)?;
        if area.pixels() == 0 && matches!(encoding, RAW | HEXTILE) {
            self.next_rectangle(frame, events);
            return Ok(());
        }
        self.state = match encoding {
            RAW => State::Raw { area, row: 0 },
            HEXTILE => State::Hextile(Hextile::new(area)),
            COPY_RECT => State::Copy(area),
            ZRLE => State::ZrleLength(area),
            other => {
                return Err(RfbError::Protocol(format!(
                    "a rectangle in encoding {other}, which nobody asked for"
                )));
            }
        };
        Ok(())
    }

    fn next_rectangle(&mut self, frame: &mut Frame, events: &mut Vec<ServerEvent>) {
        self.state = if self.rectangles == 0 {
            events.push(ServerEvent::Updated(frame.take_damage()));
            State::Kind
        } else {
            State::Rectangle
        };
    }
}

fn skip(bytes: usize) -> State {
    if bytes == 0 { State::Kind } else { State::Skip(bytes) }
}
