//! What a host was busy with beside what was measured on it, and whether that was more in one run than in the other. If it was,
//! a ratio of the two tells of the host as well.

use serde::{Deserialize, Serialize};
use virtbench_record::{HostUse, PointRecord};

use crate::interval::student_half_width;

/// How many times as many threads may want each processor before it counts. They are counted at instants, so small differences are chance.
const RUNNABLE_TIMES: f64 = 1.25;

/// Less of a processor than this is as good as none.
const NOTHING: f64 = 0.01;

/// How sure it must be that as many more threads wanted the processors.
const SURE: f64 = 0.99;

/// What a host was busy with beside a measurement, or on average beside several.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LoadSample {
    /// Processors that other programs used; nothing where it was not sampled.
    pub others: Option<f64>,
    /// Processors that a hypervisor below took away.
    pub steal: f64,
    /// Threads that ran or wanted to; nothing where it was not sampled.
    pub runnable: Option<f64>,
    /// Processors of the host.
    pub processors: u32,
}

impl LoadSample {
    /// That beside a measurement; nothing where the host is not known.
    #[must_use]
    pub fn of(host: &HostUse) -> Option<Self> {
        (host.processors > 0).then(|| Self {
            others: host.others_percent.map(|percent| percent / 100.0),
            steal: host.steal_percent / 100.0,
            runnable: host.runnable,
            processors: host.processors,
        })
    }

    /// The mean of several; nothing of none.
    #[must_use]
    pub fn mean(samples: &[Self]) -> Option<Self> {
        Some(Self {
            others: mean(&values(samples, |one| one.others)),
            steal: mean(&values(samples, |one| Some(one.steal)))?,
            runnable: mean(&values(samples, |one| one.runnable)),
            processors: samples.last()?.processors,
        })
    }
}

/// What a host was busier with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// Other programs used its processors.
    Others,
    /// A hypervisor below it took processor time away.
    Steal,
    /// More threads wanted its processors.
    Runnable,
}

/// A difference of load that forbids a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Busier {
    /// What it was busier with.
    pub load: Load,
    /// How much before: processors that were used or taken away, or threads.
    pub before: f64,
    /// How much after.
    pub after: f64,
    /// Processors of the host before and after.
    pub processors: [u32; 2],
}

impl Busier {
    /// How many times the lesser load the greater is.
    #[must_use]
    pub fn times(&self) -> f64 {
        self.before.max(self.after) / self.before.min(self.after).max(NOTHING)
    }

    /// Whether it was busier after than before.
    #[must_use]
    pub fn is_after(&self) -> bool {
        self.after > self.before
    }

    /// `the second host was 8 times busier: other programs used 1.6 of its 2 processors, 0.2 before`.
    #[must_use]
    pub fn words(&self) -> String {
        let (which, other, when) =
            if self.is_after() { ("second", self.before, "before") } else { ("first", self.after, "after") };
        let (most, processors) = if self.is_after() {
            (self.after, self.processors[1])
        } else {
            (self.before, self.processors[0])
        };
        let times = match self.times() {
            times if times >= 100.0 => "more than 100".to_owned(),
            times if times >= 9.95 => format!("{times:.0}"),
            times => format!("{times:.1}").trim_end_matches(".0").to_owned(),
        };
        let figures = match self.load {
            Load::Others => format!("other programs used {most:.1} of its {processors} processors"),
            Load::Steal => {
                format!("the hypervisor below it took {most:.1} of its {processors} processors away")
            }
            Load::Runnable => format!("{most:.1} threads wanted its {processors} processors"),
        };
        format!("the {which} host was {times} times busier: {figures}, {other:.1} {when}")
    }
}

