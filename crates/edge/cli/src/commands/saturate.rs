//! `virtbench saturate`

mod table;

use std::io::Write;

use serde::Serialize;
use virtbench_engine::Target;
use virtbench_model::saturation::CurvePoint;
use virtbench_model::{Probe, Saturation, SaturationRules, Verdict};
use virtbench_record::{LoadOutcome, TargetFacts};
use virtbench_study::{Load, SaturationRun, SearchError, saturate};
use virtbench_workload::LoadSpec;

use super::load;
use crate::args::saturate::{ArrivalsArg, SaturateArgs};
use crate::exit::{Failure, Kind, Outcome};
use crate::interrupt;
use crate::say::tell;

/// A target as a search sees it.
pub(super) struct Searched<'a>(pub &'a Target);

impl Load for Searched<'_> {
    type Error = Failure;

    fn apply(&mut self, spec: &LoadSpec) -> Result<LoadOutcome, Failure> {
        load::measure(spec, self.0).map(|(outcome, _)| outcome)
    }
}

/// The failure with which a search ends.
pub(super) fn failure(error: SearchError<Failure>) -> Failure {
    match error {
        SearchError::Load(failure) => failure,
        SearchError::Stopped => interrupt::failure("the search was not over, and half of one says nothing"),
        error @ (SearchError::Operations { .. } | SearchError::TooFast { .. }) => {
            Failure::message(Kind::Measured, error.to_string())
        }
        error @ SearchError::NotPaced { .. } => Failure::message(Kind::Other, error.to_string()),
    }
}

/// Searches and prints what was found.
pub fn execute(args: &SaturateArgs) -> Outcome {
    let (target, spec) = load::prepare(&args.load)?;
    let rules = SaturationRules {
        slo: args.search.slo,
        poisson: args.search.curve_arrivals == ArrivalsArg::Poisson,
        points: args.search.points,
        repetitions: args.search.curve_repeat,
        ..SaturationRules::new(spec.time_ns as f64 / 1e9)
    };
    tell!("at most {} runs of {:.1} s", rules.most_runs(), (spec.ramp_ns + spec.time_ns) as f64 / 1e9);
    let found =
        saturate(&mut Searched(&target), &spec, rules, interrupt::flag(), &mut announce).map_err(failure)?;
    let mut out = std::io::stdout().lock();
    if args.load.json {
        virtbench_formats::json::write(&mut out, &Report::new(&found, &rules, &spec, &target))?;
        writeln!(out)?;
    } else {
        table::write(&mut out, &found, &rules)?;
    }
    Ok(())
}

fn announce(run: &SaturationRun<'_>) {
    let asked = match run.probe {
        Probe::Closed => "closed loop".to_owned(),
        Probe::Offered { per_second } => format!("{per_second:.0}/s offered"),
    };
    let total = &run.outcome.total;
    let latency = total.latency_ns.map_or_else(|| "-".into(), |latency| table::time(latency.mean));
    tell!("run {}: {asked}, {:.0}/s done, mean latency {latency}", run.number, total.iops);
}

/// What `--json` prints. Rates are in operations per second, latencies in nanoseconds from the
/// intended start.
#[derive(Serialize)]
struct Report<'a> {
    rate: f64,
    resolved: bool,
    highest_kept_up: f64,
    lowest_too_high: Option<f64>,
    closed_loop: &'a [f64],
    slo: Option<SloReport>,
    knee: Option<KneeReport>,
    curve: Vec<PointReport>,
    tried: Vec<PointReport>,
    target: &'a TargetFacts,
    spec: &'a LoadSpec,
}

#[derive(Serialize)]
struct SloReport {
    figure: &'static str,
    limit_ns: u64,
}

#[derive(Serialize)]
struct KneeReport {
    rate: f64,
    share_percent: f64,
    mean_latency_ns: f64,
    criterion: &'static str,
}

#[derive(Serialize)]
struct PointReport {
    share_percent: Option<f64>,
    offered: f64,
    achieved: Option<f64>,
    mean_latency_ns: Option<f64>,
    p99_latency_ns: Option<f64>,
    verdict: Option<&'static str>,
    runs: Vec<RunReport>,
}

#[derive(Serialize)]
struct RunReport {
    achieved: f64,
    mean_latency_ns: Option<f64>,
    p99_latency_ns: Option<f64>,
}

impl PointReport {
    fn new(point: &CurvePoint, saturation: f64, verdict: Option<Verdict>) -> Self {
        Self {
            share_percent: (saturation > 0.0).then(|| 100.0 * point.offered / saturation),
            offered: point.offered,
            achieved: point.achieved.map(|estimate| estimate.mean),
            mean_latency_ns: point.mean_ns.map(|estimate| estimate.mean),
            p99_latency_ns: point.p99_ns.map(|estimate| estimate.mean),
            verdict: verdict.map(|verdict| match verdict {
                Verdict::KeptUp => "kept_up",
                Verdict::FellShort => "fell_short",
                Verdict::TooSlow => "too_slow",
            }),
            runs: point
                .runs
                .iter()
                .map(|run| RunReport {
                    achieved: run.achieved,
                    mean_latency_ns: run.mean_ns,
                    p99_latency_ns: run.p99_ns,
                })
                .collect(),
        }
    }
}

impl<'a> Report<'a> {
    fn new(found: &'a Saturation, rules: &SaturationRules, spec: &'a LoadSpec, target: &'a Target) -> Self {
        Self {
            rate: found.rate,
            resolved: found.resolved,
            highest_kept_up: found.bounds.low,
            lowest_too_high: Some(found.bounds.high).filter(|high| high.is_finite()),
            closed_loop: &found.closed_loop,
            slo: rules.slo.map(|slo| SloReport { figure: slo.figure.name(), limit_ns: slo.limit_ns }),
            knee: found.knee.map(|knee| KneeReport {
                rate: knee.rate,
                share_percent: 100.0 * knee.rate / found.rate,
                mean_latency_ns: knee.mean_ns,
                criterion: "greatest power: throughput over mean latency (Kleinrock 1979)",
            }),
            curve: found.curve.iter().map(|point| PointReport::new(point, found.rate, None)).collect(),
            tried: found
                .tried
                .iter()
                .map(|(point, verdict)| PointReport::new(point, found.rate, Some(*verdict)))
                .collect(),
            target: target.facts(),
            spec,
        }
    }
}
