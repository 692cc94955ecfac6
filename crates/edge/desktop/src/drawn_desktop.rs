//! A desktop of which there is nothing but the picture and the marker: for tests and for measuring how exactly clients time.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use virtbench_desktops::{Answer, Ending, HEIGHT, Marker, Phase, Request, WIDTH, level};

use crate::desk::Desk;

const SIZE: [u16; 2] = [320, 200];

/// A desktop whose operations all take the same time: from its last key on, or from its beginning, to the marker's end. It ends
/// with its connections.
#[derive(Debug)]
pub struct DrawnDesktop {
    screen: SocketAddr,
    control: SocketAddr,
}

#[derive(Debug)]
struct State {
    marker: Option<Marker>,
    keys: u32,
    /// Whether the picture is another one than was sent last.
    dirty: bool,
    asked: bool,
    closed: bool,
}

type Shared = Arc<(Mutex<State>, Condvar)>;

impl DrawnDesktop {
    /// Serves one user; each of its operations takes `delay`. Without `marker` nothing is ever drawn.
    ///
    /// # Errors
    /// It gets no port.
    pub fn start(delay: Duration, marker: bool) -> io::Result<Self> {
        let (screen, control) = (TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?);
        let desktop = Self { screen: screen.local_addr()?, control: control.local_addr()? };
        let idle = Marker { sequence: 0, operation: 0, phase: Phase::Idle };
        let state =
            State { marker: marker.then_some(idle), keys: 0, dirty: true, asked: false, closed: false };
        let shared: Shared = Arc::new((Mutex::new(state), Condvar::new()));
        let of_screen = Arc::clone(&shared);
        thread::Builder::new().spawn(move || {
            let served = screen.accept().and_then(|(stream, _)| serve_screen(stream, &of_screen));
            change(&of_screen, |state| state.closed = true);
            served
        })?;
        thread::Builder::new()
            .spawn(move || control.accept().and_then(|(stream, _)| serve_control(stream, &shared, delay)))?;
        Ok(desktop)
    }

    /// The way there.
    ///
    /// # Errors
    /// Somebody else is there already.
    pub fn desk(&self) -> io::Result<Desk> {
        let (screen, control) = (TcpStream::connect(self.screen)?, TcpStream::connect(self.control)?);
        Ok(Desk { screen, control, password: None })
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

fn serve_control(stream: TcpStream, shared: &Shared, delay: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut answers = stream.try_clone()?;
    for line in BufReader::new(stream).lines() {
        let request: Request = serde_json::from_str(&line?)?;
        let sequence = match request {
            Request::Clear { sequence } => sequence,
            Request::Watch(order) => {
                let marker = |phase| Marker { sequence: order.sequence, operation: order.operation, phase };
                change(shared, |state| state.keys = 0);
                show(shared, marker(Phase::Begun));
                let mut state = lock(shared);
                while state.keys < order.keys && !state.closed {
                    state = shared.1.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                drop(state);
                thread::sleep(delay);
                show(shared, marker(Phase::Ended));
                order.sequence
            }
        };
        let inside_ns = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        let mut text = serde_json::to_vec(&Answer { sequence, ending: Ending::Done, inside_ns })?;
        text.push(b'\n');
        answers.write_all(&text)?;
    }
    Ok(())
}

/// Speaks RFB 3.8 in raw pixels.
fn serve_screen(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
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
        let writer = thread::Builder::new().spawn_scoped(scope, || send_updates(out, shared));
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
            3 => change(shared, |state| state.asked = true),
            4 if buffer[0] == 1 => change(shared, |state| state.keys += 1),
            _ => {}
        }
    }
}

fn send_updates(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    loop {
        let mut state = lock(shared);
        while !(state.asked && state.dirty || state.closed) {
            state = shared.1.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.closed {
            return Ok(());
        }
        (state.asked, state.dirty) = (false, false);
        let marker = state.marker;
        drop(state);
        let [width, height] = SIZE;
        let place = [width - WIDTH, height - HEIGHT, WIDTH, HEIGHT];
        let mut bytes = vec![0, 0, 0, 1];
        bytes.extend(place.iter().flat_map(|number| number.to_be_bytes()));
        bytes.extend([0; 4]);
        let places = (0..HEIGHT).flat_map(|y| (0..WIDTH).map(move |x| (x, y)));
        bytes.extend(places.flat_map(|(x, y)| {
            let shade = marker.map_or(0, |marker| level(marker, x, y));
            [shade, shade, shade, 0]
        }));
        stream.write_all(&bytes)?;
    }
}
