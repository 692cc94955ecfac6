//! Which method, and what comes of it.

use virtbench_record::{Profile, Source, Sourced};

use super::advise::{of_crossings, of_latency, of_queueing, of_ratio, of_scaling, of_storage};
use super::crossings::{Sum, computes_as_fast};
use super::latency::{latency_interval, latency_model};
use super::queueing::{Fitted, Reference, Response, Subject};
use super::ratio::{Matching, Projection};
use super::sampling::interval;
use super::sampling::span;
use super::scaling::Scaling;
use super::storage::on_storage;
use super::{ComputeCost, Inputs, PredictError, Prediction, PredictionMethod, Rounding, Surface};
use crate::interval::Span;

/// Above this share of what a disk can do, latencies depend on the rate too much to be added up.
const NEAR_SATURATION: f64 = 0.7;
/// Above this share of its time in the disk an application waits for nothing else.
const DISK_BOUND: f64 = 0.9;
/// Half-width of a model load's figures, as a share, where nobody measured it: what repetitions of
/// native runs typically show.
const ASSUMED_HALF_WIDTH: f64 = 0.03;
/// Draws of a network's interval, fewer for many customers.
const FEW_CUSTOMERS: u32 = 128;

/// Predicts how an application will do on the subject.
///
/// # Errors
/// What the method needs is missing, or the surface and the profile cannot both be true.
pub fn predict(inputs: &Inputs<'_>) -> Result<Prediction, PredictError> {
    let matching =
        inputs.surface.map(|surface| Matching::new(surface.comparison).ok_or(PredictError::EmptySurface));
    let matching = matching.transpose()?;
    let projection = matching.as_ref().and_then(|matching| Projection::new(matching, inputs.profile));
    let (method, why) = choose(inputs, projection.as_ref())?;
    let mut prediction = match method {
        PredictionMethod::Ratio => by_ratio(inputs, projection.as_ref(), why)?,
        PredictionMethod::Latency => by_latency(inputs, why)?,
        PredictionMethod::Scaling => by_scaling(inputs, why)?,
        PredictionMethod::Crossings => by_crossings(inputs, why)?,
        PredictionMethod::Storage => by_storage(inputs, why)?,
        PredictionMethod::Queueing => by_queueing(inputs, projection.as_ref(), why)?,
    };
    if let (Some(matching), Some(projection), true) = (&matching, &projection, uses_surface(method)) {
        prediction.beyond = matching.beyond(inputs.profile, projection.sizes());
    }
    prediction.cautions.extend(cautions(inputs, method, matching.as_ref()));
    Ok(prediction)
}

fn choose(
    inputs: &Inputs<'_>,
    projection: Option<&Projection<'_>>,
) -> Result<(PredictionMethod, String), PredictError> {
    use PredictionMethod::{Latency, Queueing, Ratio};
    if let Some((method, why)) = by_what_is_given(inputs) {
        return Ok((method, why.into()));
    }
    let profile = inputs.profile;
    if profile.rate() <= 0.0 {
        let what = "what work costs on both machines (`costs`): the application does no I/O that a surface could tell of";
        return Err(PredictError::Needs { method: "scaling", what });
    }
    let possible = profile.concurrency().is_some() && projection.is_some();
    let used = projection
        .map(|projection| profile.rate() / projection.predict(inputs.seed).reference_most_per_second);
    let saturated = used.is_some_and(|used| used > NEAR_SATURATION);
    if inputs.runs.is_some() {
        let reason = if profile.is_asynchronous() {
            "operations overlap, so that latencies do not add up"
        } else if saturated {
            "the disk is near saturation, where latencies depend on the rate"
        } else {
            return Ok((
                Latency,
                "a model load was run on both machines, and workers wait for their I/O".into(),
            ));
        };
        return Ok(if possible {
            (Queueing, reason.into())
        } else {
            (Latency, format!("{reason}, but no surface is given"))
        });
    }
    if projection.is_none() {
        return Err(match inputs.surface {
            Some(_) => PredictError::Needs {
                method: "ratio",
                what: "the sizes of operations, or bytes per second, in the profile",
            },
            None => PredictError::Nothing,
        });
    }
    let in_disk = disk_share(profile);
    Ok(match in_disk {
        Some(share) if share >= DISK_BOUND => {
            (Ratio, format!("the application spends {:.0} % of its time waiting for its disk", 100.0 * share))
        }
        Some(share) if possible && used.is_some_and(|used| used < 1.0) => {
            let reason = if profile.is_asynchronous() {
                "operations overlap".to_owned()
            } else {
                format!("the application waits for its disk {:.0} % of its time only", 100.0 * share)
            };
            (Queueing, format!("{reason}, and no model load was run"))
        }
        Some(_) => {
            (Ratio, "the application does more I/O than the reference's surface: no network fits".into())
        }
        None => (Ratio, "how much of its time the application waits for its disk is not known".into()),
    })
}

