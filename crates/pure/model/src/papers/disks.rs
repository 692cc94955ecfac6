//! Conclusions on disks and their adapters: [ESX Disk 2003] and [ESX Adapters 2006].

use std::collections::BTreeMap;

use virtbench_record::{ClaimFinding, ClaimVerdict, GridPlan, Plan, PointKey};

use super::claim::{Claim, Judged, PaperRun, each_run, platform_of};
use crate::interval::{CONFIDENCE, geometric_mean, median};
use crate::operations::growth;
use crate::pairwise::{Analysis, Cell, Margin, Measurements, Metric, analyse};
use crate::predict::trials::{by_case, mean_absolute_error_percent};
use crate::ratio::Ratio;
use crate::surface::{Comparison, compare};

pub(super) const ESX_DISK: &str = "[ESX Disk 2003]";

pub(super) const ESX_ADAPTERS: &str = "[ESX Adapters 2006]";

pub(super) const NATIVE_VS_VM: &str = "study native-vs-vm";

pub(super) const ADAPTERS: &str = "study adapters";

/// The least average ratio that counts as close to native; the paper's machines lie between 0.92 and 1.08.
const CLOSE_TO_NATIVE: f64 = 0.9;

/// The least correlation of ranks with which two surfaces are of one shape.
const ONE_SHAPE: f64 = 0.8;

/// The paper's worst prediction, of a mail server on another machine, in percent.
const WORST_PREDICTION_PERCENT: f64 = 8.6;

/// How far two adapters may differ and be equivalent, as a share.
const EQUIVALENT: f64 = 0.05;

/// How many times random throughput sequential has to be, at least.
const SUBSTANTIALLY: f64 = 2.0;

/// The cost of a byte falls at least with this power of the block's size; by inverse proportion it is -1.
const FALLING_COST: f64 = -0.5;

