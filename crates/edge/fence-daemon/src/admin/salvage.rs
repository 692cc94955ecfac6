//! Reading what a device still gives: again where it fails, and without what it never gives.

use std::fs::File;
use std::io;

use crate::device::read_at;
use crate::memory::Buffer;

/// How often a piece is read before it counts as unreadable.
const ATTEMPTS: usize = 10;
const PIECE_BYTES: usize = 4096;
/// What no metadata is, in place of what cannot be read.
const UNREADABLE: u8 = 0xaa;

/// Reads a piece; a device that fails for a moment is read again.
///
/// # Errors
/// It fails every time.
pub(super) fn read_again(file: &File, offset: u64, len: usize) -> io::Result<Buffer> {
    let mut attempts = (1..ATTEMPTS).map(|_| read_at(file, offset, len));
    match attempts.find(Result::is_ok) {
        Some(read) => read,
        None => read_at(file, offset, len),
    }
}

/// Reads whole pieces of 4 KiB; in place of those that cannot be read stands what is none of a cache's. Gives the first of
/// them too.
pub(super) fn read_what_can_be(file: &File, offset: u64, len: usize) -> (Buffer, Option<u64>) {
    if let Ok(all) = read_at(file, offset, len) {
        return (all, None);
    }
    let mut all = Buffer::zeroed(len);
    let mut unreadable = None;
    for (place, piece) in all.chunks_mut(PIECE_BYTES).enumerate() {
        let at = offset + (place * PIECE_BYTES) as u64;
        match read_again(file, at, piece.len()) {
            Ok(read) => piece.copy_from_slice(&read),
            Err(_) => {
                piece.fill(UNREADABLE);
                unreadable.get_or_insert(at);
            }
        }
    }
    (all, unreadable)
}
