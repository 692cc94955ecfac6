//! Three arrays in memory of their own, in parts for the threads.

use std::io;
use std::ptr::NonNull;

use memmap2::MmapMut;

use crate::runner::RunError;
use crate::threads::each;

/// Parts begin at multiples of so many elements: a page, so that threads share no line and vectors
/// are aligned.
const GRAIN: usize = 512;

/// The arrays `a`, `b` and `c` of doubles.
pub(crate) struct Arrays {
    maps: [MmapMut; 3],
    /// Elements of each array.
    length: usize,
    /// Elements of each part but the last.
    part: usize,
}

/// A thread's part of the arrays.
pub(crate) struct Part<'a> {
    pub a: &'a mut [f64],
    pub b: &'a mut [f64],
    pub c: &'a mut [f64],
}

impl Arrays {
    /// Arrays of about `array_bytes` each, for `threads`.
    pub(crate) fn new(array_bytes: u64, threads: u32) -> io::Result<Self> {
        let too_large = |_| io::Error::from(io::ErrorKind::OutOfMemory);
        let threads = usize::try_from(threads.max(1)).map_err(too_large)?;
        let length = usize::try_from(array_bytes / 8).map_err(too_large)?;
        let part = length.div_ceil(threads).next_multiple_of(GRAIN);
        let length = part * threads;
        let map = || MmapMut::map_anon(length * 8);
        Ok(Self { maps: [map()?, map()?, map()?], length, part })
    }

    /// Size of each array, in bytes.
    pub(crate) fn array_bytes(&self) -> u64 {
        self.length as u64 * 8
    }

    /// The arrays in parts, one a thread.
    pub(crate) fn parts(&mut self) -> impl Iterator<Item = Part<'_>> {
        let (length, part) = (self.length, self.part);
        let [a, b, c] = self.maps.each_mut().map(|map| doubles(map, length).chunks_mut(part));
        a.zip(b).zip(c).map(|((a, b), c)| Part { a, b, c })
    }

    /// Fills each array with its value; each thread touches its own part first, so that its memory
    /// is near its processor.
    pub(crate) fn fill(&mut self, [a, b, c]: [f64; 3]) -> Result<(), RunError> {
        each(self.parts(), |part| {
            part.a.fill(a);
            part.b.fill(b);
            part.c.fill(c);
        })?;
        Ok(())
    }

    /// How many elements do not hold their array's value, to the last bit.
    pub(crate) fn wrong_elements(&mut self, [a, b, c]: [f64; 3]) -> Result<u64, RunError> {
        let wrong = |part: &[f64], value: f64| {
            part.iter().filter(|element| element.to_bits() != value.to_bits()).count() as u64
        };
        let counts = each(self.parts(), |part| wrong(part.a, a) + wrong(part.b, b) + wrong(part.c, c))?;
        Ok(counts.iter().sum())
    }
}

fn doubles(map: &mut MmapMut, length: usize) -> &mut [f64] {
    let start = NonNull::from(&mut map[..]).cast::<f64>();
    // SAFETY: the mapping is page-aligned, was made `length * 8` bytes long and is borrowed for as long
    // as the slice; every bit pattern is a double.
    unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), length) }
}