pub(super) const CLAIMS: [Claim; 10] = [
    Claim {
        id: "close-to-native",
        paper: ESX_DISK,
        place: "section 3.5, Figure 8",
        words: "A VM's disk throughput is close to native on average.",
        published: "0.95, 1.08 and 0.92 of native on three machines (0.6 to 1.5)",
        rule: "the average ratio over all points, as the paper takes it, is at least 0.9",
        differs: "The paper's disks needed milliseconds for an I/O, so that the path to them hardly counted. Here one takes microseconds, \
                  and no hardware executes the guest's kernel.",
        study: NATIVE_VS_VM,
        judge: |runs| each_side(runs, close_to_native),
    },
    Claim {
        id: "one-shape",
        paper: ESX_DISK,
        place: "section 3.5, Figures 2 to 7",
        words: "The VM's throughput surface has the shape of the native one.",
        published: "said of pictures",
        rule: "throughput of the points, native and in the VM, has a correlation of ranks of at least 0.8",
        differs: "Where the path costs more than the disk, the number of I/Os shapes the surface and not the disk.",
        study: NATIVE_VS_VM,
        judge: |runs| each_side(runs, one_shape),
    },
    Claim {
        id: "loss-falls-with-size",
        paper: ESX_DISK,
        place: "sections 2 and 3.5",
        words: "Each I/O pays for the path through the hypervisor, so that the loss falls with the size of blocks.",
        published: "ratios between 0.6 and 1.5, drawn without their sizes",
        rule: "the largest blocks' ratio is above the smallest ones', by 95 % intervals over the kinds of access",
        differs: "A disk that is fast enough keeps the path busy with large blocks too.",
        study: NATIVE_VS_VM,
        judge: |runs| each_side(runs, loss_falls_with_size),
    },
    Claim {
        id: "random-reads-lose-least",
        paper: ESX_DISK,
        place: "section 3.5",
        words: "Random reads wait for the disk longest, and lose least.",
        published: "drawn without the kinds of access",
        rule: "the mean ratio of random reads is above those of random writes and of both sequential kinds",
        differs: "A disk without heads answers random reads as fast as any other.",
        study: NATIVE_VS_VM,
        judge: |runs| each_side(runs, random_reads_lose_least),
    },
    Claim {
        id: "prediction",
        paper: ESX_DISK,
        place: "sections 4 and 5, Tables 2, 4 and 5",
        words: "Microbenchmarks predict how an application does in a VM.",
        published: "off by 1 to 7 % (file server), 4.6 and 8.6 % (mail server)",
        rule: "single predictions are off by at most 8.6 % on average",
        differs: "The paper's user code ran on the processor itself, and its applications waited for disks.",
        study: "study predictions",
        judge: |runs| each_run(runs, predictions),
    },
    Claim {
        id: "equivalent-adapters",
        paper: ESX_ADAPTERS,
        place: "Executive summary, Tables 2 and 3",
        words: "The adapters are equivalent in throughput.",
        published: "BusLogic and LSI Logic within 0.5 % at half of the points",
        rule: "of any two adapters half of the points differ by at most 5 %",
        differs: "The paper compares two drivers of one kind over one path. These adapters also differ in what the guest has to do for an I/O.",
        study: ADAPTERS,
        judge: |runs| adapters(runs, equivalent_adapters),
    },
    Claim {
        id: "adapters-differ-in-cost",
        paper: ESX_ADAPTERS,
        place: "Driver Performance, Tables 2 to 5",
        words: "Adapters differ more in the processor time that an I/O costs than in throughput.",
        published: "median difference 3.3 % in I/O per percent CPU, 0.4 % in throughput",
        rule: "over all pairs of adapters and points the median difference in I/O per percent CPU is the greater one",
        differs: "Where the processor is the limit, throughput is what an I/O costs.",
        study: ADAPTERS,
        judge: |runs| adapters(runs, adapters_differ_in_cost),
    },
    Claim {
        id: "cost-falls-with-size",
        paper: ESX_ADAPTERS,
        place: "CPU Efficiency, Figures 8 and 9",
        words: "The processor time that a byte costs falls with the size of blocks, by about inverse proportion.",
        published: "drawn",
        rule: "a byte's cost falls with at least the power -0.5 of the block's size, fitted over all adapters and kinds of access",
        differs: "Emulation copies each byte by translated code.",
        study: ADAPTERS,
        judge: |runs| adapters(runs, cost_falls_with_size),
    },
    Claim {
        id: "sequential-above-random",
        paper: ESX_ADAPTERS,
        place: "Conclusion, Figures 2 and 3",
        words: "Sequential throughput is substantially higher than random.",
        published: "7.6 times on average",
        rule: "on average it is at least twice as high",
        differs: "The paper's disks had heads to move.",
        study: ADAPTERS,
        judge: |runs| adapters(runs, sequential_above_random),
    },
    Claim {
        id: "response-rises-with-size",
        paper: ESX_ADAPTERS,
        place: "Driver Performance, Figures 4 and 5",
        words: "Response time rises with the size of blocks.",
        published: "at all points but sequential reads of 4 KB",
        rule: "the largest blocks' response time is above the smallest ones' in nine of ten kinds of access and adapters",
        differs: "Where each I/O costs much, its size hardly counts.",
        study: ADAPTERS,
        judge: |runs| adapters(runs, response_rises_with_size),
    },
];

