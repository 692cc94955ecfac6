//! Which of its functions a machine's kernel is in: its processors are looked at in turn, a thousand times a second each.
//!
//! A sample is the address that a processor was at when its clock event came (`PERF_COUNT_SW_CPU_CLOCK`), so that no
//! performance counters are needed and a software emulator has it too. Where interrupts are off, the event comes when they
//! are on again.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::event::{Attributes, online, open};

/// Between two samples of a processor, in nanoseconds.
const PERIOD_NS: u64 = 1_000_000;
const PERF_TYPE_SOFTWARE: u32 = 1;
const PERF_COUNT_SW_CPU_CLOCK: u64 = 0;
const PERF_SAMPLE_IP: u64 = 1;
const EXCLUDE_USER: u64 = 1 << 4;
const EXCLUDE_IDLE: u64 = 1 << 7;
const PERF_RECORD_SAMPLE: u64 = 9;
/// A ring's room for records, in bytes, a power of two: those of two minutes. What comes while there is none is lost.
const RING_BYTES: usize = 1 << 21;
/// `struct perf_event_mmap_page`: where the kernel writes next, and where we read next.
const HEAD_AT: usize = 1024;
const TAIL_AT: usize = 1032;
/// Functions that are told apart; the rest is [`OTHERS`].
const MOST_FUNCTIONS: usize = 400;
/// What is in no function that has a name here, and in functions that are rarely met.
const OTHERS: &str = "(others)";

/// The kernel's ring of one processor.
#[derive(Debug)]
struct Samples {
    /// Keeps the event alive.
    _event: File,
    page: NonNull<u8>,
    page_bytes: usize,
}

// SAFETY: the mapping belongs to this value alone, and no thread's identity goes with it.
unsafe impl Send for Samples {}

/// Processors that are being sampled.
#[derive(Debug)]
pub(crate) struct Sampler {
    rings: Vec<Samples>,
    by_address: BTreeMap<u64, u64>,
}

impl Sampler {
    /// Begins to sample kernel code on every processor.
    ///
    /// # Errors
    /// It is not permitted, or the kernel does not offer it, in words.
    pub(crate) fn start() -> Result<Self, String> {
        Self::open().map_err(|error| {
            format!("the kernel refuses ({error}); root is needed, or kernel.perf_event_paranoid=-1")
        })
    }

    fn open() -> io::Result<Self> {
        let attributes = Attributes {
            kind: PERF_TYPE_SOFTWARE,
            size: 64,
            config: PERF_COUNT_SW_CPU_CLOCK,
            sample_period: PERIOD_NS,
            sample_type: PERF_SAMPLE_IP,
            flags: EXCLUDE_USER | EXCLUDE_IDLE,
            ..Attributes::default()
        };
        let ring = |processor| Samples::map(open(&attributes, processor)?);
        let rings = online().into_iter().map(ring).collect::<io::Result<_>>()?;
        Ok(Self { rings, by_address: BTreeMap::new() })
    }

    /// Leaves out what was sampled so far.
    pub(crate) fn forget(&mut self) {
        self.rings.iter_mut().for_each(|ring| ring.drain(|_| ()));
        self.by_address.clear();
    }

    /// Takes what the kernel has left, so that its rings have room again.
    pub(crate) fn drain(&mut self) {
        for ring in &mut self.rings {
            ring.drain(|address| *self.by_address.entry(address).or_insert(0) += PERIOD_NS);
        }
    }

    /// Kernel time since the start by function, in nanoseconds: at most 400 functions, the rest as [`OTHERS`].
    pub(crate) fn read(&mut self) -> BTreeMap<String, u64> {
        self.drain();
        let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
        for (address, ns) in &self.by_address {
            *by_name.entry(name_of(*address)).or_insert(0) += ns;
        }
        let mut found: Vec<_> = by_name.into_iter().collect();
        found.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        let mut named = BTreeMap::new();
        for (place, (name, ns)) in found.into_iter().enumerate() {
            let name = if place < MOST_FUNCTIONS { name } else { OTHERS };
            *named.entry(name.to_owned()).or_insert(0) += ns;
        }
        named
    }
}

