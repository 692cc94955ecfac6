//! Memory that devices read from and write to: pieces of guests' memory, and buffers of our own.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Every [`Buffer`] begins at a multiple of this: what any device wants of direct I/O.
pub const BUFFER_ALIGNMENT: usize = 4096;

/// A contiguous piece of memory, in the form in which the kernel takes lists of them.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct Segment(libc::iovec);

impl Segment {
    /// `len` bytes at `base`.
    ///
    /// # Safety
    /// The bytes stay mapped, readable and writable until the request that they are handed in with has been answered.
    /// Others may change them at any time, as a guest may.
    #[must_use]
    pub const unsafe fn new(base: *mut u8, len: usize) -> Self {
        Self(libc::iovec { iov_base: base.cast(), iov_len: len })
    }

    /// Its first byte.
    #[must_use]
    pub const fn base(&self) -> *mut u8 {
        self.0.iov_base.cast()
    }

    /// Its length in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.iov_len
    }

    /// Whether it has no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Appends the pieces of `segments` that bytes `at` to `at + len` are in; false if there are not so many.
pub fn slice(segments: &[Segment], mut at: usize, mut len: usize, out: &mut Vec<Segment>) -> bool {
    for segment in segments {
        if len == 0 {
            return true;
        }
        if at >= segment.len() {
            at -= segment.len();
            continue;
        }
        let take = len.min(segment.len() - at);
        // SAFETY: a part of the segment, which its maker vouched for.
        out.push(unsafe { Segment::new(segment.base().add(at), take) });
        at = 0;
        len -= take;
    }
    len == 0
}

/// Copies out of `segments`, as many bytes as both have.
pub fn gather(segments: &[Segment], mut to: &mut [u8]) {
    for segment in segments {
        let len = segment.len().min(to.len());
        // SAFETY: the segment is mapped (`Segment::new`) and apart from `to`, which is ours alone. What somebody else
        // changes meanwhile arrives changed or not, which is theirs to mind.
        unsafe { segment.base().copy_to_nonoverlapping(to.as_mut_ptr(), len) };
        to = &mut to[len..];
    }
}

/// Copies into `segments`, as many bytes as both have.
pub fn scatter(mut from: &[u8], segments: &[Segment]) {
    for segment in segments {
        let len = segment.len().min(from.len());
        // SAFETY: as in `gather`.
        unsafe { segment.base().copy_from_nonoverlapping(from.as_ptr(), len) };
        from = &from[len..];
    }
}

/// Makes a piece zeroes.
pub fn zero(segment: &Segment) {
    // SAFETY: the segment is mapped (`Segment::new`).
    unsafe { segment.base().write_bytes(0, segment.len()) };
}

/// Buffers of this many bytes and more are mapped, so that their memory is the system's again once they are dropped: an
/// allocator keeps what many requests had at once.
const MAPPED_BYTES: usize = 128 << 10;
/// In huge pages where the system has them: a cache's whole log is one, and is mostly looked at once. Requests never have
/// any.
const HUGE_BYTES: usize = 64 << 20;

/// Memory of our own, aligned for direct I/O. It does not move when the value does.
#[derive(Debug)]
pub struct Buffer {
    base: NonNull<u8>,
    len: usize,
}

impl Buffer {
    /// `len` zeroes; at least one.
    #[must_use]
    pub fn zeroed(len: usize) -> Self {
        let len = len.max(1);
        let layout = Self::layout(len);
        if len >= MAPPED_BYTES {
            let Some(base) = map(len) else { handle_alloc_error(layout) };
            return Self { base, len };
        }
        // SAFETY: the length is not zero.
        let base = unsafe { alloc_zeroed(layout) };
        let Some(base) = NonNull::new(base) else { handle_alloc_error(layout) };
        Self { base, len }
    }

    fn layout(len: usize) -> Layout {
        Layout::from_size_align(len, BUFFER_ALIGNMENT).unwrap_or(Layout::new::<[u8; BUFFER_ALIGNMENT]>())
    }

    /// All of it as a segment. The caller keeps the buffer until the request has been answered.
    #[must_use]
    pub fn segment(&self) -> Segment {
        // SAFETY: ours, and mapped as long as the buffer lives; the caller keeps it (see above).
        unsafe { Segment::new(self.base.as_ptr(), self.len) }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `len` initialised bytes that we own.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }
}

