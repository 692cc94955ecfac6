//! A desktop of which there is nothing but the marker and a cursor: for tests and for measuring how exactly clients time.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use virtbench_desktops::{
    Answer, Ending, HEIGHT, Marker, Order, Phase, Request, STILL, Until, Video, WIDTH, frame_level, level,
};

use crate::desk::Desk;

const SIZE: [u16; 2] = [320, 200];

/// Where the cursor is, and how large: that of a terminal.
const CURSOR: [u16; 4] = [16, 16, 8, 16];

/// Where the clock is.
const CLOCK: [u16; 4] = [280, 4, 32, 12];

/// Where a video's frames have their numbers.
const FRAME_NUMBER: [u16; 4] = [40, 61, WIDTH, HEIGHT];

/// What is drawn, and when.
#[derive(Debug, Clone, Copy)]
pub struct Drawing {
    /// How long every operation takes: from its last key on, or from its beginning, to the marker of its end.
    pub delay: Duration,
    /// Whether the marker is drawn at all.
    pub marker: bool,
    /// How long the cursor is seen and not seen in turn; it does not blink if there is none.
    pub blink: Option<Duration>,
    /// How long after the last key the cursor changes as well; keys change nothing if there is none.
    pub echo: Option<Duration>,
    /// What is drawn after the echo, if something is.
    pub second: Option<SecondStep>,
    /// How often a clock ticks; there is none otherwise.
    pub clock: Option<Duration>,
    /// How long after its end an operation that has to stand still draws once more, and again.
    pub repaints: &'static [Duration],
    /// Frames of a video that are not drawn.
    pub dropped: &'static [u16],
}

/// What a key changes later than its echo.
#[derive(Debug, Clone, Copy)]
pub struct SecondStep {
    /// How long after the key.
    pub after: Duration,
    /// The whole picture, or the cursor alone.
    pub whole: bool,
}

impl Drawing {
    /// A desktop with a marker that answers each key at once.
    #[must_use]
    pub fn after(delay: Duration) -> Self {
        Self {
            delay,
            marker: true,
            blink: None,
            echo: Some(Duration::ZERO),
            second: None,
            clock: None,
            repaints: &[],
            dropped: &[],
        }
    }
}

/// A desktop whose operations all take the same time. It ends with its connections.
#[derive(Debug)]
pub struct DrawnDesktop {
    screen: SocketAddr,
    control: SocketAddr,
}

#[derive(Debug)]
struct State {
    marker: Option<Marker>,
    keys: u32,
    /// When the last key arrived.
    last_key: Instant,
    /// Whether the cursor has yet to change after it.
    owes_echo: bool,
    /// Whether the second step is yet to come.
    owes_second: bool,
    /// Whether a pixel was asked for, changed or not.
    owes_pixel: bool,
    /// Whether the marker is another one than was sent last.
    dirty: bool,
    /// The video's frame that is shown.
    frame: Option<u16>,
    /// Whether it has yet to be sent.
    owes_frame: bool,
    asked: bool,
    closed: bool,
}

type Shared = Arc<(Mutex<State>, Condvar)>;

impl DrawnDesktop {
    /// Serves one user.
    ///
    /// # Errors
    /// It gets no port.
    pub fn start(drawing: Drawing) -> io::Result<Self> {
        let (screen, control) = (TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?);
        let desktop = Self { screen: screen.local_addr()?, control: control.local_addr()? };
        let idle = Marker { sequence: 0, operation: 0, phase: Phase::Idle, revision: 0 };
        let state = State {
            marker: drawing.marker.then_some(idle),
            keys: 0,
            last_key: Instant::now(),
            owes_echo: false,
            owes_second: false,
            owes_pixel: false,
            dirty: true,
            frame: None,
            owes_frame: false,
            asked: false,
            closed: false,
        };
        let shared: Shared = Arc::new((Mutex::new(state), Condvar::new()));
        let of_screen = Arc::clone(&shared);
        thread::Builder::new().spawn(move || {
            let served = screen.accept().and_then(|(stream, _)| serve_screen(stream, &of_screen, drawing));
            change(&of_screen, |state| state.closed = true);
            served
        })?;
        thread::Builder::new().spawn(move || {
            control.accept().and_then(|(stream, _)| serve_control(stream, &shared, drawing))
        })?;
        Ok(desktop)
    }

    /// The way there.
    ///
    /// # Errors
    /// Somebody else is there already.
    pub fn desk(&self) -> io::Result<Desk> {
        let (screen, control) = (TcpStream::connect(self.screen)?, TcpStream::connect(self.control)?);
        Ok(Desk { screen: Ok(screen), control: Some(control), password: None })
    }
}

fn lock(shared: &Shared) -> MutexGuard<'_, State> {
    shared.0.lock().unwrap_or_else(PoisonError::into_inner)
}

