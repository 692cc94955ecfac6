//! The figures over HTTP, on loopback.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::Figures;

/// A client of the endpoint that takes longer is given up.
const CLIENT_LIMIT: Duration = Duration::from_secs(2);
/// The longest question that is read.
const MOST_QUESTION_BYTES: usize = 4096;

/// Serves the figures over HTTP until the process ends, from a thread of its own, to one client after another.
///
/// # Errors
/// The address cannot be had.
pub fn serve(address: SocketAddr, figures: Arc<Figures>) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    let bound = listener.local_addr()?;
    thread::Builder::new().name("metrics".into()).spawn(move || {
        for client in listener.incoming() {
            match client {
                Ok(client) => drop(answer(client, &figures)),
                // Out of descriptors, most likely: not again at once.
                Err(_) => thread::sleep(Duration::from_millis(100)),
            }
        }
    })?;
    Ok(bound)
}

fn answer(mut client: TcpStream, figures: &Figures) -> io::Result<()> {
    client.set_read_timeout(Some(CLIENT_LIMIT))?;
    client.set_write_timeout(Some(CLIENT_LIMIT))?;
    let mut question = Vec::new();
    let mut piece = [0; 512];
    while !question.windows(4).any(|end| end == b"\r\n\r\n") && question.len() < MOST_QUESTION_BYTES {
        match client.read(&mut piece)? {
            0 => return Ok(()),
            len => question.extend_from_slice(&piece[..len]),
        }
    }
    let asks = question.starts_with(b"GET /metrics ") || question.starts_with(b"GET / ");
    let (status, body) = if asks {
        ("200 OK", figures.text())
    } else {
        ("404 Not Found", "only /metrics is here\n".to_owned())
    };
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    client.write_all(head.as_bytes())?;
    client.write_all(body.as_bytes())
}

/// Asks a running daemon for its figures.
///
/// # Errors
/// Nobody answers, or not so.
pub fn fetch(address: SocketAddr) -> io::Result<String> {
    let mut server = TcpStream::connect_timeout(&address, CLIENT_LIMIT)?;
    server.set_read_timeout(Some(CLIENT_LIMIT))?;
    server.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    server.take(16 << 20).read_to_string(&mut text)?;
    match text.split_once("\r\n\r\n") {
        Some((head, body)) if head.starts_with("HTTP/1.1 200 ") => Ok(body.to_owned()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "no fence answers there")),
    }
}
