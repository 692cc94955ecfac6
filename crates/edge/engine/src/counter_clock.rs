//! The kernel's clock, read from the processor's counter in between.
//!
//! In a guest of User Mode Linux each reading of the kernel's clock is a system call of some microseconds, and one operation of a load
//! costs one reading. The counter of the processor takes nanoseconds there as well. It is held to the kernel's clock: its rate comes
//! from two readings of both, and every ten milliseconds another reading of both must agree with it. Once one does not, the counter is
//! not read any more.

/// How long the counter is read before the kernel's clock is again.
const STRETCH_NS: u64 = 10_000_000;
/// How far apart the first two readings of both are. Until then every reading is the kernel's.
const FIRST_NS: u64 = 20_000_000;
/// Readings from which the first is chosen: those of cold code take longer.
const FIRST_TRIES: u32 = 8;
/// A reading of the kernel's clock that takes so many times the shortest was interrupted somewhere in between.
const INTERRUPTED: u64 = 4;
/// What a reading of both may be off beyond the time that it took, and what each second between two may add: NTP bends the kernel's
/// clock by 500 ppm at most.
const TOLERATED_NS: u64 = 2_000;
const TOLERATED_PPM: u64 = 500;
/// Bits behind the point of a rate.
const RATE_BITS: u32 = 32;

/// What is read.
pub(crate) trait Clocks {
    /// The processor's counter, at whatever constant rate.
    fn cycles(&self) -> u64;
    /// The kernel's monotonic clock, in nanoseconds.
    fn kernel_ns(&self) -> u64;
}

/// What both showed at one moment.
#[derive(Debug, Clone, Copy)]
struct Reading {
    cycles: u64,
    ns: u64,
    /// How many cycles it took to find out.
    width: u64,
}

/// A clock that shows the kernel's time, never goes back, and reads the counter where that agrees.
#[derive(Debug)]
pub(crate) struct CounterClock<C> {
    clocks: C,
    /// The rate comes from the time since then.
    first: Reading,
    /// The counter counts from here.
    anchor: Reading,
    /// Nanoseconds a cycle, with [`RATE_BITS`] behind the point; 0 while unknown.
    rate: u64,
    /// For so many cycles after the anchor; 0 where the kernel's clock is to be read.
    stretch: u64,
    shortest: u64,
    shown_ns: u64,
    is_refuted: bool,
}

impl<C: Clocks> CounterClock<C> {
    pub(crate) fn new(clocks: C) -> Self {
        let tries = (0..FIRST_TRIES).map(|_| read_both(&clocks));
        let none = Reading { cycles: 0, ns: 0, width: u64::MAX };
        let first = tries.min_by_key(|moment| moment.width).unwrap_or(none);
        Self {
            clocks,
            first,
            anchor: first,
            rate: 0,
            stretch: 0,
            shortest: first.width,
            shown_ns: first.ns,
            is_refuted: false,
        }
    }

    /// The time. Its call costs nothing beside what it saves, and leaves the loops of all others as short as they were.
    #[inline(never)]
    pub(crate) fn now_ns(&mut self) -> u64 {
        let since = self.clocks.cycles().wrapping_sub(self.anchor.cycles);
        let ns = if since < self.stretch {
            self.anchor.ns + ((since * self.rate) >> RATE_BITS)
        } else {
            self.look()
        };
        self.shown_ns = self.shown_ns.max(ns);
        self.shown_ns
    }

    /// Whether the counter has gone another way than the kernel's clock.
    pub(crate) fn is_refuted(&self) -> bool {
        self.is_refuted
    }

    /// Reads the kernel's clock and holds the counter to it.
    #[cold]
    fn look(&mut self) -> u64 {
        if self.is_refuted {
            return self.clocks.kernel_ns();
        }
        let moment = read_both(&self.clocks);
        if self.rate > 0 && !self.agrees(moment) {
            (self.is_refuted, self.stretch) = (true, 0);
            return moment.ns;
        }
        self.shortest = self.shortest.min(moment.width);
        let passed_ns = moment.ns.saturating_sub(self.first.ns);
        let passed = moment.cycles.wrapping_sub(self.first.cycles);
        let is_whole = moment.width <= self.shortest.saturating_mul(INTERRUPTED);
        if !is_whole || passed_ns < FIRST_NS || passed == 0 {
            return moment.ns;
        }
        // Of the whole time since the first, so that what each reading is off matters less and less.
        let rate = (u128::from(passed_ns) << RATE_BITS) / u128::from(passed);
        let stretch = (u128::from(STRETCH_NS) << RATE_BITS) / rate.max(1);
        // A stretch times its rate fits: it is ten milliseconds.
        if let (Ok(rate), Ok(stretch)) = (u64::try_from(rate), u64::try_from(stretch)) {
            (self.rate, self.stretch, self.anchor) = (rate, stretch, moment);
        }
        moment.ns
    }

    /// Whether the kernel's clock shows what the counter does. It was read at some moment of the width, so that an interruption there
    /// refutes nothing.
    fn agrees(&self, Reading { cycles, ns, width }: Reading) -> bool {
        let passed = i128::from(cycles.wrapping_sub(self.anchor.cycles).cast_signed());
        let rate = i128::from(self.rate);
        let expected = i128::from(self.anchor.ns) + ((passed * rate) >> RATE_BITS);
        let unsure = (i128::from(width / 2 + self.anchor.width / 2) * rate) >> RATE_BITS;
        let drift = ((passed.abs() * rate) >> RATE_BITS) * i128::from(TOLERATED_PPM) / 1_000_000;
        (i128::from(ns) - expected).abs() <= unsure + i128::from(TOLERATED_NS) + drift
    }
}

/// One moment on both: the counter is taken to be midway between its readings before and after.
fn read_both(clocks: &impl Clocks) -> Reading {
    let before = clocks.cycles();
    let ns = clocks.kernel_ns();
    let width = clocks.cycles().wrapping_sub(before);
    // A counter that went back meanwhile was read on two processors.
    let width = if width.cast_signed() < 0 { 0 } else { width };
    Reading { cycles: before.wrapping_add(width / 2), ns, width }
}

#[cfg(test)]
#[path = "counter_clock_tests.rs"]
mod tests;