/// The method that is asked for, or that what was measured is for.
fn by_what_is_given(inputs: &Inputs<'_>) -> Option<(PredictionMethod, &'static str)> {
    use PredictionMethod::{Crossings, Scaling, Storage};
    if let Some(method) = inputs.method {
        return Some((method, "it was asked for"));
    }
    if inputs.storages.is_some() {
        return Some((Storage, "only the storage differs, and both were measured"));
    }
    let costs = inputs.costs?;
    Some(if computes_as_fast(costs) && Sum::new(inputs.profile, costs).is_ok() {
        let why =
            "user code takes as long on both machines, and what each way into the kernel costs was measured";
        (Crossings, why)
    } else {
        (Scaling, "what user code, kernel code, copying and waiting cost was measured on both machines")
    })
}

/// The share of an operation's cycle that is spent in the disk.
fn disk_share(profile: &Profile) -> Option<f64> {
    let customers = f64::from(profile.concurrency()?);
    Some((profile.latency_ns.value()? / 1e9 * profile.rate() / customers).min(1.0))
}

fn by_ratio(
    inputs: &Inputs<'_>,
    projection: Option<&Projection<'_>>,
    why: String,
) -> Result<Prediction, PredictError> {
    let projection = projection
        .ok_or(PredictError::Needs { method: "ratio", what: "`surface`, and sizes in the profile" })?;
    let found = projection.predict(inputs.seed);
    let mut prediction = started(inputs, PredictionMethod::Ratio, why, found.ratio, found.interval);
    of_ratio(&mut prediction, &found, disk_share(inputs.profile));
    Ok(prediction)
}

fn by_latency(inputs: &Inputs<'_>, why: String) -> Result<Prediction, PredictError> {
    let runs = inputs.runs.ok_or(PredictError::Needs {
        method: "latency",
        what: "the results of a model load on both machines (`model`)",
    })?;
    let found = latency_model(runs, inputs.rounding);
    let interval = latency_interval(runs, ASSUMED_HALF_WIDTH, inputs.seed);
    let mut prediction = started(inputs, PredictionMethod::Latency, why, found.ratio, interval);
    prediction.cautions.push(format!(
        "The interval assumes that each figure of the model load is known within {:.0} %.",
        100.0 * ASSUMED_HALF_WIDTH
    ));
    of_latency(&mut prediction, runs, &found);
    Ok(prediction)
}

/// Whether a method reads the surface.
fn uses_surface(method: PredictionMethod) -> bool {
    matches!(method, PredictionMethod::Ratio | PredictionMethod::Queueing)
}

