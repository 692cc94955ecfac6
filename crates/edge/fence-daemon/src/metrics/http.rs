//! The figures over HTTP, on loopback.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use super::{Board, Metrics};
use crate::questions::{Bounds, Desk};

/// A client has so long for its question and the answer, and so many ask at once.
const BOUNDS: Bounds = Bounds { clients: 64, question_bytes: 4096, time: Duration::from_secs(5) };
/// How long a daemon may take to answer.
const FETCH_LIMIT: Duration = Duration::from_secs(10);
/// The longest answer that is read.
const MOST_ANSWER_BYTES: usize = 16 << 20;

/// Serves the figures over HTTP until the process ends, from a thread of its own, to many clients at once.
///
/// # Errors
/// The address cannot be had.
pub fn serve(address: SocketAddr, board: Board) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    thread::Builder::new().name("metrics".into()).spawn(move || answer_all(&listener, &board))?;
    Ok(bound)
}

fn answer_all(listener: &TcpListener, board: &Board) {
    let mut desk: Desk<TcpStream> = Desk::new(BOUNDS);
    let pause = || thread::sleep(Duration::from_millis(100));
    loop {
        match desk.wait(listener.as_fd()).and_then(|waits| if waits { accept(listener) } else { Ok(None) }) {
            Ok(client) => client.into_iter().for_each(|client| desk.admit(client)),
            // Out of descriptors, most likely: not again at once.
            Err(_) => pause(),
        }
        let is_whole = |question: &[u8]| question.windows(4).any(|end| end == b"\r\n\r\n");
        for asked in desk.turn(is_whole) {
            let answer = answer(&asked.question, &board.now());
            desk.answer(asked, answer);
        }
    }
}

fn accept(listener: &TcpListener) -> io::Result<Option<TcpStream>> {
    match listener.accept() {
        Ok((client, _)) => client.set_nonblocking(true).map(|()| Some(client)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionAborted) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn answer(question: &[u8], figures: &Metrics) -> Vec<u8> {
    let asks = question.starts_with(b"GET /metrics ") || question.starts_with(b"GET / ");
    let (status, body) = if asks {
        ("200 OK", figures.text())
    } else {
        ("404 Not Found", "only /metrics is here\n".to_owned())
    };
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    (head + &body).into_bytes()
}

/// Asks a running daemon for its figures.
///
/// # Errors
/// No server answers, or not as expected, or not in time.
pub fn fetch(address: SocketAddr) -> io::Result<String> {
    let until = Instant::now() + FETCH_LIMIT;
    let mut server = TcpStream::connect_timeout(&address, FETCH_LIMIT)?;
    server.set_write_timeout(Some(FETCH_LIMIT))?;
    server.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let (mut answer, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || answer.len() > MOST_ANSWER_BYTES {
            return Err(ErrorKind::TimedOut.into());
        }
        server.set_read_timeout(Some(left))?;
        match server.read(&mut piece) {
            Ok(0) => break,
            Ok(len) => answer.extend_from_slice(&piece[..len]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(ErrorKind::TimedOut.into()),
            Err(error) => return Err(error),
        }
    }
    let text = String::from_utf8_lossy(&answer);
    match text.split_once("\r\n\r\n") {
        Some((head, body)) if head.starts_with("HTTP/1.1 200 ") => Ok(body.to_owned()),
        _ => Err(io::Error::new(ErrorKind::InvalidData, "no fence answers there")),
    }
}
