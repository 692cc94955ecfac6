//! The far end of the path that clients take: it echoes, swallows and gives bytes, so that the path can be measured alone.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use crate::protocol::path::{BLOCK_BYTES, ECHO, SINK, SOURCE};

/// How long the other side may do nothing.
const IDLE_LIMIT: Duration = Duration::from_secs(20);
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
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(IDLE_LIMIT))?;
    stream.set_write_timeout(Some(IDLE_LIMIT))?;
    let mut kind = [0];
    stream.read_exact(&mut kind)?;
    let mut block = vec![0; BLOCK_BYTES];
    match kind[0] {
        ECHO => loop {
            match stream.read(&mut block)? {
                0 => return Ok(()),
                count => stream.write_all(&block[..count])?,
            }
        },
        SINK => {
            let mut total = 0_u64;
            while let count @ 1.. = stream.read(&mut block)? {
                total += count as u64;
            }
            stream.write_all(&total.to_le_bytes())
        }
        // Until the other side has had enough.
        SOURCE => loop {
            stream.write_all(&block)?;
        },
        _ => Ok(()),
    }
}