fn by_scaling(inputs: &Inputs<'_>, why: String) -> Result<Prediction, PredictError> {
    let needs = |what| PredictError::Needs { method: "scaling", what };
    let costs = inputs.costs.ok_or(needs("what work costs on both machines (`costs`)"))?;
    let scaling = Scaling::new(inputs.profile, costs, inputs.subject_processors);
    let found = scaling.map_err(needs)?.predict(inputs.seed);
    let drawn = span(&found.draws, crate::interval::CONFIDENCE);
    let mut prediction = started(inputs, PredictionMethod::Scaling, why, found.ratio, drawn);
    if inputs.profile.workers.value().is_none() {
        prediction.cautions.push("How many workers there are is not known; one is assumed.".into());
    }
    prediction.cautions.extend(costs.caution());
    of_scaling(&mut prediction, found);
    Ok(prediction)
}

fn by_crossings(inputs: &Inputs<'_>, why: String) -> Result<Prediction, PredictError> {
    let needs = |what| PredictError::Needs { method: "crossings", what };
    let costs = inputs.costs.ok_or(needs("what work costs on both machines (`costs`)"))?;
    let found = Sum::new(inputs.profile, costs).map_err(needs)?.predict(inputs.seed);
    let drawn = span(&found.draws, crate::interval::CONFIDENCE);
    let mut prediction = started(inputs, PredictionMethod::Crossings, why, found.ratio, drawn);
    prediction.cautions.extend(costs.caution());
    of_crossings(&mut prediction, found);
    Ok(prediction)
}

fn by_storage(inputs: &Inputs<'_>, why: String) -> Result<Prediction, PredictError> {
    let needs = |what| PredictError::Needs { method: "storage", what };
    let pair =
        inputs.storages.ok_or(needs("how fast both storages are (`study predictions` with storages)"))?;
    let processors = inputs.subject_processors.unwrap_or(1);
    let found = on_storage(inputs.profile, pair, processors, inputs.seed).map_err(needs)?;
    let drawn = span(&found.draws, crate::interval::CONFIDENCE);
    let mut prediction = started(inputs, PredictionMethod::Storage, why, found.ratio, drawn);
    of_storage(&mut prediction, found);
    Ok(prediction)
}

fn by_queueing(
    inputs: &Inputs<'_>,
    projection: Option<&Projection<'_>>,
    why: String,
) -> Result<Prediction, PredictError> {
    let needs = |what| PredictError::Needs { method: "queueing", what };
    let (projection, surface) =
        projection.zip(inputs.surface).ok_or(needs("`surface`, and sizes in the profile"))?;
    let customers =
        inputs.profile.concurrency().ok_or(needs("the profile's workers, or its I/Os outstanding"))?;
    let found = projection.predict(inputs.seed);
    let reference = reference(inputs, surface, customers, found.reference_most_per_second);
    let fitted = Fitted::new(reference, 0.5).ok_or(PredictError::Inconsistent {
        rate: inputs.profile.rate(),
        most: found.reference_most_per_second,
    })?;
    let subject = Subject {
        disk_ratio: found.ratio,
        parallelism: None,
        compute: compute(inputs),
        processors: inputs.subject_processors.map_or(reference.processors, f64::from),
    };
    let on_reference = fitted.reference();
    let on_subject = fitted.on(&subject, 1.0);
    let ratio = on_subject.per_second / on_reference.per_second;
    let samples = if customers <= FEW_CUSTOMERS { 200 } else { 40 };
    let drawn = interval(samples, inputs.seed, |sample| {
        let (disk_ratio, most) = projection.sampled(sample);
        let reference =
            Reference { disk_most_per_second: most.max(reference.per_second * 1.001), ..reference };
        let fitted = Fitted::new(reference, sample.unit())?;
        let parallelism = Some(reference.disk_depth.max(1.0).powf(sample.unit()));
        let subject = Subject { disk_ratio, parallelism, ..subject };
        Some(fitted.on(&subject, 1.0).per_second / fitted.reference().per_second)
    });
    let drawn = drawn.map(|span| Span { low: span.low.min(ratio), high: span.high.max(ratio) });
    let mut prediction = started(inputs, PredictionMethod::Queueing, why, ratio, drawn);
    of_queueing(&mut prediction, &fitted, &subject, &on_reference, &on_subject);
    Ok(prediction)
}

