//! An adapter that takes fewer requests at once than the load has.

use super::rule::{Evidence, Finding, Outcome, Seen};

/// Another adapter has to do so many times as much.
const BETTER: f64 = 1.1;

pub(super) fn queue_depth(seen: &Seen<'_>) -> Outcome {
    let disks = seen.disks();
    if disks.iter().all(|disk| disk.takes_at_once.is_none()) {
        return Outcome::unavailable("no adapters were compared: the profiles quick and full do");
    }
    let unlimited =
        disks.iter().filter(|disk| disk.takes_at_once.is_none_or(|takes| takes >= disk.outstanding));
    let best =
        unlimited.max_by(|one, other| one.throughput_bytes_per_s.total_cmp(&other.throughput_bytes_per_s));
    let limited = disks.iter().filter_map(|disk| {
        let takes = disk.takes_at_once.filter(|takes| *takes < disk.outstanding)?;
        let best = best?;
        let gain = best.throughput_bytes_per_s / disk.throughput_bytes_per_s;
        (gain >= BETTER).then_some((disk, takes, best, gain))
    });
    let Some((disk, takes, best, gain)) = limited.max_by(|one, other| one.3.total_cmp(&other.3)) else {
        return Outcome::Silent;
    };
    let mb = |bytes: f64| bytes / 1e6;
    Outcome::Fires(Finding {
        evidence: vec![
            Evidence::new(format!("{} takes at once", disk.setup), f64::from(takes), "requests"),
            Evidence::new("outstanding in the load", f64::from(disk.outstanding), "requests"),
            Evidence::new(disk.setup.clone(), mb(disk.throughput_bytes_per_s), "MB/s"),
            Evidence::new(best.setup.clone(), mb(best.throughput_bytes_per_s), "MB/s"),
        ],
        sentence: format!("The queue of {} is shorter than the load, and holds it back.", disk.setup),
        change: format!("Where VMs have {}, give them {}.", disk.setup, best.setup),
        gain: Some(gain),
    })
}
