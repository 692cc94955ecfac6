//! `virtbench saturate`

use std::io::{self, Write};

use serde::Serialize;
use virtbench_engine::Target;
use virtbench_model::saturation::RunResult;
use virtbench_model::{Probe, Saturation, SaturationRules, Slo};
use virtbench_record::{LoadOutcome, TargetFacts};
use virtbench_study::{Load, SaturationRun, SearchError, saturate};
use virtbench_workload::LoadSpec;

use super::load;
use crate::args::shape::{ArrivalsArg, SaturateArgs};
use crate::exit::{Failure, Kind, Outcome};
use crate::say::{print_json, tell};
use crate::text_table::{TextTable, log_chart, right};
use crate::{interrupt, progress};

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
    let bar = progress::counted(rules.most_runs() as usize, "searching");
    let mut announce = |run: &SaturationRun<'_>| progress::step(&bar, in_words(run));
    let found = saturate(&mut Searched(&target), &spec, rules, interrupt::flag(), &mut announce);
    bar.finish_and_clear();
    let found = found.map_err(failure)?;
    let mut out = std::io::stdout().lock();
    if args.load.json {
        let report = Report {
            found: &found,
            slo: rules.slo,
            knee_criterion: "greatest power: throughput over mean latency (Kleinrock 1979)",
            target: target.facts(),
            spec: &spec,
        };
        print_json(&report)?;
    } else {
        write(&mut out, &found, &rules)?;
    }
    Ok(())
}

/// A run of the search in a line.
fn in_words(run: &SaturationRun<'_>) -> String {
    let asked = match run.probe {
        Probe::Closed => "closed loop".to_owned(),
        Probe::Offered { per_second } => format!("{per_second:.0}/s offered"),
    };
    let total = &run.outcome.total;
    let latency = total.latency_ns.map_or_else(|| "-".into(), |latency| time(latency.mean));
    format!("run {}: {asked}, {:.0}/s done, mean latency {latency}", run.number, total.iops)
}

/// What `--json` prints. Rates are in operations per second, latencies in nanoseconds from the
/// intended start.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    found: &'a Saturation,
    slo: Option<Slo>,
    knee_criterion: &'static str,
    target: &'a TargetFacts,
    spec: &'a LoadSpec,
}

/// Shares of saturation at which other experiments run, in percent ([VirtualFence 2013], section 4.3).
const QUOTED_PERCENT: [f64; 4] = [25.0, 50.0, 75.0, 90.0];

/// A time in nanoseconds, for people.
fn time(ns: f64) -> String {
    match ns {
        ns if ns >= 1e9 => format!("{:.2} s", ns / 1e9),
        ns if ns >= 1e6 => format!("{:.2} ms", ns / 1e6),
        ns => format!("{:.1} us", ns / 1e3),
    }
}

/// Writes the curve as a table and as a chart, and what follows from it.
fn write(out: &mut impl Write, found: &Saturation, rules: &SaturationRules) -> io::Result<()> {
    let closed = found.closed_loop.iter().sum::<f64>() / found.closed_loop.len().max(1) as f64;
    if found.rate <= 0.0 {
        let level = rules.slo.map_or_else(String::new, |slo| {
            format!(" with {} below {}", slo.figure.name(), time(slo.limit_ns as f64))
        });
        writeln!(out, "no rate was kept up with{level}; a closed loop did {closed:.0} operations a second")?;
        return Ok(());
    }
    let widths = [right(10), right(14), right(14), right(16), right(24), right(16)];
    let mut table = TextTable::new(0, &widths);
    table.row(["share", "offered/s", "done/s", "mean latency", "of single runs", "p99 latency"]);
    let cell = |value: Option<f64>, text: fn(f64) -> String| value.map_or_else(|| "-".into(), text);
    for point in &found.curve {
        table.row([
            format!("{:.1} %", 100.0 * point.offered / found.rate),
            format!("{:.0}", point.offered),
            cell(point.achieved.map(|e| e.mean), |rate| format!("{rate:.0}")),
            cell(point.mean_ns.map(|e| e.mean), time),
            spread(&point.runs),
            cell(point.p99_ns.map(|e| e.mean), time),
        ]);
    }
    writeln!(out, "{table}")?;
    let series = |of: fn(&virtbench_model::saturation::CurvePoint) -> Option<f64>| {
        found.curve.iter().filter_map(|point| Some((point.achieved?.mean, of(point)?))).collect()
    };
    let marks = [('m', series(|p| p.mean_ns.map(|e| e.mean))), ('p', series(|p| p.p99_ns.map(|e| e.mean)))];
    writeln!(
        out,
        "\nlatency: m mean, p 99th percentile\n{}",
        log_chart(&marks, "operations a second", time)
    )?;
    conclusions(out, found, rules, closed)
}

/// The lowest and the highest mean latency of a point's runs: what a curve that goes down again on a
/// restless machine must be read with.
fn spread(runs: &[RunResult]) -> String {
    let means = || runs.iter().filter_map(|run| run.mean_ns);
    match (means().min_by(f64::total_cmp), means().max_by(f64::total_cmp)) {
        (Some(low), Some(high)) if runs.len() > 1 => format!("{} to {}", time(low), time(high)),
        _ => "-".into(),
    }
}

fn conclusions(
    out: &mut impl Write,
    found: &Saturation,
    rules: &SaturationRules,
    closed: f64,
) -> io::Result<()> {
    writeln!(out, "saturation  {:.0} operations a second; {:.0} in a closed loop", found.rate, closed)?;
    if let Some(slo) = rules.slo {
        writeln!(out, "            with {} below {}", slo.figure.name(), time(slo.limit_ns as f64))?;
    }
    if let Some(knee) = found.knee {
        writeln!(
            out,
            "knee        {:.0} ({:.0} % of saturation), mean latency {}: the most throughput for its latency",
            knee.rate,
            100.0 * knee.rate / found.rate,
            time(knee.mean_ns)
        )?;
    }
    for share in QUOTED_PERCENT {
        let Some(point) =
            found.curve.iter().find(|point| (100.0 * point.offered / found.rate - share).abs() < 0.01)
        else {
            continue;
        };
        let (Some(mean), Some(p99)) = (point.mean_ns, point.p99_ns) else { continue };
        writeln!(
            out,
            "{share:>3.0} % load  {:.0} operations a second, mean latency {}, p99 {}",
            point.offered,
            time(mean.mean),
            time(p99.mean)
        )?;
    }
    if !found.resolved {
        writeln!(
            out,
            "note: the bounds {:.0} to {:.0} are not as close as asked: the target is restless",
            found.bounds.low, found.bounds.high
        )?;
    }
    Ok(())
}
