//! The far end of the path that clients take: it echoes, swallows and gives bytes, so that the path can be measured alone.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;

use crate::measured_stream::{self, IDLE_LIMIT, kind_of};

/// Measurements at once.
const MOST_CONNECTIONS: usize = 8;

/// Answers on this port from now on, until the agent ends.
///
/// # Errors
/// The port is taken.
pub(crate) fn serve_path(port: u16) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))?;
    thread::Builder::new().name("path".into()).spawn(move || {
        let mut threads: Vec<thread::JoinHandle<()>> = Vec::new();
        for stream in listener.incoming().flatten() {
            threads.retain(|thread| !thread.is_finished());
            // One more is hung up on.
            if threads.len() < MOST_CONNECTIONS {
                threads.extend(thread::Builder::new().spawn(move || drop(answer(stream))));
            }
        }
    })?;
    Ok(())
}

fn answer(mut stream: TcpStream) -> io::Result<()> {
    let kind = kind_of(&mut stream, IDLE_LIMIT)?;
    measured_stream::answer(kind, stream)
}
