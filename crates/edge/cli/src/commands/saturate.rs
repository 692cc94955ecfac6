//! `virtbench saturate`

mod table;

use serde::Serialize;
use virtbench_engine::Target;
use virtbench_model::{Probe, Saturation, SaturationRules, Slo};
use virtbench_record::{LoadOutcome, TargetFacts};
use virtbench_study::{Load, SaturationRun, SearchError, saturate};
use virtbench_workload::LoadSpec;

use super::load;
use crate::args::saturate::{ArrivalsArg, SaturateArgs};
use crate::exit::{Failure, Kind, Outcome};
use crate::say::{print_json, tell};
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
        table::write(&mut out, &found, &rules)?;
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
    let latency = total.latency_ns.map_or_else(|| "-".into(), |latency| table::time(latency.mean));
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
