//! The streams by which a path is measured: how one begins, and how each kind is answered.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::protocol::path::{BLOCK_BYTES, ECHO, SINK, SOURCE};

/// How long one call of the side that measures may wait.
pub(crate) const CALL_LIMIT: Duration = Duration::from_secs(10);
/// How long the side that measures may do nothing.
pub(crate) const IDLE_LIMIT: Duration = Duration::from_secs(20);

/// A connection to the side that answers, which has been told what it is for.
///
/// # Errors
/// It cannot be reached.
pub(crate) fn connect(address: SocketAddr, kind: u8) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&address, CALL_LIMIT)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(CALL_LIMIT))?;
    stream.set_write_timeout(Some(CALL_LIMIT))?;
    stream.write_all(&[kind])?;
    Ok(stream)
}

/// What a connection is for, once it has said so within the limit.
///
/// # Errors
/// It has not.
pub(crate) fn kind_of(stream: &mut TcpStream, limit: Duration) -> io::Result<u8> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(limit))?;
    let mut kind = [0];
    stream.read_exact(&mut kind)?;
    Ok(kind[0])
}

/// Echoes, swallows or gives bytes until the other side has had enough; a kind that is none of these is hung up on.
///
/// # Errors
/// The other side has hung up in the middle, or done nothing for [`IDLE_LIMIT`].
pub(crate) fn answer(kind: u8, mut stream: TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(IDLE_LIMIT))?;
    stream.set_write_timeout(Some(IDLE_LIMIT))?;
    let mut block = vec![0; BLOCK_BYTES];
    match kind {
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
        SOURCE => loop {
            stream.write_all(&block)?;
        },
        _ => Ok(()),
    }
}
