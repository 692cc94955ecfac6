//! A user before the picture: what is typed goes out, what has changed comes in.

use std::io::{self, ErrorKind};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use virtbench_desktops::{HEIGHT, Marker, Unreadable, WIDTH, read_marker};
use virtbench_rfb::{Chord, Client, Event, Frame, Limits, Rectangle};

use crate::fault::Fault;
use crate::luminance::luminance;

/// How long a server may take to let a client in, and to take what is typed.
const LIMIT: Duration = Duration::from_secs(30);
/// Between two requests for the picture: a hundred frames a second, more than any server sends.
const PACE: Duration = Duration::from_millis(10);
const BUFFER_BYTES: usize = 64 << 10;
const SERVER: &str = "the VNC server";

/// What has come at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    /// When the bytes were read.
    pub(crate) at: Instant,
    /// Whether the picture changed outside the marker.
    pub(crate) changed: bool,
}

pub(crate) struct Screen {
    client: Client,
    stream: TcpStream,
    buffer: Box<[u8]>,
    /// Whether a request for the picture is in flight.
    asked: bool,
    next_request: Instant,
    /// Whether the corner of the picture belongs to a marker.
    has_marker: bool,
}

impl Screen {
    /// Waits until the server has let us in and sent the whole picture.
    pub(crate) async fn open(
        stream: TcpStream,
        password: Option<String>,
        has_marker: bool,
    ) -> Result<Self, Fault> {
        stream.set_nodelay(true).map_err(lost)?;
        let client = Client::new(password, Limits::default());
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        let next_request = Instant::now();
        let mut screen = Self { client, stream, buffer, asked: true, next_request, has_marker };
        let until = Instant::now() + LIMIT;
        loop {
            let Some((_, events)) = screen.read(until).await? else {
                return Err(Fault::Frozen("the VNC server does not let us in".into()));
            };
            if events.iter().any(|event| matches!(event, Event::Ready { .. })) {
                screen.client.request_update(false);
                screen.pass_over_marker();
            }
            if events.iter().any(|event| matches!(event, Event::Updated(_))) {
                screen.asked = false;
                return Ok(screen);
            }
            screen.send().await?;
        }
    }

    pub(crate) fn frame(&self) -> &Frame {
        self.client.frame()
    }

    /// What the corner of the picture says.
    pub(crate) fn marker(&self) -> Result<Marker, Unreadable> {
        let frame = self.client.frame();
        let (left, top) = corner(frame).ok_or(Unreadable::Absent)?;
        read_marker(|x, y| luminance(frame.pixel(left + x, top + y)))
    }

    pub(crate) fn press(&mut self, chord: &Chord) {
        self.client.press(chord);
    }

    /// Waits for the next change, at most until then.
    pub(crate) async fn next(&mut self, until: Instant) -> Result<Option<Seen>, Fault> {
        loop {
            if !self.asked && Instant::now() >= self.next_request {
                self.client.request_update(true);
                self.asked = true;
                self.next_request = Instant::now() + PACE;
            }
            self.send().await?;
            let wake = if self.asked { until } else { until.min(self.next_request) };
            let Some((at, events)) = self.read(wake).await? else {
                if Instant::now() >= until {
                    return Ok(None);
                }
                continue;
            };
            let (mut updated, mut changed) = (false, false);
            for event in events {
                match event {
                    Event::Updated(damage) => {
                        updated = true;
                        changed |= damage.changed > 0;
                    }
                    Event::Resized => self.pass_over_marker(),
                    Event::Ready { .. } | Event::Bell => {}
                }
            }
            if updated {
                self.asked = false;
                return Ok(Some(Seen { at, changed }));
            }
        }
    }

    /// Sends what is to be sent.
    pub(crate) async fn send(&mut self) -> Result<(), Fault> {
        let bytes = self.client.take_output();
        let mut rest = bytes.as_slice();
        let until = Instant::now() + LIMIT;
        while !rest.is_empty() {
            match self.stream.try_write(rest) {
                Ok(count) => rest = rest.get(count..).unwrap_or(&[]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let writable = timeout_at(until, self.stream.writable()).await;
                    writable
                        .map_err(|_| Fault::Frozen("the VNC server takes no keys any more".into()))?
                        .map_err(lost)?;
                }
                Err(error) => return Err(lost(error)),
            }
        }
        Ok(())
    }

    /// One read; nothing if nothing comes until then. The moment is taken before the bytes are looked at.
    async fn read(&mut self, until: Instant) -> Result<Option<(Instant, Vec<Event>)>, Fault> {
        loop {
            match timeout_at(until, self.stream.readable()).await {
                Err(_) => return Ok(None),
                Ok(ready) => ready.map_err(lost)?,
            }
            match self.stream.try_read(&mut self.buffer) {
                Ok(0) => return Err(lost(ErrorKind::UnexpectedEof.into())),
                Ok(count) => {
                    let at = Instant::now();
                    let events = self.client.take(self.buffer.get(..count).unwrap_or(&[]))?;
                    return Ok(Some((at, events)));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(lost(error)),
            }
        }
    }

    fn pass_over_marker(&mut self) {
        if let Some((x, y)) = corner(self.client.frame()).filter(|_| self.has_marker) {
            self.client.pass_over(Rectangle { x, y, width: WIDTH, height: HEIGHT });
        }
    }
}

fn corner(frame: &Frame) -> Option<(u16, u16)> {
    Some((frame.width().checked_sub(WIDTH)?, frame.height().checked_sub(HEIGHT)?))
}

fn lost(error: io::Error) -> Fault {
    Fault::Lost(SERVER, error)
}
