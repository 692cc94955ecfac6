//! A stream over a serial line whose other end loses what it has no room for: User Mode Linux's.
//!
//! ```text
//! host   -> guest   data, at most WINDOW bytes more than the guest has taken
//! guest  -> host    data, and how much the guest has taken; at first WINDOW, once it has opened its line
//! ```
//!
//! A line discipline holds 4 KiB. A guest that is sent more stops its line and may start it again only seconds later, so the host waits
//! for room. What the guest sends waits in the host's socket, which has room enough.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Bytes that may be on their way to the guest: half of what its line discipline holds.
const WINDOW: u16 = 2048;
/// Payload of a frame, in bytes.
const MOST: usize = 1024;
/// How long a guest may take nothing.
const STALL_LIMIT: Duration = Duration::from_secs(600);

const DATA: u8 = 0xda;
const TAKEN: u8 = 0xac;

/// Carries what comes from `plain` over `line`, and what comes over `line` to `plain`, in two threads. When either end closes, so does the
/// other.
///
/// # Errors
/// A socket has no second descriptor, or no thread could be started.
pub fn carry_as_host(plain: UnixStream, line: UnixStream) -> io::Result<()> {
    let room = Arc::new(Room::default());
    let (plain_in, line_out, room_left) = (plain.try_clone()?, line.try_clone()?, Arc::clone(&room));
    thread::Builder::new().name("line out".into()).spawn(move || {
        send_paced(&plain_in, &line_out, &room_left);
        close(&plain_in, &line_out);
    })?;
    thread::Builder::new().name("line in".into()).spawn(move || {
        // Why it ended shows at the plain end, as the end of a stream does.
        let _ = read_frames(&line, |frame| match frame {
            Frame::Data(data) => (&plain).write_all(data),
            Frame::Taken(bytes) => {
                room.give(usize::from(bytes));
                Ok(())
            }
        });
        room.close();
        close(&plain, &line);
    })?;
    Ok(())
}

fn close(plain: &UnixStream, line: &UnixStream) {
    let _ = plain.shutdown(Shutdown::Both);
    let _ = line.shutdown(Shutdown::Both);
}

/// The guest's end of a line: read as a stream, it tells the host what it has taken.
#[derive(Debug)]
pub struct GuestReader<R, W> {
    line: R,
    writer: GuestWriter<W>,
    /// Of the frame at hand, bytes that are not read yet.
    left: usize,
}

/// Writes frames to a line; clones share it.
#[derive(Debug)]
pub struct GuestWriter<W>(Arc<Mutex<W>>);

impl<W> Clone for GuestWriter<W> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// The guest's two ends of a line. The host may send from now on.
///
/// # Errors
/// The line cannot be written to.
pub fn guest_ends<R: Read, W: Write>(
    line_in: R,
    line_out: W,
) -> io::Result<(GuestReader<R, W>, GuestWriter<W>)> {
    let writer = GuestWriter(Arc::new(Mutex::new(line_out)));
    writer.send_taken(WINDOW)?;
    Ok((GuestReader { line: line_in, writer: writer.clone(), left: 0 }, writer))
}

impl<R: Read, W: Write> Read for GuestReader<R, W> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.left == 0 {
            let mut header = [0; 3];
            match self.line.read(&mut header[..1])? {
                0 => return Ok(0),
                _ => self.line.read_exact(&mut header[1..])?,
            }
            if header[0] != DATA {
                return Err(io::Error::other("the line carries something that is no frame"));
            }
            self.left = usize::from(u16::from_le_bytes([header[1], header[2]]));
        }
        let wanted = buffer.len().min(self.left);
        let read = self.line.read(&mut buffer[..wanted])?;
        self.left -= read;
        if read > 0 {
            self.writer.send_taken(u16::try_from(read).unwrap_or(u16::MAX))?;
        }
        Ok(read)
    }
}

impl<W: Write> GuestWriter<W> {
    fn send_taken(&self, bytes: u16) -> io::Result<()> {
        let bytes = bytes.to_le_bytes();
        self.send(&[TAKEN, bytes[0], bytes[1]])
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(bytes)
    }
}

impl<W: Write> Write for GuestWriter<W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let data = &data[..data.len().min(MOST)];
        self.send(&framed(data))?;
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }
}

fn framed(data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).unwrap_or(u16::MAX).to_le_bytes();
    [&[DATA, length[0], length[1]], data].concat()
}

enum Frame<'a> {
    Data(&'a [u8]),
    Taken(u16),
}

