//! Whether a host was so busy that what was measured on it says something else than it seems to.

use std::collections::BTreeMap;

use virtbench_record::{HostUse, Provenance, SetRecord, unattributed_percent};

use super::hosts::far_hosts;
use crate::busy::OTHERS_SHARE;

/// Share of all processors' time from which on a host is called out of CPU.
const OUT_OF_CPU: f64 = 0.95;

/// Why figures are no finding about the workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overload {
    /// All processors were busy emulating the guests: seen is how emulators share processors.
    Emulation,
    /// All processors were busy, in part with what belongs neither to the guests nor to virtbench.
    Others,
}

impl Overload {
    /// In words, of a set of which it is said.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Emulation => {
                "the host had no processor time left beside emulating its guests, so that the figures show how \
                 emulators share processors and not how VMs share what the workload is about"
            }
            Self::Others => {
                "the host's processors were all busy, in part with something else than these VMs, so that the \
                 figures show that as well"
            }
        }
    }
}

/// Judges the records of one set, by their mean: this host, and those of machines that live elsewhere.
#[must_use]
pub fn overload(provenance: &Provenance, records: &[&SetRecord]) -> Option<Overload> {
    of_this_host(provenance, records).or_else(|| of_far_hosts(provenance, records))
}

/// On another host only other programs falsify figures: what virtbench does there is what was asked for.
fn of_far_hosts(provenance: &Provenance, records: &[&SetRecord]) -> Option<Overload> {
    let plan = provenance.plan.colocation()?;
    let mut hosts: BTreeMap<&str, Vec<HostUse>> = BTreeMap::new();
    for (environment, host) in records.iter().flat_map(|record| far_hosts(plan, record)) {
        hosts.entry(environment).or_default().push(host);
    }
    let is_overloaded = |hosts: &Vec<HostUse>| {
        let all: f64 = hosts.iter().map(|host| 100.0 * f64::from(host.processors.max(1))).sum();
        let sum = |of: fn(&HostUse) -> f64| hosts.iter().map(of).sum::<f64>();
        sum(|host| host.cpu_percent) >= OUT_OF_CPU * all
            && sum(|host| host.others_percent.unwrap_or(0.0)) >= OTHERS_SHARE * all
    };
    hosts.values().any(is_overloaded).then_some(Overload::Others)
}

fn of_this_host(provenance: &Provenance, records: &[&SetRecord]) -> Option<Overload> {
    let hosts: Vec<_> = records.iter().filter_map(|record| Some((record, record.host.as_ref()?))).collect();
    if hosts.is_empty() {
        return None;
    }
    let all = 100.0 * f64::from(provenance.host.processors.max(1)) * hosts.len() as f64;
    let busy: f64 = hosts.iter().map(|(_, host)| host.cpu_percent).sum();
    if busy < OUT_OF_CPU * all {
        return None;
    }
    // Records from before other programs were looked at tell no more than what no process accounts for.
    let of_others = |(record, host): &(&&SetRecord, &HostUse)| {
        host.others_percent.unwrap_or_else(|| unattributed_percent(host, &record.processes))
    };
    if hosts.iter().map(of_others).sum::<f64>() >= OTHERS_SHARE * all {
        return Some(Overload::Others);
    }
    is_emulated(provenance).then_some(Overload::Emulation)
}

/// Whether the guests' processors are emulated in software.
pub(super) fn is_emulated(provenance: &Provenance) -> bool {
    provenance.guest.as_ref().is_some_and(|guest| guest.accelerator.name.eq_ignore_ascii_case("tcg"))
}
