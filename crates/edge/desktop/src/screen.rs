//! A user before the picture: what is typed goes out, what has changed comes in.

use std::io::{self, ErrorKind};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use virtbench_desktops::{HEIGHT, Marker, STILL, Unreadable, WIDTH, read_marker};
use virtbench_rfb::{Chord, Client, Frame, Limits, Rectangle, ServerEvent};

use crate::control::Fault;

/// How long a server may take to let a client in, and to take what is typed.
const LIMIT: Duration = Duration::from_secs(30);

/// Between two requests for the picture: a hundred frames a second, more than any server sends.
const PACE: Duration = Duration::from_millis(10);

const BUFFER_BYTES: usize = 64 << 10;

const SERVER: &str = "the VNC server";

/// What has come at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PictureChange {
    /// When the bytes were read.
    pub(crate) at: Instant,
    /// Where the picture changed outside the marker and what is passed over; empty where it did not.
    pub(crate) bounds: Rectangle,
}

impl PictureChange {
    pub(crate) fn has_changed(&self) -> bool {
        self.bounds.pixels() > 0
    }
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
    /// Parts whose changes say nothing of an operation.
    masks: Vec<Rectangle>,
    /// When the last bytes of an update came that is not complete yet.
    incomplete: Option<Instant>,
    /// The least time that a question took to be answered.
    round_trip: Duration,
}

/// How long the answer to a question of one pixel is waited for.
const ANSWER: Duration = Duration::from_secs(2);

/// How many are asked: the least time is that of the link.
const QUESTIONS: u32 = 3;

impl Screen {
    /// Waits until the server has let us in and sent the whole picture.
    pub(crate) async fn open(
        stream: TcpStream,
        password: Option<String>,
        has_marker: bool,
        masks: Vec<Rectangle>,
    ) -> Result<Self, Fault> {
        stream.set_nodelay(true).map_err(lost)?;
        let client = Client::new(password, Limits::default());
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        let next_request = Instant::now();
        let mut screen = Self {
            client,
            stream,
            buffer,
            asked: true,
            next_request,
            has_marker,
            masks,
            incomplete: None,
            round_trip: Duration::ZERO,
        };
        let until = Instant::now() + LIMIT;
        loop {
            let Some((_, events)) = screen.read(until).await? else {
                return Err(Fault::Frozen("the VNC server does not let us in".into()));
            };
            if events.iter().any(|event| matches!(event, ServerEvent::Ready { .. })) {
                screen.client.request_update(false);
                screen.pass_over();
            }
            if events.iter().any(|event| matches!(event, ServerEvent::Updated(_))) {
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
    pub(crate) async fn next(&mut self, until: Instant) -> Result<Option<PictureChange>, Fault> {
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
            let (mut updated, mut bounds) = (false, Rectangle::default());
            for event in events {
                match event {
                    ServerEvent::Updated(damage) => {
                        updated = true;
                        bounds = bounds.union(damage.bounds);
                    }
                    ServerEvent::Resized => self.pass_over(),
                    ServerEvent::Ready { .. } | ServerEvent::Bell => {}
                }
            }
            self.incomplete = (!updated).then_some(at);
            if updated {
                self.asked = false;
                return Ok(Some(PictureChange { at, bounds }));
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
    async fn read(&mut self, until: Instant) -> Result<Option<(Instant, Vec<ServerEvent>)>, Fault> {
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

    fn pass_over(&mut self) {
        let marker = corner(self.client.frame()).filter(|_| self.has_marker);
        let marker = marker.map(|(x, y)| Rectangle { x, y, width: WIDTH, height: HEIGHT });
        self.client.pass_over(self.masks.iter().copied().chain(marker).collect());
    }

    /// Leaves out what changes all the time, beside what is left out already.
    pub(crate) fn mask(&mut self, parts: &[Rectangle]) {
        self.masks.extend(parts);
        self.pass_over();
    }

    /// When the picture has stood still for long enough, if nothing comes any more: it changed last at `last`, whatever is on its way
    /// needs a round trip, and an update of which a part has come is followed by the rest.
    pub(crate) fn still_at(&self, last: Instant) -> Instant {
        self.incomplete.map_or(last, |part| part.max(last)) + STILL + self.round_trip
    }

    /// Measures how long the link and the server take for an answer. A server that does not answer at all takes as long as is waited for.
    pub(crate) async fn measure_round_trip(&mut self) -> Result<(), Fault> {
        let mut least = ANSWER;
        for _ in 0..QUESTIONS {
            let asked = Instant::now();
            self.client.request_pixel();
            if let Some(seen) = self.next(asked + ANSWER).await? {
                least = least.min(seen.at.saturating_duration_since(asked));
            }
        }
        self.round_trip = least;
        Ok(())
    }
}

fn corner(frame: &Frame) -> Option<(u16, u16)> {
    Some((frame.width().checked_sub(WIDTH)?, frame.height().checked_sub(HEIGHT)?))
}

fn lost(error: io::Error) -> Fault {
    Fault::Lost(SERVER, error)
}

/// How light a pixel is, from 0 to 255: ITU-R BT.601, as lossy encodings reckon it.
pub(crate) fn luminance(pixel: u32) -> u8 {
    let [_, red, green, blue] = pixel.to_be_bytes().map(u32::from);
    u8::try_from((red * 77 + green * 150 + blue * 29) >> 8).unwrap_or(u8::MAX)
}
