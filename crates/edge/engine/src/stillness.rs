//! Whether the load generator itself stood still: it was stopped, or its machine was.

use virtbench_units::format_duration_ns;

/// A thread that wakes so much too late has stood still; a busy host delays it by less. In nanoseconds.
const STILL_NS: u64 = 1_000_000_000;

/// Looks of a thread that waits for a short time between each and the next.
#[derive(Debug)]
pub(crate) struct Stillness {
    looked_ns: u64,
    times: u32,
    total_ns: u64,
}

impl Stillness {
    /// From now on.
    pub(crate) fn since(now_ns: u64) -> Self {
        Self { looked_ns: now_ns, times: 0, total_ns: 0 }
    }

    /// The thread looks again.
    pub(crate) fn look(&mut self, now_ns: u64) {
        let gap_ns = now_ns.saturating_sub(self.looked_ns);
        if gap_ns > STILL_NS {
            self.times += 1;
            self.total_ns = self.total_ns.saturating_add(gap_ns);
        }
        self.looked_ns = now_ns;
    }

    /// What a reader of the figures should know; nothing where it never stood still.
    pub(crate) fn note(&self) -> Option<String> {
        let times = match self.times {
            0 => return None,
            1 => "once".to_owned(),
            many => format!("{many} times"),
        };
        let tenths_ns = self.total_ns / 100_000_000 * 100_000_000;
        Some(format!(
            "the load generator itself stood still for {} ({times}): it was stopped, or its machine was. Latencies and rates of that \
             time say nothing about the target",
            format_duration_ns(tenths_ns)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_looks_are_added_up_and_short_delays_are_none() {
        let mut still = Stillness::since(0);
        for now_ns in [50_000_000, 900_000_000, 1_800_000_000] {
            still.look(now_ns);
        }
        assert_eq!(still.note(), None);
        still.look(4_000_000_000);
        assert!(still.note().unwrap().contains("stood still for 2s 200ms (once)"), "{:?}", still.note());
        still.look(7_000_000_000);
        assert!(still.note().unwrap().contains("5s 200ms (2 times)"), "{:?}", still.note());
    }
}