impl Samples {
    fn map(event: File) -> io::Result<Self> {
        let page_bytes = rustix::param::page_size();
        // SAFETY: a mapping at an address of the kernel's choice touches no memory of ours.
        let page = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                page_bytes + RING_BYTES,
                rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE,
                rustix::mm::MapFlags::SHARED,
                &event,
                0,
            )?
        };
        let page = NonNull::new(page.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { _event: event, page, page_bytes })
    }

    /// Takes every whole record that is there.
    fn drain(&mut self, mut take: impl FnMut(u64)) {
        // SAFETY: both words lie in the first page, aligned; the kernel reads and writes them as a whole.
        let [head, tail] =
            [HEAD_AT, TAIL_AT].map(|at| unsafe { &*self.page.as_ptr().add(at).cast::<AtomicU64>() });
        let end = head.load(Ordering::Acquire);
        let mut at = tail.load(Ordering::Relaxed);
        while at < end {
            let header = self.word(at);
            let (kind, bytes) = (header & 0xffff_ffff, header >> 48);
            if kind == PERF_RECORD_SAMPLE {
                take(self.word(at + 8));
            }
            at += bytes.max(8);
        }
        tail.store(end, Ordering::Release);
    }

    /// Records are of whole words, and so is the ring.
    #[allow(clippy::cast_possible_truncation)] // less than the ring's length
    fn word(&self, at: u64) -> u64 {
        let place = (at % RING_BYTES as u64) as usize;
        // SAFETY: it lies within the ring, whose words before `head` the kernel leaves alone until `tail` is beyond them.
        unsafe { self.page.as_ptr().add(self.page_bytes + place).cast::<u64>().read_volatile() }
    }
}

impl Drop for Samples {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing refers to it any more.
        let _ = unsafe { rustix::mm::munmap(self.page.as_ptr().cast(), self.page_bytes + RING_BYTES) };
    }
}

/// The function at an address.
fn name_of(address: u64) -> &'static str {
    static FUNCTIONS: OnceLock<Vec<(u64, String)>> = OnceLock::new();
    let functions = FUNCTIONS.get_or_init(|| {
        fs::read_to_string("/proc/kallsyms").map_or_else(|_| Vec::new(), |text| functions(&text))
    });
    let after = functions.partition_point(|(begin, _)| *begin <= address);
    after.checked_sub(1).map_or(OTHERS, |place| functions[place].1.as_str())
}

/// Functions by where they begin. What the compiler made of parts of one has its name.
fn functions(kallsyms: &str) -> Vec<(u64, String)> {
    let function = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok().filter(|address| *address > 0)?;
        words.next().filter(|kind| matches!(*kind, "t" | "T" | "w" | "W"))?;
        let name = words.next()?;
        Some((address, name.split('.').next().unwrap_or(name).to_owned()))
    };
    let mut all: Vec<_> = kallsyms.lines().filter_map(function).collect();
    all.sort();
    all.dedup_by_key(|(address, _)| *address);
    all
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn the_kernel_is_found_where_it_works() {
        let look = crate::Look::new(
            crate::Instruments { functions: true, crossings: false },
            crate::LeaveOut::Nobody,
        );
        assert_eq!(look.trouble(), None, "this test samples the kernel: run it as root");
        let zeroes = File::open("/dev/zero").unwrap();
        let mut buffer = vec![0; 1 << 20];
        // On a busy host the thread's own time passes slowly.
        let (begun, before) = (Instant::now(), crate::thread_clock_ns());
        while crate::thread_clock_ns() - before < 400_000_000 && begun.elapsed() < Duration::from_secs(60) {
            rustix::io::read(&zeroes, &mut buffer).unwrap();
        }
        let functions = look.functions();
        let all_ns: u64 = functions.values().sum();
        assert!(all_ns > 100_000_000, "{functions:?}");
        assert!(
            functions.len() <= MOST_FUNCTIONS + 1 && functions.keys().any(|name| name != OTHERS),
            "{functions:?}"
        );
        look.forget();
        assert!(look.functions().values().sum::<u64>() < all_ns / 2, "what was forgotten is gone");
    }

    #[test]
    fn functions_are_known_by_where_they_begin_and_parts_by_the_whole() {
        let text = "ffffffff81000000 T start\nffffffff81000100 t work.isra.0\nffffffff81000100 T alias\n\
                    ffffffff81000200 d data\n0000000000000000 A nothing\nnonsense\n";
        let found = functions(text);
        assert_eq!(found, [(0xffff_ffff_8100_0000, "start".into()), (0xffff_ffff_8100_0100, "alias".into())]);
        assert_eq!(functions("ffffffff81000100 t work.isra.0\n")[0].1, "work");
    }
}