fn read_frames(mut line: impl Read, mut take: impl FnMut(Frame<'_>) -> io::Result<()>) -> io::Result<()> {
    let mut data = [0; u16::MAX as usize];
    loop {
        let mut header = [0; 3];
        line.read_exact(&mut header)?;
        let value = u16::from_le_bytes([header[1], header[2]]);
        match header[0] {
            TAKEN => take(Frame::Taken(value))?,
            DATA => {
                let data = &mut data[..usize::from(value)];
                line.read_exact(data)?;
                take(Frame::Data(data))?;
            }
            _ => return Err(io::Error::other("the line carries something that is no frame")),
        }
    }
}

fn send_paced(mut plain: impl Read, mut line: impl Write, room: &Room) {
    let mut data = [0; MOST];
    while let Ok(count @ 1..) = plain.read(&mut data) {
        if !room.take(count) || line.write_all(&framed(&data[..count])).is_err() {
            return;
        }
    }
}

/// How much may be sent to the guest.
#[derive(Debug)]
struct Room {
    /// Bytes; nothing once the line is closed.
    bytes: Mutex<Option<usize>>,
    changed: Condvar,
}

impl Default for Room {
    fn default() -> Self {
        Self { bytes: Mutex::new(Some(0)), changed: Condvar::new() }
    }
}

impl Room {
    /// Waits until there is room for so many bytes; false when the line is closed or the guest takes nothing for too long.
    fn take(&self, count: usize) -> bool {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |bytes: &mut Option<usize>| bytes.is_some_and(|bytes| bytes < count);
        let waited = self.changed.wait_timeout_while(bytes, STALL_LIMIT, full);
        let (mut bytes, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match &mut *bytes {
            Some(left) if *left >= count => {
                *left -= count;
                true
            }
            _ => false,
        }
    }

    fn give(&self, count: usize) {
        if let Some(bytes) = &mut *self.bytes.lock().unwrap_or_else(PoisonError::into_inner) {
            *bytes = bytes.saturating_add(count).min(usize::from(WINDOW));
        }
        self.changed.notify_all();
    }

    fn close(&self) {
        *self.bytes.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The host's plain end, and the guest's two.
    fn link() -> (UnixStream, GuestReader<UnixStream, UnixStream>, GuestWriter<UnixStream>) {
        let (plain, inner) = UnixStream::pair().unwrap();
        let (line, guest) = UnixStream::pair().unwrap();
        carry_as_host(inner, line).unwrap();
        let (reader, writer) = guest_ends(guest.try_clone().unwrap(), guest).unwrap();
        (plain, reader, writer)
    }

    #[test]
    fn a_megabyte_arrives_whole_both_ways_and_the_window_is_kept() {
        let (mut plain, mut reader, mut writer) = link();
        let sent: Vec<u8> = (0..1_000_000u32).map(|number| (number % 251) as u8).collect();
        let expected = sent.clone();
        let echo = thread::spawn(move || {
            let mut got = vec![0; expected.len()];
            reader.read_exact(&mut got).unwrap();
            assert!(got == expected);
            writer.write_all(&got).unwrap();
        });
        let mut back = vec![0; sent.len()];
        let mut reading = plain.try_clone().unwrap();
        let reader = thread::spawn(move || {
            reading.read_exact(&mut back).unwrap();
            back
        });
        plain.write_all(&sent).unwrap();
        echo.join().unwrap();
        assert!(reader.join().unwrap() == sent);
    }

    #[test]
    fn a_guest_that_takes_nothing_is_sent_no_more_than_its_window() {
        let (plain, inner) = UnixStream::pair().unwrap();
        let (line, mut guest) = UnixStream::pair().unwrap();
        carry_as_host(inner, line).unwrap();
        guest.write_all(&[TAKEN, 0, 8]).unwrap();
        let mut writing = plain.try_clone().unwrap();
        thread::spawn(move || writing.write_all(&[7; 100_000]));
        guest.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut got = 0;
        while got + MOST <= usize::from(WINDOW) {
            let mut header = [0; 3];
            guest.read_exact(&mut header).unwrap();
            let mut data = vec![0; usize::from(u16::from_le_bytes([header[1], header[2]]))];
            guest.read_exact(&mut data).unwrap();
            got += data.len();
        }
        guest.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let more = guest.read(&mut [0]).map_err(|error| error.kind());
        assert!(got <= usize::from(WINDOW) && more == Err(io::ErrorKind::WouldBlock), "{got} {more:?}");
        // A writer that waits for room ends with the guest.
        drop(guest);
        let mut end = [0];
        let ended = (&plain).read(&mut end).map_err(|error| error.kind());
        assert!(matches!(ended, Ok(0) | Err(io::ErrorKind::ConnectionReset)), "{ended:?}");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read_frames(&bytes[..], |_| Ok(()));
            let (mut reader, _) = guest_ends(&bytes[..], io::sink()).unwrap();
            let _ = reader.read_to_end(&mut Vec::new());
        }
    }
}