fn reference(inputs: &Inputs<'_>, surface: Surface<'_>, customers: u32, most: f64) -> Reference {
    let profile = inputs.profile;
    let per_operation =
        |percent: Option<&f64>| percent.map_or(0.0, |percent| percent / 100.0 / profile.rate());
    Reference {
        customers,
        per_second: profile.rate(),
        response: response(profile),
        user_s: per_operation(profile.cpu_user_percent.value()),
        system_s: per_operation(profile.cpu_system_percent.value()),
        processors: f64::from(*profile.processors.value().unwrap_or(&1)),
        disk_most_per_second: most,
        disk_depth: f64::from(surface.outstanding),
    }
}

/// What the block layer sees of a response time is not all of it.
fn response(profile: &Profile) -> Option<Response> {
    match profile.latency_ns {
        Sourced::Known { value, source: Source::User } => Some(Response::Exactly(value / 1e9)),
        Sourced::Known { value, .. } => Some(Response::AtLeast(value / 1e9)),
        Sourced::Unavailable { .. } => None,
    }
}

/// Without any measurement computing is taken to cost the same, which [`cautions`] says.
fn compute(inputs: &Inputs<'_>) -> ComputeCost {
    let of_runs = inputs.runs.map(|runs| {
        let overhead = runs.compute.overhead_percent / 100.0;
        ComputeCost {
            user_overhead: overhead,
            system_overhead: overhead,
            time_factor: runs.compute.time_factor,
        }
    });
    inputs.compute.or(of_runs).unwrap_or(ComputeCost {
        user_overhead: 0.0,
        system_overhead: 0.0,
        time_factor: 1.0,
    })
}

fn started(
    inputs: &Inputs<'_>,
    method: PredictionMethod,
    why: String,
    ratio: f64,
    interval: Option<Span>,
) -> Prediction {
    Prediction {
        method,
        why,
        reference: inputs.profile.capacity(),
        ratio,
        interval,
        draws: Vec::new(),
        breakdown: None,
        bottleneck: String::new(),
        what_if: Vec::new(),
        beyond: Vec::new(),
        cautions: Vec::new(),
        rounding: if method == PredictionMethod::Latency { inputs.rounding } else { Rounding::Exact },
    }
}

fn cautions(inputs: &Inputs<'_>, method: PredictionMethod, matching: Option<&Matching>) -> Vec<String> {
    let mut said = Vec::new();
    let profile = inputs.profile;
    if uses_surface(method) {
        let random = profile.random_band();
        if !random.is_exact() {
            said.push(format!(
                "Randomness is not known; {:.0} to {:.0} % is assumed, and the interval covers it.",
                random.low_percent, random.high_percent
            ));
        }
        if matching.is_some_and(|matching| !matching.has_spread) {
            said.push("The surface has no repetitions, so the interval knows nothing of noise.".into());
        }
        if let (Some(surface), Some(customers)) = (inputs.surface, profile.concurrency())
            && customers != surface.outstanding
        {
            said.push(format!(
                "The surface was measured with {} I/Os outstanding, the application has {customers}: one measured \
                 with as many tells more.",
                surface.outstanding
            ));
        }
        if profile.sizes.value().is_none() {
            said.push("The sizes of operations are not known; the mean size stands for all of them.".into());
        }
    }
    if method == PredictionMethod::Queueing && inputs.compute.is_none() && inputs.runs.is_none() {
        said.push(
            "What computing costs on the subject was not measured; it is taken to cost the same.".into(),
        );
    }
    if method == PredictionMethod::Latency && profile.is_asynchronous() {
        said.push("Operations overlap: the latency model counts computing and waiting twice.".into());
    }
    said
}