/// Zeroes of the kernel's, which take no memory before they are written to.
fn map(len: usize) -> Option<NonNull<u8>> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, wherever the kernel finds room.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, -1, 0) };
    if base == libc::MAP_FAILED {
        return None;
    }
    if len >= HUGE_BYTES {
        // SAFETY: the mapping just made. A system without huge pages refuses, and nothing is lost.
        unsafe { libc::madvise(base, len, libc::MADV_HUGEPAGE) };
    }
    NonNull::new(base.cast())
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.len >= MAPPED_BYTES {
            // SAFETY: mapped by `map`, with the same length.
            unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
            return;
        }
        // SAFETY: allocated with the same layout.
        unsafe { dealloc(self.base.as_ptr(), Self::layout(self.len)) };
    }
}

/// Buffers that are used again: powers of two from 4 KiB up.
#[derive(Debug, Default)]
pub struct Pool {
    /// By the power.
    free: [Vec<Buffer>; CLASSES],
}

const CLASSES: usize = 14;
/// Bytes of each class kept at most for later.
const KEEP_BYTES: usize = 16 << 20;

impl Pool {
    fn class(len: usize) -> usize {
        let pages = len.div_ceil(BUFFER_ALIGNMENT).next_power_of_two();
        pages.trailing_zeros() as usize
    }

    /// The length of the buffer that is taken for `len` bytes.
    #[must_use]
    pub fn rounded(len: usize) -> usize {
        BUFFER_ALIGNMENT << Self::class(len)
    }

    /// A buffer of at least `len` bytes, its contents whatever they are.
    pub fn take(&mut self, len: usize) -> Buffer {
        let class = Self::class(len);
        let kept = self.free.get_mut(class).and_then(Vec::pop);
        kept.unwrap_or_else(|| Buffer::zeroed(Self::rounded(len)))
    }

    /// Bytes that are kept for later.
    #[must_use]
    pub fn kept_bytes(&self) -> usize {
        self.free.iter().flatten().map(|buffer| buffer.len()).sum()
    }

    /// Keeps nothing: there is no work.
    pub fn release(&mut self) {
        self.free = Default::default();
    }

    /// Keeps a buffer for later, or frees it if enough are kept.
    pub fn give(&mut self, buffer: Buffer) {
        let len = buffer.len();
        let class = Self::class(len);
        if let Some(kept) = self.free.get_mut(class)
            && len == Self::rounded(len)
            && (kept.len() + 1) * len <= KEEP_BYTES
        {
            kept.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_of_pieces_is_what_a_slice_of_the_whole_is() {
        let (a, b) = (Buffer::zeroed(5), Buffer::zeroed(7));
        let whole = [a.segment(), b.segment()];
        let bytes: Vec<u8> = (1..=12).collect();
        scatter(&bytes, &whole);
        for at in 0..12 {
            for len in 0..=12 - at {
                let mut part = Vec::new();
                assert!(slice(&whole, at, len, &mut part));
                let mut found = vec![0; len];
                gather(&part, &mut found);
                assert_eq!(found, bytes[at..at + len], "{at} {len}");
            }
        }
        assert!(!slice(&whole, 6, 7, &mut Vec::new()));
    }

    #[test]
    fn buffers_are_aligned_and_used_again() {
        let mut pool = Pool::default();
        let buffer = pool.take(5000);
        let base = buffer.as_ptr();
        assert_eq!((buffer.len(), base.align_offset(BUFFER_ALIGNMENT)), (8192, 0));
        pool.give(buffer);
        assert_eq!((pool.take(8000).as_ptr(), pool.kept_bytes()), (base, 0));
        for _ in 0..2 {
            let large = pool.take(MAPPED_BYTES + 1);
            assert!(
                large.iter().all(|byte| *byte == 0) && large.as_ptr().align_offset(BUFFER_ALIGNMENT) == 0
            );
            pool.give(large);
            assert_eq!(pool.kept_bytes(), 2 * MAPPED_BYTES);
            pool.release();
            assert_eq!(pool.kept_bytes(), 0);
        }
    }
}
