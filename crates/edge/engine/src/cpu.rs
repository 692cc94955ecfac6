//! What the load generator itself costs.

use virtbench_counters::thread_cpu_ns;

/// CPU time of the calling thread from the begin of measuring.
pub(crate) struct CpuMeter {
    begin_ns: u64,
    at_begin: Option<[u64; 2]>,
}

impl CpuMeter {
    /// A meter that starts when the clock first shows `begin_ns` or later.
    pub(crate) fn new(begin_ns: u64) -> Self {
        Self { begin_ns, at_begin: None }
    }

    /// Lets the meter see the clock.
    #[inline]
    pub(crate) fn look(&mut self, now_ns: u64) {
        if self.at_begin.is_none() && now_ns >= self.begin_ns {
            self.at_begin = Some(thread_cpu_ns());
        }
    }

    /// User and system time since then, in nanoseconds.
    pub(crate) fn used(&self) -> [u64; 2] {
        let now = thread_cpu_ns();
        self.at_begin.map_or([0, 0], |then| [now[0].saturating_sub(then[0]), now[1].saturating_sub(then[1])])
    }
}