/// The difference of load between what was measured before and after, if it is larger than may be left unsaid. What was not sampled
/// is no difference.
#[must_use]
pub fn busier([before, after]: [&[LoadSample]; 2]) -> Option<Busier> {
    let processors = [before.last()?.processors, after.last()?.processors];
    let used = |load: Load, of: fn(&LoadSample) -> Option<f64>| {
        let [before, after] = [mean(&values(before, of))?, mean(&values(after, of))?];
        let share = |used: f64, processors: u32| used / f64::from(processors.max(1));
        let difference = (share(before, processors[0]) - share(after, processors[1])).abs();
        (difference > OTHERS_SHARE).then_some(Busier { load, before, after, processors })
    };
    let others = || used(Load::Others, |one| one.others);
    let steal = || used(Load::Steal, |one| Some(one.steal));
    others().or_else(steal).or_else(|| more_runnable([before, after], processors))
}

/// Threads that wait for a processor take its time from what is measured, though others use no more of the host than all of it.
fn more_runnable(sides: [&[LoadSample]; 2], processors: [u32; 2]) -> Option<Busier> {
    let values = sides.map(|side| values(side, |one| one.runnable));
    let [before, after] = [mean(&values[0])?, mean(&values[1])?];
    let queue = |mean: f64, processors: u32| (mean / f64::from(processors.max(1))).max(1.0);
    let queues = [queue(before, processors[0]), queue(after, processors[1])];
    let (least, most) = (queues[0].min(queues[1]), queues[0].max(queues[1]));
    let half = |values: &[f64]| student_half_width(values, SURE).and_then(|(_, _, half)| half).unwrap_or(0.0);
    let chance = half(&values[0]).hypot(half(&values[1]));
    let is_more = most > RUNNABLE_TIMES * least && (before - after).abs() > chance;
    is_more.then_some(Busier { load: Load::Runnable, before, after, processors })
}

fn values(samples: &[LoadSample], of: fn(&LoadSample) -> Option<f64>) -> Vec<f64> {
    samples.iter().filter_map(of).collect()
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Share of all processors' time that other programs may use before it counts.
pub const OTHERS_SHARE: f64 = 0.1;

/// Share of the measurements beside which they may do so before the run as a whole is called disturbed.
const DISTURBED_SHARE: f64 = 0.1;

/// How much of the host other programs used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BusyHost {
    /// Processors that they used, on average over the measurements.
    pub mean: f64,
    /// Processors that they used beside the measurement that they disturbed most.
    pub most: f64,
    /// Processors of the host.
    pub processors: u32,
    /// Measurements of which the use is known.
    pub measurements: usize,
    /// Those beside which they used more than [`OTHERS_SHARE`] of the host.
    pub disturbed: usize,
}

impl BusyHost {
    /// In words, for a reader of the figures.
    #[must_use]
    pub fn words(&self) -> String {
        let Self { mean, most, processors, measurements, disturbed } = self;
        let of = if *measurements == 1 {
            format!("{mean:.1} of the host's {processors} processors while this was measured")
        } else {
            format!(
                "{mean:.1} of the host's {processors} processors on average, {most:.1} at most, and more than a tenth \
                 of them beside {disturbed} of {measurements} measurements"
            )
        };
        format!("Other programs used {of}: the figures show that as well. Measure again on a quiet host.")
    }
}

/// Whether other programs used more of the host than may be left unsaid.
#[must_use]
pub fn is_busy(host: &HostUse) -> bool {
    host.others_percent.is_some_and(|percent| percent >= OTHERS_SHARE * all_percent(host))
}

/// Judges what was measured together; nothing where the host was quiet, or it was not sampled.
#[must_use]
pub fn busy_host<'a>(hosts: impl IntoIterator<Item = &'a HostUse>) -> Option<BusyHost> {
    let known: Vec<(&HostUse, f64)> =
        hosts.into_iter().filter_map(|host| Some((host, host.others_percent? / 100.0))).collect();
    let (last, _) = known.last()?;
    let mean = known.iter().map(|(_, used)| used).sum::<f64>() / known.len() as f64;
    let disturbed = known.iter().filter(|(host, _)| is_busy(host)).count();
    let is_telling = mean * 100.0 >= OTHERS_SHARE * all_percent(last)
        || disturbed as f64 >= DISTURBED_SHARE * known.len() as f64;
    (disturbed > 0 && is_telling).then(|| BusyHost {
        mean,
        most: known.iter().map(|(_, used)| *used).fold(0.0, f64::max),
        processors: last.processors,
        measurements: known.len(),
        disturbed,
    })
}