fn change(shared: &Shared, change: impl FnOnce(&mut State)) {
    change(&mut lock(shared));
    shared.1.notify_all();
}

fn show(shared: &Shared, marker: Marker) {
    change(shared, |state| {
        state.marker = state.marker.map(|_| marker);
        state.dirty = true;
    });
}

fn serve_control(stream: TcpStream, shared: &Shared, drawing: Drawing) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut answers = stream.try_clone()?;
    for line in BufReader::new(stream).lines() {
        let request: Request = serde_json::from_str(&line?)?;
        let (sequence, (took, revision)) = match request {
            Request::Clear { sequence } => (sequence, (Duration::ZERO, 0)),
            Request::Watch(order) => (order.sequence, operation(shared, &order, drawing)),
        };
        let inside_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let mut text = serde_json::to_vec(&Answer { sequence, ending: Ending::Done, inside_ns, revision })?;
        text.push(b'\n');
        answers.write_all(&text)?;
    }
    Ok(())
}

/// Returns how long it has really taken, since a busy machine lets nobody sleep exactly, and which end was the last.
fn operation(shared: &Shared, order: &Order, drawing: Drawing) -> (Duration, u16) {
    let &Order { sequence, operation, .. } = order;
    let marker = |phase, revision| Marker { sequence, operation, phase, revision };
    change(shared, |state| state.keys = 0);
    let begun = Instant::now();
    show(shared, marker(Phase::Begun, 0));
    let mut state = lock(shared);
    while state.keys < order.keys && !state.closed {
        state = shared.1.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
    let from = if order.keys == 0 { begun } else { state.last_key };
    drop(state);
    thread::sleep((from + drawing.delay).saturating_duration_since(Instant::now()));
    let mut took = from.elapsed();
    if let Until::Video(video) = order.until {
        took = play(shared, video, drawing.dropped);
    }
    show(shared, marker(Phase::Ended, 0));
    let mut revision = 0;
    for pause in drawing.repaints.iter().filter(|_| order.still) {
        thread::sleep(*pause);
        revision += 1;
        took = from.elapsed();
        change(shared, |state| (state.owes_echo, state.last_key) = (true, Instant::now()));
        show(shared, marker(Phase::Ended, revision));
    }
    if order.still {
        thread::sleep(STILL);
    }
    (took, revision)
}

/// Shows a video's frames in time, each once the one before has been sent and another picture is asked for: so none but those that are
/// dropped is missed, however busy the machine is. Returns the time from the first one to the last.
fn play(shared: &Shared, video: Video, dropped: &[u16]) -> Duration {
    let begun = Instant::now();
    let (mut first, mut last) = (None, begun);
    let wait = |is_due: &dyn Fn(&State) -> bool| {
        let mut state = lock(shared);
        while !is_due(&state) && !state.closed {
            state = shared.1.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    };
    for number in (0..video.frames).filter(|number| !dropped.contains(number)) {
        let due = begun + Duration::from_nanos(Video { frames: number, ..video }.length_ns());
        thread::sleep(due.saturating_duration_since(Instant::now()));
        wait(&|state| state.asked && !state.owes_frame && !state.dirty);
        last = Instant::now();
        first.get_or_insert(last);
        change(shared, |state| (state.frame, state.owes_frame) = (Some(number), true));
    }
    wait(&|state| !state.owes_frame);
    last - first.unwrap_or(last)
}

/// Speaks RFB 3.8 in raw pixels.
fn serve_screen(mut stream: TcpStream, shared: &Shared, drawing: Drawing) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.write_all(b"RFB 003.008\n\x01\x01")?;
    let mut hello = [0; 14];
    stream.read_exact(&mut hello[..13])?;
    stream.write_all(&[0; 4])?;
    stream.read_exact(&mut hello[..1])?;
    let size: Vec<u8> = SIZE.iter().flat_map(|side| side.to_be_bytes()).collect();
    stream.write_all(&[&size[..], &[0; 16], &[0, 0, 0, 5], b"drawn"].concat())?;
    let out = stream.try_clone()?;
    thread::scope(|scope| {
        let writer = thread::Builder::new().spawn_scoped(scope, || send_updates(out, shared, drawing));
        let read = read_messages(&mut stream, shared);
        change(shared, |state| state.closed = true);
        writer.map(|_| ()).and(read)
    })
}

fn read_messages(stream: &mut TcpStream, shared: &Shared) -> io::Result<()> {
    let mut buffer = [0; 256];
    loop {
        stream.read_exact(&mut buffer[..1])?;
        let rest = match buffer[0] {
            0 => 19,
            2 => {
                stream.read_exact(&mut buffer[..3])?;
                usize::from(buffer[2]) * 4
            }
            3 => 9,
            4 => 7,
            5 => 5,
            _ => return Err(io::ErrorKind::InvalidData.into()),
        };
        let kind = buffer[0];
        let body = buffer.get_mut(..rest).ok_or(io::ErrorKind::InvalidData)?;
        stream.read_exact(body)?;
        match kind {
            3 if buffer[0] == 0 => change(shared, |state| (state.asked, state.owes_pixel) = (true, true)),
            3 => change(shared, |state| state.asked = true),
            4 if buffer[0] == 1 => change(shared, |state| {
                state.keys += 1;
                state.last_key = Instant::now();
                (state.owes_echo, state.owes_second) = (true, true);
            }),
            _ => {}
        }
    }
}

/// Greys of echoes; the highest bit of what is drawn is the blinking.
const ECHO_GREYS: u8 = 128;
/// Between the greys of two echoes. It is odd, so that all come before one comes again.
const ECHO_STEP: u8 = 37;

/// A year is as good as for ever.
const NEVER: Duration = Duration::from_secs(31_536_000);

fn send_updates(mut stream: TcpStream, shared: &Shared, drawing: Drawing) -> io::Result<()> {
    let blink = drawing.blink.unwrap_or(NEVER);
    let (mut is_seen, mut next) = (false, Instant::now() + blink);
    let tick = drawing.clock.unwrap_or(NEVER);
    let (mut time, mut next_tick) = (0_u8, Instant::now() + tick);
    // Every echo is another grey, as every character is another picture: two of them in one update do not cancel out.
    let mut grey = 0_u8;
    loop {
        let (mut blinks, mut is_whole, mut ticks) = (false, false, false);
        let mut state = lock(shared);
        loop {
            let now = Instant::now();
            if next <= now {
                (blinks, is_seen, next) = (true, !is_seen, now + blink);
            }
            let echo = drawing.echo.filter(|_| state.owes_echo).map(|after| state.last_key + after);
            if echo.is_some_and(|at| at <= now) {
                (blinks, grey, state.owes_echo) = (true, (grey + ECHO_STEP) % ECHO_GREYS, false);
                continue;
            }
            let second = drawing.second.filter(|_| state.owes_second && !state.owes_echo);
            let second = second.map(|second| (state.last_key + second.after, second.whole));
            if let Some((_, whole)) = second.filter(|(at, _)| *at <= now) {
                (blinks, grey, state.owes_second) = (true, (grey + ECHO_STEP) % ECHO_GREYS, false);
                is_whole |= whole;
                continue;
            }
            if next_tick <= now {
                (ticks, time, next_tick) = (true, time.wrapping_add(1), now + tick);
            }
            let is_due = state.dirty || state.owes_frame || state.owes_pixel || blinks || ticks;
            if state.closed || state.asked && is_due {
                break;
            }
            let others = [echo, second.map(|(at, _)| at), Some(next_tick)];
            let wake = others.into_iter().flatten().fold(next, Instant::min);
            let wait = wake.saturating_duration_since(now);
            state = shared.1.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.closed {
            return Ok(());
        }
        let marker = state.dirty.then_some(state.marker);
        let frame = state.frame.filter(|_| state.owes_frame);
        (state.asked, state.dirty, state.owes_frame, state.owes_pixel) = (false, false, false, false);
        drop(state);
        shared.1.notify_all();
        let drawn = [marker.is_some(), frame.is_some(), blinks, ticks, is_whole].map(u8::from);
        let mut bytes = head(&drawn);
        let shade = u8::from(is_seen) << 7 | grey;
        if is_whole {
            let [width, height] = SIZE;
            rectangle(&mut bytes, [0, CURSOR[1], width, height - CURSOR[1]], |_, _| shade);
        }
        if ticks {
            rectangle(&mut bytes, CLOCK, |_, _| time);
        }
        if let Some(number) = frame {
            rectangle(&mut bytes, FRAME_NUMBER, |x, y| frame_level(number, x, y));
        }
        if let Some(marker) = marker {
            let [width, height] = SIZE;
            let place = [width - WIDTH, height - HEIGHT, WIDTH, HEIGHT];
            rectangle(&mut bytes, place, |x, y| marker.map_or(0, |marker| level(marker, x, y)));
        }
        if blinks {
            rectangle(&mut bytes, CURSOR, |_, _| shade);
        }
        stream.write_all(&bytes)?;
    }
}

/// The head of an update of so many rectangles, and of the pixel that may have been asked for.
fn head(drawn: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 1 + drawn.iter().sum::<u8>()];
    rectangle(&mut bytes, [0, 0, 1, 1], |_, _| 0);
    bytes
}

/// Left, top, width and height, then raw pixels of these greys.
fn rectangle(bytes: &mut Vec<u8>, place: [u16; 4], shade: impl Fn(u16, u16) -> u8) {
    bytes.extend(place.iter().flat_map(|number| number.to_be_bytes()));
    bytes.extend([0; 4]);
    let [.., width, height] = place;
    let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    bytes.extend(places.flat_map(|(x, y)| {
        let shade = shade(x, y);
        [shade, shade, shade, 0]
    }));
}
