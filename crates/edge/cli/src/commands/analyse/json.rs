//! An analysis as one JSON object.

use serde::Serialize;
use virtbench_model::pairwise::{Cell, Group, Judged, Metric, Pair, PairPoint, Tally};
use virtbench_model::{Analysis, Estimate};
use virtbench_record::PointKey;
use virtbench_report::Takeaway;

/// What `--json` prints.
#[derive(Serialize)]
pub struct Report<'a> {
    headline: &'a str,
    details: &'a [String],
    cautions: &'a [String],
    margin: f64,
    configurations: &'a [String],
    points: Vec<Point<'a>>,
    pairs: Vec<PairReport<'a>>,
    kinds: Vec<KindReport<'a>>,
}

impl<'a> Report<'a> {
    /// Everything that was found.
    pub fn new(analysis: &'a Analysis, takeaway: &'a Takeaway) -> Self {
        let names = &analysis.measurements.configurations;
        let point = |(key, cells): (&PointKey, &'a Vec<Cell>)| Point {
            point: *key,
            figures: names.iter().zip(cells).map(|(name, cell)| FiguresReport::new(name, cell)).collect(),
        };
        Self {
            headline: &takeaway.headline,
            details: &takeaway.details,
            cautions: &takeaway.cautions,
            margin: analysis.margin.share(),
            configurations: names,
            points: analysis.measurements.points.iter().map(point).collect(),
            pairs: analysis.pairs.iter().map(|pair| PairReport::new(analysis, pair)).collect(),
            kinds: analysis.groups.iter().map(|group| KindReport::new(analysis, group)).collect(),
        }
    }
}

#[derive(Serialize)]
struct Point<'a> {
    #[serde(flatten)]
    point: PointKey,
    figures: Vec<FiguresReport<'a>>,
}

#[derive(Serialize)]
struct FiguresReport<'a> {
    configuration: &'a str,
    repetitions: usize,
    iops: Option<f64>,
    bytes_per_second: Option<f64>,
    latency_mean_ns: Option<f64>,
    cpu_percent: Option<f64>,
    iops_per_cpu_percent: Option<f64>,
    kb_per_second_per_cpu_percent: Option<f64>,
}

impl<'a> FiguresReport<'a> {
    fn new(configuration: &'a str, cell: &Cell) -> Self {
        let side = &cell.side;
        let mean = |estimate: Option<Estimate>| estimate.map(|estimate| estimate.mean);
        Self {
            configuration,
            repetitions: side.repetitions,
            iops: mean(side.iops),
            bytes_per_second: mean(side.throughput),
            latency_mean_ns: side.latency_ns,
            cpu_percent: mean(side.cpu_percent),
            iops_per_cpu_percent: side.iops_per_cpu_percent(),
            kb_per_second_per_cpu_percent: side.bytes_per_second_per_cpu_percent().map(|bytes| bytes / 1e3),
        }
    }
}

#[derive(Serialize)]
struct PairReport<'a> {
    first: &'a str,
    second: &'a str,
    throughput: TallyReport,
    efficiency: TallyReport,
    response_time: TallyReport,
    points: Vec<Verdicts>,
}

impl<'a> PairReport<'a> {
    fn new(analysis: &'a Analysis, pair: &Pair) -> Self {
        let tally = |metric| TallyReport::from(pair.tally(metric));
        Self {
            first: analysis.name(pair.first),
            second: analysis.name(pair.second),
            throughput: tally(Metric::Rate),
            efficiency: tally(Metric::Efficiency),
            response_time: tally(Metric::ResponseTime),
            points: pair.points.iter().map(Verdicts::from).collect(),
        }
    }
}

#[derive(Serialize)]
struct TallyReport {
    equivalent: usize,
    higher: usize,
    lower: usize,
    undecided: usize,
    without_spread: usize,
}

impl From<Tally> for TallyReport {
    fn from(tally: Tally) -> Self {
        let Tally { higher, lower, equivalent, undecided, without_spread } = tally;
        Self { equivalent, higher, lower, undecided, without_spread }
    }
}

#[derive(Serialize)]
struct Verdicts {
    #[serde(flatten)]
    point: PointKey,
    throughput: Option<VerdictReport>,
    efficiency: Option<VerdictReport>,
    response_time: Option<VerdictReport>,
}

impl From<&PairPoint> for Verdicts {
    fn from(point: &PairPoint) -> Self {
        let of = |metric| point.judged(metric).map(VerdictReport::from);
        Self {
            point: point.key,
            throughput: of(Metric::Rate),
            efficiency: of(Metric::Efficiency),
            response_time: of(Metric::ResponseTime),
        }
    }
}

/// Of the first to the second; the interval is one of 90 %.
#[derive(Serialize)]
struct VerdictReport {
    verdict: &'static str,
    ratio: f64,
    interval: Option<[f64; 2]>,
    pairs: usize,
}

impl From<&Judged> for VerdictReport {
    fn from(judged: &Judged) -> Self {
        Self {
            verdict: judged.finding.name(),
            ratio: judged.ratio.value,
            interval: judged.ratio.interval.map(|span| [span.low, span.high]),
            pairs: judged.ratio.pairs,
        }
    }
}

#[derive(Serialize)]
struct KindReport<'a> {
    read_percent: u8,
    random_percent: u8,
    small: bool,
    points: usize,
    choices: Vec<&'a str>,
    standings: Vec<StandingReport<'a>>,
}

#[derive(Serialize)]
struct StandingReport<'a> {
    configuration: &'a str,
    bytes_per_second: f64,
    iops_per_cpu_percent: Option<f64>,
    against_best: Option<VerdictReport>,
}

impl<'a> KindReport<'a> {
    fn new(analysis: &'a Analysis, group: &Group) -> Self {
        let standings = group.standings.iter().map(|standing| StandingReport {
            configuration: analysis.name(standing.configuration),
            bytes_per_second: standing.bytes_per_second,
            iops_per_cpu_percent: standing.iops_per_cpu_percent,
            against_best: standing.against_best.as_ref().map(VerdictReport::from),
        });
        Self {
            read_percent: group.kind.read_percent,
            random_percent: group.kind.random_percent,
            small: group.small,
            points: group.points.len(),
            choices: analysis
                .advice(group)
                .choices()
                .iter()
                .map(|one| analysis.name(one.configuration))
                .collect(),
            standings: standings.collect(),
        }
    }
}
