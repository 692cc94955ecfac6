//! `virtbench predict`

mod json;
mod sides;
mod text;

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use virtbench_formats::{MAX_PROFILE_BYTES, read_model_runs};
use virtbench_model::predict::{ComputeCost, Inputs, PredictError, Rounding, Surface, WhatIf, predict};
use virtbench_model::{Prediction, compare};
use virtbench_record::{ModelRuns, Profile};
use virtbench_report::{PredictionPage, prediction_html};

use crate::args::predict::PredictArgs;
use crate::commands::profile;
use crate::exit::{Failure, Kind, Outcome};
use sides::{REFERENCE, SUBJECT, Sides};

/// Seed of every interval: the same inputs always come to the same conclusions.
const SEED: u64 = 2_003;

/// Predicts, and shows how.
pub fn execute(args: &PredictArgs) -> Outcome {
    let profile = profile::read(&args.profile)?;
    let runs = args.model.as_deref().map(read_runs).transpose()?;
    let sides = (!args.surface.is_empty()).then(|| Sides::open(args, &profile)).transpose()?;
    let mut prediction = predicted(args, &profile, runs.as_ref(), sides.as_ref())?;
    if let Some(sides) = &sides {
        prediction.cautions.extend(sides.cautions.iter().cloned());
        let alternatives = alternatives(args, &profile, runs.as_ref(), sides, prediction.capacity());
        prediction.what_if.extend(alternatives);
        prediction.what_if.sort_by(|a, b| b.capacity.total_cmp(&a.capacity));
    }
    let page = PredictionPage {
        prediction: &prediction,
        profile: &profile,
        from: &args.from,
        to: &args.to,
        actual_capacity: runs.as_ref().and_then(|runs| runs.actual_capacity),
    };
    if let Some(path) = &args.html {
        fs::write(path, prediction_html(&page, env!("CARGO_PKG_VERSION")))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let mut out = io::stdout().lock();
    if args.json {
        serde_json::to_writer(&mut out, &json::Report::new(&page))?;
        writeln!(out)?;
    } else {
        text::write(&mut out, &page)?;
    }
    Ok(())
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
    sides: Option<&Sides>,
) -> Result<Prediction, Failure> {
    let comparison = sides.map(|sides| compare(&sides.records, REFERENCE, SUBJECT, SEED));
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
    sides: &Sides,
    capacity: f64,
) -> Vec<WhatIf> {
    let others = sides.other_subjects().into_iter().filter_map(|(name, other)| {
        let predicted = predicted(args, profile, runs, Some(&other)).ok()?;
        let found = WhatIf { change: format!("--to vm:{name}"), capacity: predicted.capacity() };
        (found.capacity > capacity * 1.005).then_some(found)
    });
    others.collect()
}