/// A rule for each VM of each run of a disk natively and in VMs.
fn each_side(runs: &[PaperRun<'_>], rule: fn(&Comparison) -> Judged) -> Vec<ClaimFinding> {
    let of = |(platform, found): (String, Comparison)| {
        rule(&found).map(|(figures, verdict)| ClaimFinding { platform, figures, verdict })
    };
    runs.iter().flat_map(sides_of).filter_map(of).collect()
}

/// Each VM of a run of a disk natively and in VMs, by its platform, beside native.
pub(super) fn sides_of(run: &PaperRun<'_>) -> Vec<(String, Comparison)> {
    let Plan::NativeVsVm(GridPlan { environments, seed, .. }) = &run.provenance.plan else {
        return Vec::new();
    };
    let Some((reference, subjects)) = environments.split_first() else { return Vec::new() };
    let of = |subject: &String| {
        let found = compare(run.records.points(), reference, subject, *seed);
        (platform_of(run.provenance, subject), found)
    };
    subjects.iter().map(of).collect()
}

/// Ratios over all points: their average, as the paper takes it, the least and the most.
pub(super) fn ratios_of(found: &Comparison) -> Option<[f64; 3]> {
    let ratios: Vec<f64> = found.curve.iter().map(|point| point.ratio.value).collect();
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    Some([mean, *ratios.first()?, *ratios.last()?])
}

fn close_to_native(found: &Comparison) -> Judged {
    let [mean, least, most] = ratios_of(found)?;
    let figures = format!("{mean:.2} of native ({least:.2} to {most:.2}, {} points)", found.curve.len());
    Some((figures, ClaimVerdict::of(mean >= CLOSE_TO_NATIVE)))
}

fn one_shape(found: &Comparison) -> Judged {
    let of = |point: &crate::surface::ComparedPoint| {
        Some((point.reference.throughput?.mean, point.subject.throughput?.mean))
    };
    let (native, vm): (Vec<f64>, Vec<f64>) = found.points.iter().filter_map(of).unzip();
    let correlation = rank_correlation(&native, &vm)?;
    Some((format!("correlation of ranks {correlation:.2}"), ClaimVerdict::of(correlation >= ONE_SHAPE)))
}

fn loss_falls_with_size(found: &Comparison) -> Judged {
    let ratios: BTreeMap<PointKey, f64> =
        found.curve.iter().map(|point| (point.key, point.ratio.value)).collect();
    let smallest = ratios.keys().map(|key| key.block_bytes).min()?;
    let largest = ratios.keys().map(|key| key.block_bytes).max()?;
    let of = |size: u64| -> Vec<f64> {
        ratios.iter().filter(|(key, _)| key.block_bytes == size).map(|(_, ratio)| *ratio).collect()
    };
    let gains: Vec<f64> = ratios
        .iter()
        .filter(|(key, _)| key.block_bytes == smallest)
        .filter_map(|(key, below)| Some(ratios.get(&PointKey { block_bytes: largest, ..*key })? / below))
        .collect();
    if smallest == largest {
        return None;
    }
    let gain = Ratio::average(&gains, CONFIDENCE, 0)?;
    let figures = format!(
        "{:.2} of native at {}, {:.2} at {}",
        geometric_mean(&of(smallest)),
        virtbench_units::format_bytes(smallest),
        geometric_mean(&of(largest)),
        virtbench_units::format_bytes(largest)
    );
    let verdict = match gain.excludes_one() {
        Some(true) => ClaimVerdict::of(gain.value > 1.0),
        _ => ClaimVerdict::Open,
    };
    Some((figures, verdict))
}

fn random_reads_lose_least(found: &Comparison) -> Judged {
    let mean = |read: u8, random: u8| {
        let of_kind = |key: &PointKey| key.read_percent == read && key.random_percent == random;
        let ratios: Vec<f64> =
            found.curve.iter().filter(|point| of_kind(&point.key)).map(|point| point.ratio.value).collect();
        (!ratios.is_empty()).then(|| geometric_mean(&ratios))
    };
    let random_reads = mean(100, 100)?;
    let others = [
        ("random writes", mean(0, 100)?),
        ("sequential reads", mean(100, 0)?),
        ("sequential writes", mean(0, 0)?),
    ];
    let figures = others.map(|(name, ratio)| format!("{name} {ratio:.2}")).join(", ");
    let holds = others.iter().all(|(_, ratio)| random_reads > *ratio);
    Some((format!("random reads {random_reads:.2}, {figures}"), ClaimVerdict::of(holds)))
}

/// Spearman's coefficient. Nothing from fewer than three pairs, or where one side does not vary.
fn rank_correlation(first: &[f64], second: &[f64]) -> Option<f64> {
    let (first, second) = (ranks(first), ranks(second));
    let mean = (first.len() as f64 + 1.0) / 2.0;
    let product =
        |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum() };
    let spread = (product(&first, &first) * product(&second, &second)).sqrt();
    (first.len() >= 3 && spread > 0.0).then(|| product(&first, &second) / spread)
}

