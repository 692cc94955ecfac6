//! What slows a platform down, looked for by rule. A rule shows its evidence, or stays silent, or says why it could not look.

use virtbench_record::{
    GridPlan, HostFacts, HostTuning, HostUse, NumaPages, ObservedDisk, Plan, PlatformObserved, PointRecord,
    Provenance, Records, SamplesMeasured, SamplesRecord, SetupFacts, TimeCounts,
};

use super::score::PlatformScore;
use crate::interval::geometric_mean;
use crate::quantity::Quantity;
use crate::samples::peaks;

/// A rule and what it has come to.
#[derive(Debug, Clone, PartialEq)]
pub struct Insight {
    /// What it looks for.
    pub looks_for: &'static str,
    /// What it has come to.
    pub outcome: Outcome,
}

type Rule = fn(&Seen<'_>) -> Outcome;

/// Every rule, by what it looks for.
const RULES: [(&str, Rule); 9] = [
    ("queue depth of an adapter", queue_depth),
    ("write-through against write-back", write_cache),
    ("interrupts that are coalesced", coalescing),
    ("imbalance between NUMA nodes", numa),
    ("a clock that costs", clock),
    ("small pages", huge_pages),
    ("merging of equal pages", merging),
    ("steal of an outer hypervisor", steal),
    ("changes of the processors' frequency", frequency),
];

/// What each rule has come to.
#[must_use]
pub fn insights(provenance: &Provenance, records: &[SamplesRecord], found: &PlatformScore) -> Vec<Insight> {
    let seen = Seen { host: &provenance.host, records, found };
    RULES.iter().map(|(looks_for, rule)| Insight { looks_for, outcome: rule(&seen) }).collect()
}

/// A number that speaks for a finding.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// What was seen.
    pub what: String,
    /// How much it was.
    pub value: f64,
    /// Its unit, such as `%` or `MHz`.
    pub unit: &'static str,
}

impl Evidence {
    fn new(what: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { what: what.into(), value, unit }
    }
}

/// Something that costs, and is seen here.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// What was seen, with the numbers.
    pub evidence: Vec<Evidence>,
    /// What it means.
    pub sentence: String,
    /// What to change first.
    pub change: String,
    /// How many times as much was measured with that change; nothing where it was not tried.
    pub gain: Option<f64>,
}

/// What a rule has come to.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It is seen here.
    Fires(Finding),
    /// It was looked for, and is not here.
    Silent,
    /// It could not be looked for, and why.
    Unavailable(String),
}

impl Outcome {
    fn unavailable(why: impl Into<String>) -> Self {
        Self::Unavailable(why.into())
    }
}

/// A run of a platform, as rules see it.
struct Seen<'a> {
    host: &'a HostFacts,
    records: &'a [SamplesRecord],
    found: &'a PlatformScore,
}

impl Seen<'_> {
    fn measured(&self) -> impl Iterator<Item = &SamplesMeasured> {
        self.records.iter().filter_map(SamplesRecord::measured)
    }

    fn observed(&self) -> impl Iterator<Item = &PlatformObserved> {
        self.measured().filter_map(|measured| measured.observed.as_ref())
    }

    fn tuning(&self) -> Option<&HostTuning> {
        self.host.tuning.as_ref()
    }

    /// The figure of a domain, if it has one.
    fn ratio(&self, domain: &str) -> Option<f64> {
        Some(self.found.domains.iter().find(|one| one.name == domain)?.ratio?.mean)
    }

    /// Each disk of a guest once.
    fn disks(&self) -> Vec<ObservedDisk> {
        all_disks(self.records)
    }
}

/// A reading that costs more than this is no reading of a counter, in nanoseconds.
const DEAR_NS: u64 = 250;

/// The counter of the processor itself.
const CHEAP: &str = "tsc";

/// A clock that programs pay for each time they look at it.
fn clock(seen: &Seen<'_>) -> Outcome {
    let Some(clock) = seen.tuning().and_then(|tuning| tuning.clock.as_ref()) else {
        return Outcome::unavailable("this run does not tell which clock this host's kernel reads");
    };
    if clock.read_ns < DEAR_NS {
        return Outcome::Silent;
    }
    let change = match clock.others.iter().any(|other| other == CHEAP) {
        true => format!(
            "Have the kernel read {CHEAP} (clocksource={CHEAP}), if its log does not call it unstable, and measure again."
        ),
        false => "Find out in the kernel's log why no cheaper clock is used.".into(),
    };
    Outcome::Fires(Finding {
        evidence: vec![Evidence::new(
            format!("reading the clock {}", clock.source),
            clock.read_ns as f64,
            "ns",
        )],
        sentence: format!(
            "The clock {} costs each program that looks at the time, QEMU among them.",
            clock.source
        ),
        change,
        gain: None,
    })
}

