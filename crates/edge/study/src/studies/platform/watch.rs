//! The host while a domain is measured: its processors' use, their frequency, and where memory was given.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use virtbench_lab::{CpuSample, NumaSample, mean_frequency_mhz};
use virtbench_record::{HostUse, PlatformObserved};

/// So often is the frequency looked at.
const EVERY: Duration = Duration::from_millis(500);

/// Looks on from its making to its end.
pub(super) struct HostWatch {
    cpu: Option<CpuSample>,
    numa: Option<NumaSample>,
    frequency: Option<FrequencyWatch>,
}

impl HostWatch {
    /// Begins.
    pub(super) fn begin() -> Self {
        let frequency = mean_frequency_mhz().map(FrequencyWatch::begin);
        Self { cpu: CpuSample::take().ok(), numa: NumaSample::take(), frequency }
    }

    /// What was seen. What this host does not tell is absent.
    pub(super) fn end(self) -> (Option<HostUse>, PlatformObserved) {
        let host = self.cpu.and_then(|begun| Some(begun.until(&CpuSample::take().ok()?)));
        let observed = PlatformObserved {
            frequency_mhz: self.frequency.and_then(FrequencyWatch::end),
            numa: self.numa.and_then(|begun| Some(begun.until(NumaSample::take()?))),
            disks: Vec::new(),
        };
        (host, observed)
    }
}

/// A thread that looks at the frequency until it is told to end.
struct FrequencyWatch {
    stop: Sender<()>,
    thread: JoinHandle<[u32; 2]>,
}

impl FrequencyWatch {
    fn begin(first_mhz: u32) -> Self {
        let (stop, stopped) = channel();
        let thread = thread::spawn(move || {
            let mut seen = [first_mhz; 2];
            while matches!(stopped.recv_timeout(EVERY), Err(RecvTimeoutError::Timeout)) {
                let now = mean_frequency_mhz().unwrap_or(first_mhz);
                seen = [seen[0].min(now), seen[1].max(now)];
            }
            seen
        });
        Self { stop, thread }
    }

    fn end(self) -> Option<[u32; 2]> {
        drop(self.stop);
        self.thread.join().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_ends_with_what_the_host_tells() {
        let (host, observed) = HostWatch::begin().end();
        assert!(host.is_some_and(|host| host.processors > 0));
        assert_eq!(observed.frequency_mhz.is_some(), mean_frequency_mhz().is_some());
        assert_eq!(FrequencyWatch::begin(1000).end().map(|[least, most]| least <= most), Some(true));
    }
}