/// The rank of each value from one on, the mean of ranks among equals.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count() as f64;
        let equal = values.iter().filter(|other| *other == value).count() as f64;
        below + (equal + 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

fn predictions(run: &PaperRun<'_>) -> Judged {
    let trials = run.records.trials();
    let cases = by_case(trials).len();
    let error = mean_absolute_error_percent(trials);
    let figures = format!("off by {error:.1} % on average ({} trials of {cases} programs)", trials.len());
    (cases > 0).then(|| (figures, ClaimVerdict::of(error <= WORST_PREDICTION_PERCENT)))
}

/// A rule for each run that compares adapters.
fn adapters(runs: &[PaperRun<'_>], rule: fn(&Analysis) -> Judged) -> Vec<ClaimFinding> {
    each_run(runs, |run| rule(&adapters_of(run)?))
}

/// The analysis of a run that compares adapters.
pub(super) fn adapters_of(run: &PaperRun<'_>) -> Option<Analysis> {
    let Plan::Adapters(GridPlan { environments, seed, .. }) = &run.provenance.plan else { return None };
    let measurements = Measurements::from_records(run.records.points(), environments, *seed);
    Some(analyse(measurements, Margin::default(), *seed))
}

/// How far the two of each pair differ at each point, as shares, and the pair's names.
fn differences(analysis: &Analysis, metric: Metric) -> Vec<(String, Vec<f64>)> {
    let of_pair = |pair: &crate::pairwise::Pair| {
        let judged = pair.points.iter().filter_map(|point| point.judged(metric));
        let apart = judged.map(|judged| judged.ratio.value.ln().abs().exp_m1()).collect();
        (format!("{} and {}", analysis.name(pair.first), analysis.name(pair.second)), apart)
    };
    analysis.pairs.iter().map(of_pair).collect()
}

fn equivalent_adapters(analysis: &Analysis) -> Judged {
    let medians = differences(analysis, Metric::Rate)
        .into_iter()
        .filter_map(|(names, apart)| Some((names, median(apart.into_iter())?)));
    let (names, most) = medians.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let figures = format!("{names} differ most: half of the points by {:.1} % or less", most * 100.0);
    Some((figures, ClaimVerdict::of(most <= EQUIVALENT)))
}

fn adapters_differ_in_cost(analysis: &Analysis) -> Judged {
    let of = |metric: Metric| {
        median(differences(analysis, metric).into_iter().flat_map(|(_, apart)| apart))
            .map(|share| share * 100.0)
    };
    let (rate, cost) = (of(Metric::Rate)?, of(Metric::Efficiency)?);
    let figures = format!("median difference {cost:.1} % in I/O per percent CPU, {rate:.1} % in throughput");
    Some((figures, ClaimVerdict::of(cost > rate)))
}

/// Figures of one adapter by kind of access, then by size of blocks.
type BySize = BTreeMap<(usize, u8, u8), BTreeMap<u64, f64>>;

fn by_size(analysis: &Analysis, figure: fn(&Cell) -> Option<f64>) -> BySize {
    let mut found = BySize::new();
    for (key, cells) in &analysis.measurements.points {
        for (adapter, cell) in cells.iter().enumerate() {
            if let Some(value) = figure(cell) {
                let kind = (adapter, key.read_percent, key.random_percent);
                found.entry(kind).or_default().insert(key.block_bytes, value);
            }
        }
    }
    found
}

fn cost_falls_with_size(analysis: &Analysis) -> Judged {
    let costs = by_size(analysis, |cell| {
        let side = &cell.side;
        side.bytes_per_second_per_cpu_percent()
            .filter(|efficiency| *efficiency > 0.0)
            .map(|efficiency| 1.0 / efficiency)
    });
    let power = |costs: &BTreeMap<u64, f64>| {
        let points: Vec<(f64, f64)> = costs.iter().map(|(size, cost)| (*size as f64, *cost)).collect();
        Some(growth(&points)?.exponent)
    };
    let power = median(costs.values().filter_map(power))?;
    Some((format!("with the power {power:.2} of the size"), ClaimVerdict::of(power <= FALLING_COST)))
}

fn sequential_above_random(analysis: &Analysis) -> Judged {
    let rates = by_size(analysis, |cell| Some(cell.side.throughput?.mean).filter(|rate| *rate > 0.0));
    let mut ratios = Vec::new();
    for ((adapter, read, _), random) in rates.iter().filter(|((.., random), _)| *random == 100) {
        let Some(sequential) = rates.get(&(*adapter, *read, 0)) else { continue };
        ratios.extend(random.iter().filter_map(|(size, rate)| Some(sequential.get(size)? / rate)));
    }
    if ratios.is_empty() {
        return None;
    }
    let mean = geometric_mean(&ratios);
    Some((format!("{mean:.1} times on average"), ClaimVerdict::of(mean >= SUBSTANTIALLY)))
}

fn response_rises_with_size(analysis: &Analysis) -> Judged {
    let times = by_size(analysis, |cell| cell.side.latency_ns);
    let ends = times
        .values()
        .filter(|times| times.len() > 1)
        .filter_map(|times| Some((*times.first_key_value()?.1, *times.last_key_value()?.1)));
    let (rising, all) = ends.fold((0, 0), |(rising, all), (smallest, largest)| {
        (rising + usize::from(largest > smallest), all + 1)
    });
    (all > 0).then(|| (format!("in {rising} of {all}"), ClaimVerdict::of(rising * 10 >= all * 9)))
}

#[cfg(test)]
#[path = "disks_tests.rs"]
pub(super) mod disks_tests;