fn all_percent(host: &HostUse) -> f64 {
    100.0 * f64::from(host.processors.max(1))
}

/// Averages over the measurements of an environment.
#[derive(Debug, Clone, PartialEq)]
pub struct MachineUse {
    /// All processors together, in percent of one.
    pub cpu_percent: f64,
    /// What a hypervisor below it took away, in percent of one processor.
    pub steal_percent: f64,
    /// Each processor, in percent; empty where not every measurement has them.
    pub each_percent: Vec<f64>,
}

/// What the machine of an environment did; nothing where nothing was measured there.
#[must_use]
pub fn machine_use(records: &[PointRecord], environment: &str) -> Option<MachineUse> {
    let of_environment = records.iter().filter(|record| record.environment == environment);
    let hosts: Vec<&HostUse> =
        of_environment.filter_map(|record| record.measured()).map(|measured| &measured.host).collect();
    let processors = hosts.first()?.each_percent.len();
    let average = |value: &dyn Fn(&HostUse) -> f64| {
        hosts.iter().map(|host| value(host)).sum::<f64>() / hosts.len() as f64
    };
    let each = (0..processors).filter(|_| hosts.iter().all(|host| host.each_percent.len() == processors));
    Some(MachineUse {
        cpu_percent: average(&|host| host.cpu_percent),
        steal_percent: average(&|host| host.steal_percent),
        each_percent: each.map(|index| average(&|host| host.each_percent[index])).collect(),
    })
}

#[cfg(test)]
mod tests {
    use virtbench_record::{PointKey, PointStatus};
    use virtbench_samples::host::host_use;

    use super::*;
    use crate::test_support::good;

    /// Measurements beside which others used so much of two processors, so much was taken away, and so many threads wanted to run.
    fn beside(others: f64, steal: f64, runnable: &[f64]) -> Vec<LoadSample> {
        let sample = |runnable: &f64| LoadSample {
            others: Some(others),
            steal,
            runnable: Some(*runnable),
            processors: 2,
        };
        runnable.iter().map(sample).collect()
    }

    fn found(before: &[LoadSample], after: &[LoadSample]) -> Option<Busier> {
        busier([before, after])
    }

    #[test]
    fn a_host_that_was_busier_is_told_with_its_figures() {
        let quiet = beside(0.2, 0.0, &[1.0, 2.0, 1.0]);
        let busy = beside(1.6, 0.0, &[1.0, 2.0, 1.0]);
        let words =
            "the second host was 8 times busier: other programs used 1.6 of its 2 processors, 0.2 before";
        assert_eq!(found(&quiet, &busy).unwrap().words(), words);
        let words =
            "the first host was 8 times busier: other programs used 1.6 of its 2 processors, 0.2 after";
        assert_eq!(found(&busy, &quiet).unwrap().words(), words);
        let taken = found(&quiet, &beside(0.2, 0.5, &[1.0, 2.0])).unwrap();
        assert!(
            taken.words().contains("50 times busier: the hypervisor below it took 0.5"),
            "{}",
            taken.words()
        );
        let never = Busier { load: Load::Steal, before: 0.0, after: 1.9, processors: [2, 2] };
        assert!(never.words().contains("more than 100 times"), "{}", never.words());
    }

