//! Carries bytes between a stream of libvirt's and a socket.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::binding::{Binding, Object, Signal};
use crate::error::LibvirtError;

/// Bytes moved at once; what one message of libvirt's holds at least.
const BUFFER_BYTES: usize = 64 << 10;

/// Starts a thread that carries until either side ends; returns the socket's other end.
pub(crate) fn begin(binding: &'static Binding, stream: Object) -> Result<UnixStream, LibvirtError> {
    let (near, far) = UnixStream::pair()?;
    let signal = binding.watch(&stream)?;
    thread::Builder::new().name("libvirt-stream".into()).spawn(move || {
        let mut pump = Pump { binding, stream, signal, socket: far, waiting: Vec::new() };
        // The stream is given up before the socket ends: its reader knows then that libvirt has nothing of it any more.
        let _ = pump.run();
    })?;
    Ok(near)
}

/// Ends the stream behind a socket, and waits until libvirt has nothing of it any more; whether it has not. What the socket has still to say is
/// lost, unless another one reads it.
///
/// A domain whose streams are open while it ends can block libvirtd for good (its `virStreamAbort` against its `virChrdevFree`, seen with 9.0 once in
/// some 40 ends): they are to be closed before.
pub fn close_stream(mut socket: &UnixStream, limit: Duration) -> bool {
    if socket.shutdown(Shutdown::Write).is_err() {
        return true;
    }
    let until = Instant::now() + limit;
    let mut rest = [0; 4096];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || socket.set_read_timeout(Some(left)).is_err() {
            return false;
        }
        match socket.read(&mut rest) {
            Ok(0) => return true,
            Err(error) if !matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {
                return true;
            }
            _ => {}
        }
    }
}

struct Pump {
    binding: &'static Binding,
    stream: Object,
    signal: Arc<Signal>,
    socket: UnixStream,
    /// What the stream has not taken yet.
    waiting: Vec<u8>,
}

impl Pump {
    fn run(&mut self) -> Result<(), LibvirtError> {
        loop {
            let (signalled, readable) = self.wait()?;
            if signalled {
                self.signal.clear();
                if !self.receive()? {
                    return Ok(());
                }
                self.send()?;
                self.binding.await_events(&self.stream, !self.waiting.is_empty())?;
            }
            if readable && self.waiting.is_empty() {
                self.waiting.resize(BUFFER_BYTES, 0);
                let count = self.socket.read(&mut self.waiting)?;
                self.waiting.truncate(count);
                if count == 0 {
                    return Ok(());
                }
                self.send()?;
                if !self.waiting.is_empty() {
                    self.binding.await_events(&self.stream, true)?;
                }
            }
        }
    }

    /// Whether the stream has something to say, and whether the socket has.
    fn wait(&self) -> Result<(bool, bool), LibvirtError> {
        // What cannot be sent on is left where it is.
        let socket = if self.waiting.is_empty() { PollFlags::IN } else { PollFlags::empty() };
        let mut asked = [PollFd::new(&*self.signal, PollFlags::IN), PollFd::new(&self.socket, socket)];
        match poll(&mut asked, None) {
            Ok(_) => Ok((!asked[0].revents().is_empty(), !asked[1].revents().is_empty())),
            Err(Errno::INTR) => Ok((false, false)),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }

    /// Passes on all that has come; whether there may be more.
    fn receive(&mut self) -> Result<bool, LibvirtError> {
        let mut buffer = [0; BUFFER_BYTES];
        while let Some(count) = self.binding.receive(&self.stream, &mut buffer)? {
            if count == 0 {
                return Ok(false);
            }
            self.socket.write_all(&buffer[..count])?;
        }
        Ok(true)
    }

    fn send(&mut self) -> Result<(), LibvirtError> {
        while !self.waiting.is_empty() {
            let Some(count) = self.binding.send(&self.stream, &self.waiting)? else { break };
            self.waiting.drain(..count);
        }
        Ok(())
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        self.binding.unwatch(&self.stream);
        self.binding.abort(&self.stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_closed_once_its_other_end_is() {
        let (near, far) = UnixStream::pair().unwrap();
        assert!(!close_stream(&near, Duration::from_millis(20)), "the other end is open");
        let (near, mut far_too) = UnixStream::pair().unwrap();
        let pump = thread::spawn(move || {
            let mut rest = Vec::new();
            far_too.write_all(b"what nobody reads").unwrap();
            far_too.read_to_end(&mut rest).unwrap();
        });
        assert!(close_stream(&near, Duration::from_secs(20)));
        pump.join().unwrap();
        drop(far);
    }
}
