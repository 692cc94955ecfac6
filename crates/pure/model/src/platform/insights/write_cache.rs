//! Writes that wait for the disk each time, beside the same adapter whose writes need not.

use virtbench_record::ObservedDisk;

use super::rule::{Evidence, Finding, Outcome, Seen};

/// Write-back has to do so many times as much.
const BETTER: f64 = 1.1;

pub(super) fn write_cache(seen: &Seen<'_>) -> Outcome {
    let disks = seen.disks();
    let is = |disk: &&ObservedDisk, cache: &str| disk.write_cache.as_deref() == Some(cache);
    let adapter = |disk: &ObservedDisk| disk.setup.split([',', '@']).next().map(str::to_owned);
    let pairs = disks.iter().filter(|disk| is(disk, "write through")).filter_map(|through| {
        let is_same = |disk: &&ObservedDisk| is(disk, "write back") && adapter(disk) == adapter(through);
        let back = disks.iter().find(is_same)?;
        Some((through, back, back.writes_bytes_per_s? / through.writes_bytes_per_s?))
    });
    let pairs: Vec<_> = pairs.collect();
    if pairs.is_empty() {
        return Outcome::unavailable("no adapter was measured with both: the profiles quick and full do");
    }
    let Some((through, back, gain)) = pairs.into_iter().find(|(.., gain)| *gain >= BETTER) else {
        return Outcome::Silent;
    };
    let writes = |disk: &ObservedDisk| disk.writes_bytes_per_s.unwrap_or(0.0) / 1e6;
    Outcome::Fires(Finding {
        evidence: vec![
            Evidence::new(format!("writes of {} (write through)", through.setup), writes(through), "MB/s"),
            Evidence::new(format!("writes of {} (write back)", back.setup), writes(back), "MB/s"),
        ],
        sentence: "A disk that writes through waits for each write; one that writes back waits where the guest asks it to.".into(),
        change: format!("Where VMs have {}, and their systems flush what has to last, give them {}.", through.setup, back.setup),
        gain: Some(gain),
    })
}