    #[test]
    fn a_longer_queue_for_the_processors_counts_though_they_were_full_before() {
        let loads = [[14.0, 15.0, 16.0, 15.0], [29.0, 30.0, 31.0, 30.0]];
        let [before, after] = loads.map(|runnable| beside(1.7, 0.0, &runnable));
        let words = "the second host was 2 times busier: 30.0 threads wanted its 2 processors, 15.0 before";
        assert_eq!(found(&before, &after).unwrap().words(), words);
        // Counted at instants, it varies: that is no difference.
        assert_eq!(found(&beside(1.7, 0.0, &[5.0, 21.0, 9.0]), &beside(1.7, 0.0, &[30.0, 8.0, 22.0])), None);
        // Nobody waits where there are as many processors.
        assert_eq!(found(&beside(0.0, 0.0, &[1.0, 1.0, 1.0]), &beside(0.0, 0.0, &[2.0, 2.0, 2.0])), None);
    }

    #[test]
    fn a_host_that_was_as_busy_or_was_not_sampled_forbids_nothing() {
        assert_eq!(found(&beside(0.5, 0.0, &[2.0]), &beside(0.6, 0.1, &[2.0])), None);
        let mut unknown = beside(0.0, 0.0, &[2.0, 2.0]);
        unknown.iter_mut().for_each(|one| (one.others, one.runnable) = (None, None));
        assert_eq!(found(&unknown, &beside(1.9, 0.0, &[20.0, 20.0])), None);
        assert_eq!(found(&[], &unknown), None);
    }

    fn host(others_percent: Option<f64>) -> HostUse {
        HostUse { others_percent, ..host_use(150.0, 100.0, 50.0) }
    }

    #[test]
    fn two_spinning_programs_are_said_and_a_quiet_host_is_not() {
        assert_eq!(busy_host(&[host(Some(3.0)), host(Some(19.0))]), None);
        assert_eq!(busy_host(&[host(None)]), None, "it was not sampled");
        assert_eq!(busy_host(&[]), None);
        let busy = busy_host(&[host(Some(200.0)), host(Some(100.0)), host(Some(0.0))]).unwrap();
        assert_eq!((busy.mean, busy.most, busy.measurements, busy.disturbed), (1.0, 2.0, 3, 2));
        assert!(busy.words().contains("1.0 of the host's 2 processors on average"), "{}", busy.words());
        let once = busy_host(&[host(Some(50.0))]).unwrap();
        assert!(once.words().starts_with("Other programs used 0.5 of the host's 2 processors while"));
    }

    #[test]
    fn one_disturbed_measurement_among_many_is_not_the_run() {
        let mut hosts = vec![host(Some(0.0)); 20];
        hosts[3] = host(Some(200.0));
        assert_eq!(busy_host(&hosts), None);
        hosts[7] = host(Some(50.0));
        assert_eq!(busy_host(&hosts).map(|busy| busy.disturbed), Some(2));
    }

    #[test]
    fn each_processor_is_averaged_over_the_measurements_of_its_machine() {
        let measured = |environment, repetition, each: &[f64]| {
            let key = PointKey { block_bytes: 4096, read_percent: 100, random_percent: 100 };
            let mut record = good(key, environment, repetition, 100.0, each.iter().sum());
            if let PointStatus::Measured(measured) = &mut record.status {
                measured.host.each_percent = each.to_vec();
                measured.host.steal_percent = 3.0;
            }
            record
        };
        let mut records =
            vec![measured("a", 0, &[10.0, 30.0]), measured("a", 1, &[20.0, 50.0]), measured("b", 0, &[9.0])];
        let used = machine_use(&records, "a").unwrap();
        assert_eq!((used.cpu_percent, used.steal_percent), (55.0, 3.0));
        assert_eq!(used.each_percent, [15.0, 40.0]);
        records.push(measured("a", 2, &[]));
        assert_eq!(machine_use(&records, "a").unwrap().each_percent, [0.0; 0]);
        assert_eq!(machine_use(&records, "c"), None);
    }
}
