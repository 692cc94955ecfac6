//! Processor time that a hypervisor below this host took away.

use virtbench_record::HostUse;

use super::rule::{Evidence, Finding, Outcome, Seen};

/// Less than this part of the processors' time is as good as nothing.
const LEAST: f64 = 0.01;

pub(super) fn steal(seen: &Seen<'_>) -> Outcome {
    let hosts: Vec<&HostUse> = seen.measured().filter_map(|measured| measured.host.as_ref()).collect();
    if hosts.is_empty() {
        return Outcome::unavailable("nobody looked at this host's processors meanwhile");
    }
    let share = |host: &HostUse| host.steal_percent / 100.0 / f64::from(host.processors.max(1));
    let mean = hosts.iter().map(|host| share(host)).sum::<f64>() / hosts.len() as f64;
    let most = hosts.iter().map(|host| share(host)).fold(0.0, f64::max);
    if mean < LEAST {
        return Outcome::Silent;
    }
    Outcome::Fires(Finding {
        evidence: vec![
            Evidence::new("processor time stolen, on average", 100.0 * mean, "%"),
            Evidence::new("at most, in one part", 100.0 * most, "%"),
        ],
        sentence: "This host is a virtual machine itself, and the hypervisor below it gave its processors to others meanwhile.".into(),
        change: "Measure again when that host is quiet, or on processors that it reserves: ratios of such a run tell of others, too.".into(),
        gain: None,
    })
}
