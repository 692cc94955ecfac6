//! The host and the disk of the data, looked at second by second while a database is under load.

use std::fs;
use std::time::Instant;

use virtbench_lab::CpuSample;
use virtbench_model::is_busy;
use virtbench_record::{HostUse, OltpHostSecond};

/// What the counters said at a moment, since the host started.
struct Look {
    at: Instant,
    cpu: CpuSample,
    operations: Option<u64>,
    switches: Option<u64>,
}

/// Looks so far, one at the end of each second of measuring.
#[derive(Default)]
pub(super) struct HostSeconds {
    looks: Vec<Look>,
}

impl HostSeconds {
    /// A second is over, by whose end the disk had done so many operations.
    pub(super) fn look(&mut self, operations: Option<u64>) {
        let Ok(cpu) = CpuSample::take() else { return };
        let at = Instant::now();
        self.looks.push(Look { at, cpu, operations, switches: context_switches() });
    }

    /// The host from the end of the first second to the last look; nothing of fewer than two.
    pub(super) fn host(&self) -> Option<HostUse> {
        let (first, last) = (self.looks.first()?, self.looks.last()?);
        (self.looks.len() > 1).then(|| first.cpu.until(&last.cpu))
    }

    /// Operations of the disk a second over the same time.
    pub(super) fn iops(&self) -> Option<f64> {
        let (first, last) = (self.looks.first()?, self.looks.last()?);
        let seconds = last.at.duration_since(first.at).as_secs_f64();
        (seconds > 0.0).then_some(())?;
        Some(last.operations?.checked_sub(first.operations?)? as f64 / seconds)
    }

    /// Second by second, without the first.
    pub(super) fn seconds(&self) -> Vec<OltpHostSecond> {
        let pairs = (1u64..).zip(self.looks.windows(2));
        let second = |(number, pair): (u64, &[Look])| {
            let (before, after) = (&pair[0], &pair[1]);
            let used = before.cpu.until(&after.cpu);
            let seconds = after.at.duration_since(before.at).as_secs_f64().max(1e-9);
            let rate =
                |before: Option<u64>, after: Option<u64>| Some(after?.checked_sub(before?)? as f64 / seconds);
            OltpHostSecond {
                start_ns: number * 1_000_000_000,
                cpu_percent: used.cpu_percent,
                steal_percent: used.steal_percent,
                others_percent: used.others_percent,
                busy: is_busy(&used),
                iops: rate(before.operations, after.operations),
                context_switches: rate(before.switches, after.switches),
            }
        };
        pairs.map(second).collect()
    }
}

/// Context switches of the whole host since its boot (proc(5)).
fn context_switches() -> Option<u64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    stat.lines().find_map(|line| line.strip_prefix("ctxt "))?.trim().parse().ok()
}