/// Fewer times than this have a shape by chance.
const LEAST_TIMES: u64 = 1000;

/// Interrupts that are held back: times with two common values where natively there is one.
fn coalescing(seen: &Seen<'_>) -> Outcome {
    let all: Vec<&TimeCounts> = seen.measured().flat_map(|measured| &measured.times).collect();
    let mut names: Vec<&str> = all.iter().map(|times| times.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let counts = |name: &str| -> Vec<(u64, u64)> {
        all.iter().filter(|times| times.name == name).flat_map(|times| times.counts.clone()).collect()
    };
    let is_enough = |name: &str| counts(name).iter().map(|(_, count)| count).sum::<u64>() >= LEAST_TIMES;
    let guests: Vec<&str> = names.iter().copied().filter(|name| !name.starts_with("native")).collect();
    if guests.is_empty() {
        return Outcome::unavailable("no distribution of times was measured: the domain network has one");
    }
    if !guests.iter().any(|name| is_enough(name)) {
        return Outcome::unavailable(format!(
            "fewer than {LEAST_TIMES} times were measured: their shape is chance"
        ));
    }
    let fires = guests.into_iter().find_map(|name| {
        let found = peaks(&counts(name));
        let (_, what) = name.split_once(": ")?;
        let is_native_too = !peaks(&counts(&format!("native: {what}"))).is_empty();
        (found.len() > 1 && !is_native_too).then_some((name, what, found))
    });
    let Some((name, what, found)) = fires else { return Outcome::Silent };
    let evidence = found.iter().map(|peak| {
        let share = 100.0 * peak.share;
        Evidence::new(format!("{name}, common time of {share:.0} %"), peak.at_ns as f64 / 1000.0, "us")
    });
    Outcome::Fires(Finding {
        evidence: evidence.collect(),
        sentence: format!(
            "A {what} takes one of {} common times in a VM and one natively: some wait for others, as where interrupts are coalesced.",
            found.len()
        ),
        change: "Shorten or turn off the adapter's interrupt moderation in guest and host (ethtool -C), and measure again.".into(),
        gain: None,
    })
}

/// So many times the least frequency the greatest may be.
const STEADY: f64 = 1.1;

/// Processors whose frequency changed while something was measured.
fn frequency(seen: &Seen<'_>) -> Outcome {
    let ranges: Vec<[u32; 2]> = seen.observed().filter_map(|observed| observed.frequency_mhz).collect();
    let least = ranges.iter().map(|range| range[0]).min();
    let most = ranges.iter().map(|range| range[1]).max();
    let (Some(least), Some(most)) = (least.filter(|least| *least > 0), most) else {
        return Outcome::unavailable(
            "this kernel does not tell the processors' frequency, as in most virtual machines",
        );
    };
    if f64::from(most) < STEADY * f64::from(least) {
        return Outcome::Silent;
    }
    let governor = seen.tuning().and_then(|tuning| tuning.frequency.as_ref());
    let under = governor.map_or_else(String::new, |facts| format!(", under the governor {}", facts.governor));
    Outcome::Fires(Finding {
        evidence: vec![
            Evidence::new(format!("least mean frequency{under}"), f64::from(least), "MHz"),
            Evidence::new("greatest mean frequency", f64::from(most), "MHz"),
        ],
        sentence: "The processors were not equally fast all the time, so that two sides may have had different ones.".into(),
        change: "Set the governor to performance while measuring, and measure again.".into(),
        gain: None,
    })
}

/// Memory that is slower than this is looked into.
const SLOW: f64 = 0.9;

/// Small pages under guests whose memory is slow.
fn huge_pages(seen: &Seen<'_>) -> Outcome {
    let Some(mode) = seen.tuning().and_then(|tuning| tuning.transparent_huge_pages.as_deref()) else {
        return Outcome::unavailable("this kernel does not tell of transparent huge pages");
    };
    let Some(ratio) = seen.ratio("memory") else {
        return Outcome::unavailable("memory was not measured");
    };
    if mode != "never" || ratio >= SLOW {
        return Outcome::Silent;
    }
    Outcome::Fires(Finding {
        evidence: vec![Evidence::new("memory, with transparent huge pages set to never", ratio, "times the base")],
        sentence: "Guests' memory is slow and lies in small pages, for each of which the processor walks two tables.".into(),
        change: "Set transparent huge pages to madvise or always, and measure memory again.".into(),
        gain: None,
    })
}

const PAGE_BYTES: f64 = 4096.0;

/// Pages that are merged while something is measured.
fn merging(seen: &Seen<'_>) -> Outcome {
    let Some(ksm) = seen.tuning().and_then(|tuning| tuning.ksm) else {
        return Outcome::unavailable("this kernel does not merge equal pages (KSM), or does not tell");
    };
    if !ksm.runs || ksm.sharing_pages == 0 {
        return Outcome::Silent;
    }
    let mib = ksm.sharing_pages as f64 * PAGE_BYTES / f64::from(1 << 20);
    Outcome::Fires(Finding {
        evidence: vec![Evidence::new("memory that KSM spares", mib, "MiB")],
        sentence: "The kernel merges equal pages of guests: it spares memory, looks through all of it, and copies a page at its first write.".into(),
        change: "Stop KSM if memory suffices without it, and measure again.".into(),
        gain: None,
    })
}

/// So large a part of the pages may be given on another node.
const REMOTE: f64 = 0.05;

/// So many pages may be moved, for each that is given.
const MIGRATED: f64 = 0.01;

/// Memory on another node than the processors that use it.
fn numa(seen: &Seen<'_>) -> Outcome {
    let nodes = match seen.tuning().and_then(|tuning| tuning.numa_nodes) {
        None => return Outcome::unavailable("this kernel does not tell how many NUMA nodes there are"),
        Some(0 | 1) => return Outcome::Silent,
        Some(nodes) => nodes,
    };
    let all: Vec<NumaPages> = seen.observed().filter_map(|observed| observed.numa).collect();
    if all.is_empty() {
        return Outcome::unavailable("this kernel does not count memory by NUMA node");
    }
    let sum = |of: fn(&NumaPages) -> u64| all.iter().map(of).sum::<u64>() as f64;
    let (local, remote, migrated) =
        (sum(|pages| pages.local), sum(|pages| pages.remote), sum(|pages| pages.migrated));
    let given = (local + remote).max(1.0);
    if remote / given < REMOTE && migrated / given < MIGRATED {
        return Outcome::Silent;
    }
    Outcome::Fires(Finding {
        evidence: vec![
            Evidence::new("NUMA nodes", f64::from(nodes), ""),
            Evidence::new("pages given on another node", 100.0 * remote / given, "%"),
            Evidence::new("pages moved between nodes", migrated, ""),
        ],
        sentence: "Memory lies on another node than the processors that use it, so that accesses take the way between nodes.".into(),
        change: "Hold each VM to the processors and the memory of one node, and measure again.".into(),
        gain: None,
    })
}

/// Another adapter has to do so many times as much.
const OTHER_ADAPTER_BETTER: f64 = 1.1;

/// An adapter that takes fewer requests at once than the load has.
fn queue_depth(seen: &Seen<'_>) -> Outcome {
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
        (gain >= OTHER_ADAPTER_BETTER).then_some((disk, takes, best, gain))
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

/// Less than this part of the processors' time is as good as nothing.
const LEAST: f64 = 0.01;

/// Processor time that a hypervisor below this host took away.
fn steal(seen: &Seen<'_>) -> Outcome {
    let hosts: Vec<&HostUse> = seen.measured().filter_map(|measured| measured.host.as_ref()).collect();
    if hosts.is_empty() {
        return Outcome::unavailable("this host's processors were not sampled meanwhile");
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

/// Write-back has to do so many times as much.
const WRITE_BACK_BETTER: f64 = 1.1;

/// Writes that wait for the disk each time, beside the same adapter whose writes need not.
fn write_cache(seen: &Seen<'_>) -> Outcome {
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
    let Some((through, back, gain)) = pairs.into_iter().find(|(.., gain)| *gain >= WRITE_BACK_BETTER) else {
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

/// Distributions of times, each named by the side that it is of, such as `tap: request`.
#[must_use]
pub fn times_of_run(records: &Records) -> Vec<TimeCounts> {
    let Records::Samples(records) = records else { return Vec::new() };
    let of_record = records.iter().filter_map(|record| Some((record, record.measured()?)));
    let times = of_record.flat_map(|(record, measured)| {
        measured.times.iter().map(move |times| TimeCounts {
            name: format!("{}: {}", record.key.side, times.name),
            counts: times.counts.clone(),
        })
    });
    times.collect()
}

/// Disks of guests, where configurations were compared.
#[must_use]
pub fn disks_of_run(provenance: &Provenance, records: &Records) -> Vec<ObservedDisk> {
    let Plan::Adapters(plan) = &provenance.plan else { return Vec::new() };
    let disk = |setup: &SetupFacts| disk(plan, setup, records.points());
    provenance.setups.iter().filter_map(disk).collect()
}

fn disk(plan: &GridPlan, setup: &SetupFacts, records: &[PointRecord]) -> Option<ObservedDisk> {
    let own = |is_point: &dyn Fn(&PointRecord) -> bool| {
        let of_setup = records.iter().filter(|record| record.environment == setup.name && is_point(record));
        let values: Vec<f64> = of_setup.filter_map(|record| Quantity::Throughput.value(record)).collect();
        (!values.is_empty()).then(|| geometric_mean(&values))
    };
    let found = setup.found.as_ref();
    Some(ObservedDisk {
        setup: setup.name.clone(),
        takes_at_once: found.and_then(|found| found.outstanding()),
        outstanding: plan.outstanding.saturating_mul(plan.workers.max(1)),
        write_cache: found.and_then(|found| found.write_cache.clone()),
        throughput_bytes_per_s: own(&|_| true)?,
        writes_bytes_per_s: own(&|record| record.point.read_percent == 0),
    })
}

/// Each disk of a guest that was seen, once, with the geometric mean of its throughputs over the repetitions.
pub(super) fn all_disks(records: &[SamplesRecord]) -> Vec<ObservedDisk> {
    let mut disks: Vec<(ObservedDisk, Vec<[Option<f64>; 2]>)> = Vec::new();
    let observed = records.iter().filter_map(|record| record.measured()?.observed.as_ref());
    for disk in observed.flat_map(|observed| &observed.disks) {
        let both = [Some(disk.throughput_bytes_per_s), disk.writes_bytes_per_s];
        match disks.iter_mut().find(|(one, _)| one.setup == disk.setup) {
            Some((_, all)) => all.push(both),
            None => disks.push((disk.clone(), vec![both])),
        }
    }
    let mean = |all: &[[Option<f64>; 2]], which: usize| {
        let values: Vec<f64> = all.iter().filter_map(|both| both[which]).collect();
        (!values.is_empty()).then(|| geometric_mean(&values))
    };
    let of = |(disk, all): (ObservedDisk, Vec<[Option<f64>; 2]>)| ObservedDisk {
        throughput_bytes_per_s: mean(&all, 0).unwrap_or(0.0),
        writes_bytes_per_s: mean(&all, 1),
        ..disk
    };
    disks.into_iter().map(of).collect()
}

#[cfg(test)]
#[path = "insights_tests.rs"]
mod insights_tests;

#[cfg(test)]
mod tests {
    use virtbench_samples::configurations::{adapters_plan, adapters_provenance, adapters_records};
    use virtbench_samples::samples as synthetic;

    use super::*;

    #[test]
    fn times_are_named_by_their_side() {
        let times = times_of_run(&Records::Samples(synthetic::records()));
        assert!(times.iter().any(|one| one.name.starts_with("tap: ")), "{times:?}");
        assert!(times_of_run(&Records::Points(Vec::new())).is_empty());
    }

    #[test]
    fn disks_are_those_that_the_guests_found() {
        let plan = adapters_plan(1);
        let records = Records::Points(adapters_records(&plan));
        let disks = disks_of_run(&adapters_provenance(plan), &records);
        let slow = disks.iter().find(|disk| disk.setup == "lsi53c895a").unwrap();
        assert_eq!((slow.takes_at_once, slow.write_cache.as_deref()), (Some(1), Some("write back")));
        let fast = disks.iter().find(|disk| disk.setup == "nvme").unwrap();
        assert!(fast.throughput_bytes_per_s > 2.0 * slow.throughput_bytes_per_s, "{disks:?}");
        assert!(fast.writes_bytes_per_s.is_some());
    }
}
