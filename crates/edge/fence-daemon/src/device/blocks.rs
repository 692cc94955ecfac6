//! Whole blocks of a device, read and written at once: what is done before serving begins, or beside it.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use crate::memory::Buffer;

/// What begins and ends with data is read in multiples of this.
const PIECE_BYTES: usize = 64 << 10;

/// Reads `len` bytes at `offset` of a device opened for direct I/O; both are whole blocks. Holes of a file are not read.
///
/// # Errors
/// It cannot be read.
pub fn read_at(file: &File, offset: u64, len: usize) -> io::Result<Buffer> {
    let mut buffer = Buffer::zeroed(len);
    let mut at = 0;
    while at < len {
        let piece = data_from(file, offset, at..len)?;
        if piece.is_empty() {
            break;
        }
        at = piece.end;
        file.read_exact_at(&mut buffer[piece.clone()], offset + piece.start as u64)?;
    }
    Ok(buffer)
}

/// The first of `bytes` behind `offset` that are no hole, in whole blocks. What cannot tell holes has none.
fn data_from(file: &File, offset: u64, bytes: Range<usize>) -> io::Result<Range<usize>> {
    let behind = |at: u64| usize::try_from(at.saturating_sub(offset)).unwrap_or(usize::MAX).min(bytes.end);
    let data = match seek(file, SeekFrom::Data(offset + bytes.start as u64)) {
        Ok(data) => data,
        // Nothing but a hole follows, unless the file ends before.
        Err(Errno::NXIO) if file.metadata()?.len() >= offset + bytes.end as u64 => {
            return Ok(bytes.end..bytes.end);
        }
        Err(_) => return Ok(bytes),
    };
    let begin = behind(data) / PIECE_BYTES * PIECE_BYTES;
    let end =
        seek(file, SeekFrom::Hole(data)).map_or(bytes.end, |hole| behind(hole).next_multiple_of(PIECE_BYTES));
    Ok(begin.max(bytes.start)..end.min(bytes.end))
}

/// Writes whole blocks.
///
/// # Errors
/// It cannot be written.
pub fn write_at(file: &File, offset: u64, bytes: &[u8]) -> io::Result<()> {
    let mut buffer = Buffer::zeroed(bytes.len());
    buffer.copy_from_slice(bytes);
    file.write_all_at(&buffer, offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_zeroes_and_data_between_them_is_found() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8 << 20).unwrap();
        for (at, byte) in [(1 << 20, 1), ((1 << 20) + 300_000, 2), ((8 << 20) - 1, 3)] {
            file.write_all_at(&[byte], at).unwrap();
        }
        for (offset, len) in [(0, 8 << 20), (1 << 20, 512 << 10), (4096, 1 << 20), (2 << 20, 1 << 20)] {
            let mut plain = vec![0; len];
            file.read_exact_at(&mut plain, offset).unwrap();
            assert!(*read_at(&file, offset, len).unwrap() == plain, "{offset} {len}");
        }
        assert!(read_at(&file, 7 << 20, 2 << 20).is_err(), "the file ends before");
        assert!(read_at(&file, 9 << 20, 4096).is_err(), "the file ends before");
    }
}
