//! `virtbench predict`

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use serde::Serialize;
use virtbench_formats::{MAX_PROFILE_BYTES, read_model_runs};
use virtbench_model::predict::{
    Breakdown, ComputeCost, Inputs, Part, PredictError, Rounding, Surface, WhatIf, predict,
};
use virtbench_model::{Prediction, Span, busy_host, compare};
use virtbench_record::{Compute, Costs, ModelRuns, Profile};
use virtbench_report::{PredictionPage, prediction_html};
use virtbench_study::{
    Sides, SidesError, SidesRequest, VerifyInputs, host_difference, platform_costs, run_model_load, verify,
};

use crate::applications::with_progress;
use crate::args::predict::{PredictArgs, VerifyArgs};
use crate::commands::profile;
use crate::exit::{Failure, Kind, Outcome};
use crate::say::print_json;
use crate::text_table::{TextTable, left, right};

/// Seed of every interval: the same inputs always come to the same conclusions.
const SEED: u64 = 2_003;

/// Predicts, and shows how.
pub fn execute(args: &PredictArgs) -> Outcome {
    let profile = profile::read(&args.profile)?;
    let costs = match (&args.costs, &args.platform) {
        (Some(path), _) => Some(profile::read_costs(path)?),
        (None, Some(platform)) => {
            Some(platform_costs(platform).map_err(|why| Failure::message(Kind::Usage, why))?)
        }
        (None, None) => None,
    };
    let runs = match &args.model {
        Some(path) => Some(read_runs(path)?),
        None if args.run_model => Some(run_model(args, &profile, costs.as_ref())?),
        None => None,
    };
    let sides = (!args.surface.is_empty()).then(|| open_sides(args, &profile)).transpose()?;
    let mut prediction = predicted(args, &profile, runs.as_ref(), costs.as_ref(), sides.as_ref())?;
    if let Some(sides) = &sides {
        prediction.cautions.extend(sides.cautions.iter().cloned());
        let alternatives =
            alternatives(args, &profile, runs.as_ref(), costs.as_ref(), sides, prediction.capacity());
        prediction.what_if.extend(alternatives);
        prediction.what_if.sort_by(|a, b| b.capacity.total_cmp(&a.capacity));
    }
    prediction.cautions.extend(costs_cautions(args, &profile, costs.as_ref())?);
    let verified = if args.verify.verify {
        let vcpus = args.vcpus.or(costs.as_ref().map(|costs| costs.vcpus)).unwrap_or(1);
        let options = args.vm.options(vcpus, args.vm.folder()?)?;
        let VerifyArgs { with, disk_from, .. } = &args.verify;
        let inputs = VerifyInputs { with: with.clone(), disk_from: disk_from.as_deref(), runs: 1 };
        let verified = with_progress(|progress| verify(&profile, &options, &inputs, progress))?;
        if let Some([user, system]) = verified.machine_percent {
            prediction.cautions.push(format!(
                "While it ran the VM spent {user:.0} % of one processor in user code and {system:.0} % in its kernel."
            ));
        }
        let hosts = profile.host_use.iter().chain(&verified.host);
        prediction.cautions.extend(busy_host(hosts).map(|busy| busy.words()));
        Some(verified)
    } else {
        None
    };
    let known = runs.as_ref().and_then(|runs| runs.actual_capacity);
    let page = PredictionPage {
        prediction: &prediction,
        profile: &profile,
        from: &args.from,
        to: &args.to,
        actual_capacity: verified.as_ref().map(|verified| verified.capacity).or(known),
    };
    if let Some(path) = &args.html {
        fs::write(path, prediction_html(&page, env!("CARGO_PKG_VERSION")))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let mut out = io::stdout().lock();
    if args.json {
        print_json(&Report::new(&page))?;
    } else {
        write(&mut out, &page)?;
    }
    Ok(())
}

fn open_sides(args: &PredictArgs, profile: &Profile) -> Result<Sides, Failure> {
    let PredictArgs { surface, from, to, allow_other, .. } = args;
    let request = SidesRequest { folders: surface, from, to, allow_other: *allow_other };
    Sides::open(&request, profile).map_err(|error| {
        let kind = if matches!(error, SidesError::Request(_)) { Kind::Usage } else { Kind::Folder };
        Failure::new(kind, error)
    })
}

/// Whether the costs are of the profile's host and of the VM that is asked about.
fn costs_cautions(
    args: &PredictArgs,
    profile: &Profile,
    costs: Option<&Costs>,
) -> Result<Vec<String>, Failure> {
    let Some(costs) = costs else { return Ok(Vec::new()) };
    let mut said = Vec::new();
    let mut of_host = profile.host.as_ref().and_then(|host| host_difference(host, &costs.host));
    if let Some(origin) = &costs.origin {
        let why = of_host.take().map_or_else(String::new, |why| format!("; not that of the profile ({why})"));
        said.push(format!(
            "The costs are those of the platform {} as it was on {}, measured on {}{why}: `virtbench costs` measures them here.",
            origin.platform, origin.measured, costs.host.cpu
        ));
    }
    let of_adapter = args.to.strip_prefix("vm:").filter(|adapter| *adapter != costs.adapter);
    let host = of_host.map(|why| format!("the costs are of another host than the profile ({why})"));
    let adapter = of_adapter.map(|to| format!("the costs are those of {}, not of {to}", costs.adapter));
    for what in host.into_iter().chain(adapter) {
        if !args.allow_other {
            let message = format!("{what}: measure them there, or give --allow-other");
            return Err(Failure::message(Kind::Folder, message));
        }
        said.push(format!("{what}; they are used all the same."));
    }
    if costs.accelerator == "tcg" {
        said.push(
            "The costs are those of TCG, software emulation: this predicts TCG, not virtualization.".into(),
        );
    }
    Ok(said)
}

/// Runs the model load, and writes what came of it.
fn run_model(args: &PredictArgs, profile: &Profile, costs: Option<&Costs>) -> Result<ModelRuns, Failure> {
    let compute = Compute {
        overhead_percent: args.cpu_overhead.map_or(0.0, |overhead| 100.0 * mixed(profile, overhead)),
        time_factor: args.time_factor,
    };
    let vcpus = args.vcpus.or(costs.map(|costs| costs.vcpus)).unwrap_or(1);
    let options = args.vm.options(vcpus, args.vm.folder()?)?;
    let runs = with_progress(|progress| run_model_load(profile, compute, &options, progress))?;
    if let Some(path) = &args.model_out {
        let text =
            toml::to_string(&runs).map_err(|error| Failure::message(Kind::Other, error.to_string()))?;
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(runs)
}

/// The overhead of the application's mix of user code and kernel code; of even parts where that is not known.
fn mixed(profile: &Profile, (user, system): (f64, f64)) -> f64 {
    let known = profile.cpu_user_percent.value().zip(profile.cpu_system_percent.value());
    let (of_user, of_system) = known.filter(|(user, system)| *user + *system > 0.0).unwrap_or((&1.0, &1.0));
    (user * of_user + system * of_system) / (of_user + of_system)
}

fn read_runs(path: &Path) -> Result<ModelRuns, Failure> {
    let bytes = profile::read_bytes(path, MAX_PROFILE_BYTES)?;
    read_model_runs(&bytes)
        .map_err(|error| Failure::message(Kind::Usage, format!("{}: {error}", path.display())))
}

fn predicted(
    args: &PredictArgs,
    profile: &Profile,
    runs: Option<&ModelRuns>,
    costs: Option<&Costs>,
    sides: Option<&Sides>,
) -> Result<Prediction, Failure> {
    let comparison = sides.map(|sides| compare(&sides.records, Sides::REFERENCE, Sides::SUBJECT, SEED));
    let surface = comparison
        .as_ref()
        .zip(sides)
        .map(|(comparison, sides)| Surface { comparison, outstanding: sides.outstanding });
    let compute = args.cpu_overhead.map(|(user_overhead, system_overhead)| ComputeCost {
        user_overhead,
        system_overhead,
        time_factor: args.time_factor,
    });
    let inputs = Inputs {
        profile,
        surface,
        runs,
        costs,
        storages: None,
        compute,
        subject_processors: args.vcpus.or_else(|| sides.and_then(|sides| sides.vcpus)),
        method: args.method.method(),
        rounding: if args.as_published { Rounding::AsPublished } else { Rounding::Exact },
        seed: SEED,
    };
    predict(&inputs).map_err(|error| {
        let kind = if matches!(error, PredictError::EmptySurface) { Kind::Folder } else { Kind::Usage };
        Failure::new(kind, error)
    })
}

/// What the other configurations of the surfaces would give, where that is more.
fn alternatives(
    args: &PredictArgs,
    profile: &Profile,
    runs: Option<&ModelRuns>,
    costs: Option<&Costs>,
    sides: &Sides,
    capacity: f64,
) -> Vec<WhatIf> {
    let others = sides.other_subjects().into_iter().filter_map(|(name, other)| {
        let predicted = predicted(args, profile, runs, costs, Some(&other)).ok()?;
        let found = WhatIf { change: format!("--to vm:{name}"), capacity: predicted.capacity() };
        (found.capacity > capacity * 1.005).then_some(found)
    });
    others.collect()
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    application: &'a str,
    from: &'a str,
    to: &'a str,
    #[serde(flatten)]
    prediction: &'a Prediction,
    capacity: f64,
    /// 95 %.
    interval: Option<Span>,
    actual_capacity: Option<f64>,
    error_percent: Option<f64>,
}

impl<'a> Report<'a> {
    /// Everything that was found.
    pub fn new(page: &PredictionPage<'a>) -> Self {
        Self {
            application: &page.profile.name,
            from: page.from,
            to: page.to,
            prediction: page.prediction,
            capacity: page.prediction.capacity(),
            interval: page.prediction.capacity_interval(),
            actual_capacity: page.actual_capacity,
            error_percent: page.error_percent(),
        }
    }
}

/// Characters of the longest bar.
const WIDTH: f64 = 50.0;

/// Writes it.
fn write(out: &mut impl Write, page: &PredictionPage<'_>) -> io::Result<()> {
    let prediction = page.prediction;
    let takeaway = page.takeaway();
    for sentence in std::iter::once(&takeaway.headline).chain(&takeaway.details) {
        writeln!(out, "{sentence}")?;
    }
    if let Some([reference, subject]) = &prediction.breakdown {
        writeln!(out, "\nWhere the time of one operation goes, in ms")?;
        let longest = reference.total_ms().max(subject.total_ms());
        for (name, breakdown) in [(page.from, reference), (page.to, subject)] {
            bars(out, name, breakdown, longest)?;
        }
    }
    writeln!(out, "\nBottleneck: {}", prediction.bottleneck)?;
    if !prediction.what_if.is_empty() {
        let mut table = TextTable::new(2, &[left(68), right(12), left(0)]);
        for what in &prediction.what_if {
            let change = 100.0 * (what.capacity / prediction.capacity() - 1.0);
            table.row([what.change.clone(), format!("{:.1}", what.capacity), format!("({change:+.1} %)")]);
        }
        writeln!(out, "{table}")?;
    }
    for caution in &takeaway.cautions {
        writeln!(out, "caution: {caution}")?;
    }
    Ok(())
}

fn bars(out: &mut impl Write, name: &str, breakdown: &Breakdown, longest_ms: f64) -> io::Result<()> {
    writeln!(out, "{name}: {:.3}", breakdown.total_ms())?;
    for (part, ms) in &breakdown.0 {
        writeln!(out, "  {:<36}{ms:>10.3}  {}", Part::name(*part), "#".repeat(length(*ms, longest_ms)))?;
    }
    Ok(())
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 to WIDTH
fn length(ms: f64, longest_ms: f64) -> usize {
    (ms / longest_ms.max(1e-12) * WIDTH).round().clamp(0.0, WIDTH) as usize
}
