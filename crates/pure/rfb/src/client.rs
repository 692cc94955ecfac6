//! A connection to a server, from its first byte on.

use crate::frame::{Frame, ServerEvent};
use crate::handshake::{Greeting, Handshake};
use crate::input::{Chord, Key};
use crate::protocol;
use crate::protocol::{Limits, RfbError};
use crate::rectangle::Rectangle;
use crate::stream::Stream;

#[derive(Debug)]
enum Phase {
    Handshake(Handshake),
    Stream(Box<Stream>),
}

/// A connection to a server, from its first byte on. What it has to say collects in [`output`](Self::take_output).
#[derive(Debug)]
pub struct Client {
    phase: Phase,
    inbox: Vec<u8>,
    output: Vec<u8>,
    frame: Frame,
    limits: Limits,
    buttons: u8,
}

impl Client {
    /// Before the server has said anything. Of a password the first [`crate::PASSWORD_BYTES`] count.
    #[must_use]
    pub fn new(password: Option<String>, limits: Limits) -> Self {
        Self {
            phase: Phase::Handshake(Handshake::new(password, &limits)),
            inbox: Vec::new(),
            output: Vec::new(),
            frame: Frame::default(),
            limits,
            buttons: 0,
        }
    }

    /// Takes what the server has sent, in pieces of any size.
    ///
    /// # Errors
    /// The server refuses, breaks the protocol or goes beyond the limits. The connection is of no use then.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Vec<ServerEvent>, RfbError> {
        let mut inbox = std::mem::take(&mut self.inbox);
        inbox.extend_from_slice(bytes);
        let (mut at, mut events) = (0, Vec::new());
        while let Some(part) = inbox.get(at..at + self.wants()) {
            at += part.len();
            self.step(part, &mut events)?;
        }
        inbox.drain(..at);
        self.inbox = inbox;
        Ok(events)
    }

    fn wants(&self) -> usize {
        match &self.phase {
            Phase::Handshake(handshake) => handshake.wants(),
            Phase::Stream(stream) => stream.wants(),
        }
    }

    fn step(&mut self, part: &[u8], events: &mut Vec<ServerEvent>) -> Result<(), RfbError> {
        match &mut self.phase {
            Phase::Handshake(handshake) => match handshake.take(part, &mut self.output)? {
                Some(greeting) => self.begin(greeting, events),
                None => Ok(()),
            },
            Phase::Stream(stream) => stream.take(part, &mut self.frame, events),
        }
    }

    fn begin(&mut self, greeting: Greeting, events: &mut Vec<ServerEvent>) -> Result<(), RfbError> {
        self.frame = Frame::new(greeting.width, greeting.height, &self.limits)?;
        self.phase = Phase::Stream(Box::new(Stream::new(self.limits)));
        protocol::set_pixel_format(&mut self.output);
        protocol::set_encodings(&mut self.output);
        events.push(ServerEvent::Ready { name: greeting.name });
        Ok(())
    }

    /// Asks for the picture: whole, or once something has changed (`incremental`). Without effect before the server is ready.
    pub fn request_update(&mut self, incremental: bool) {
        if matches!(self.phase, Phase::Stream(_)) {
            let (width, height) = (self.frame.width(), self.frame.height());
            protocol::request_update(&mut self.output, Rectangle { x: 0, y: 0, width, height }, incremental);
        }
    }

    /// Asks for one pixel, which the server sends whether it has changed or not: the answer takes a round trip. Without effect before the
    /// server is ready.
    pub fn request_pixel(&mut self) {
        if matches!(self.phase, Phase::Stream(_)) {
            let pixel = Rectangle { x: 0, y: 0, width: 1, height: 1 };
            protocol::request_update(&mut self.output, pixel, false);
        }
    }

    /// Presses a key, or lets it go.
    pub fn key(&mut self, key: Key, pressed: bool) {
        protocol::key(&mut self.output, key.0, pressed);
    }

    /// Presses keys as written and lets them go.
    pub fn press(&mut self, chord: &Chord) {
        for held in &chord.held {
            self.key(*held, true);
        }
        self.key(chord.key, true);
        self.key(chord.key, false);
        for held in chord.held.iter().rev() {
            self.key(*held, false);
        }
    }

    /// Moves the pointer; buttons stay as they are.
    pub fn move_pointer(&mut self, x: u16, y: u16) {
        protocol::pointer(&mut self.output, self.buttons, x, y);
    }

    /// Presses or lets go a button at a place.
    pub fn button(&mut self, button: crate::PointerButton, pressed: bool, x: u16, y: u16) {
        self.buttons = if pressed { self.buttons | button.bit() } else { self.buttons & !button.bit() };
        self.move_pointer(x, y);
    }

    /// What is to be sent to the server.
    #[must_use]
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// The picture as it was last seen.
    #[must_use]
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// Changes of these parts of the picture do not count as damage.
    pub fn pass_over(&mut self, parts: Vec<Rectangle>) {
        self.frame.pass_over(parts);
    }
}
