//! What limits an application on the subject, and what would change it.

use virtbench_record::ModelRuns;

use super::crossings::{Crossed, PARTS};
use super::latency::{LatencyPrediction, Rounding, latency_model};
use super::queueing::{Fitted, Outcome, Subject};
use super::ratio::RatioPrediction;
use super::scaling::{KernelFrom, Scaled};
use super::similar_references::Alike;
use super::storage::{Limit, OnStorage, STORAGE_RATE};
use super::{Breakdown, ComputeCost, Part, Prediction, WhatIf};

/// A change that helps less than this share is not worth a line.
const WORTH_SAYING: f64 = 0.005;

/// Completes a prediction by the ratio method.
pub(super) fn of_ratio(prediction: &mut Prediction, found: &RatioPrediction, disk_share: Option<f64>) {
    prediction.bottleneck = match disk_share {
        Some(share) => {
            format!("the disk: {:.0} % of the application's time is spent waiting for it", 100.0 * share)
        }
        None => "the disk, as far as this method can tell: it knows nothing else".into(),
    };
    if found.band.high - found.band.low > 0.005 {
        prediction.cautions.push(format!(
            "Over what is unknown the ratio lies between {:.2} and {:.2}.",
            found.band.low, found.band.high
        ));
    }
    consider(prediction, "a disk path as fast as the reference's", 1.0);
}

/// Completes a prediction by the latency model.
pub(super) fn of_latency(prediction: &mut Prediction, runs: &ModelRuns, found: &LatencyPrediction) {
    let breakdowns = [found.reference.breakdown(), found.subject.breakdown()];
    let largest = breakdowns[1].0.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
    let grown = growth(&breakdowns);
    if let Some((part, ms)) = largest {
        prediction.bottleneck = format!(
            "{}: {ms:.1} of {:.1} ms an operation; {} has grown most, by {:.1} ms",
            part.name(),
            found.subject.total_ms,
            grown.0.name(),
            grown.1
        );
    }
    let with = |change: fn(&mut ModelRuns)| {
        let mut changed = runs.clone();
        change(&mut changed);
        latency_model(&changed, Rounding::Exact).ratio
    };
    consider(
        prediction,
        "computing without virtualization overhead (V = 0)",
        with(|runs| runs.compute.overhead_percent = 0.0),
    );
    consider(prediction, "processors twice as fast (F halved)", with(|runs| runs.compute.time_factor /= 2.0));
    consider(
        prediction,
        "a disk path with the reference's response time",
        with_times(found, |s, l| (s, l.min(found.reference.disk_ms))),
    );
    consider(
        prediction,
        "system code of I/O and ready queue as on the reference (vCPUs, adapter)",
        with_times(found, |s, l| (s.min(found.reference.system_ms), l)),
    );
    prediction.breakdown = Some(breakdowns);
    sort(prediction);
}

/// The ratio with other S and L.
fn with_times(found: &LatencyPrediction, change: impl Fn(f64, f64) -> (f64, f64)) -> f64 {
    let (system_ms, disk_ms) = change(found.subject.system_ms, found.subject.disk_ms);
    let total_ms =
        found.subject.total_ms - found.subject.system_ms - found.subject.disk_ms + system_ms + disk_ms;
    found.reference.total_ms / total_ms
}

/// Which part grew most from the first to the second, in milliseconds.
fn growth([before, after]: &[Breakdown; 2]) -> (Part, f64) {
    let was = |part| before.0.iter().find(|(known, _)| *known == part).map_or(0.0, |(_, ms)| *ms);
    let grown = after.0.iter().map(|(part, ms)| (*part, ms - was(*part)));
    grown.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((Part::Disk, 0.0))
}

/// Completes a prediction by the parts of the work.
pub(super) fn of_scaling(prediction: &mut Prediction, found: Scaled) {
    let Scaled { draws, breakdown, busy, factors, kernel_spread, kernel_from, .. } = found;
    let (part, ms) = growth(&breakdown);
    prediction.bottleneck = format!(
        "processors {:.0} % busy; {} grows most, by {ms:.0} ms a second of work; the VM takes {:.1} times as long \
         for user code, {:.1} for kernel code{}, {:.1} for waiting",
        100.0 * busy,
        part.name(),
        factors.user,
        factors.system,
        match kernel_from {
            KernelFrom::Alike(..) => String::new(),
            KernelFrom::Pieces | KernelFrom::References => format!(", {:.1} for copying", factors.copy),
        },
        factors.wait
    );
    let spread = format!("another application may be off by a factor of {kernel_spread:.1} either way");
    prediction.cautions.push(match kernel_from {
        KernelFrom::Alike(Alike { references, nearest, translation }) => format!(
            "The factors are from {references} reference applications, mostly {}; left out and predicted from the \
             others, their kernel code is off by a factor of {kernel_spread:.1} either way.{}",
            nearest.join(", "),
            translation.map_or_else(String::new, |times| format!(
                " That of user code is from how much longer it takes under QEMU's translator natively: {times:.1} times."
            ))
        ),
        KernelFrom::References => format!(
            "The factor of kernel code is the mean of reference applications; {spread}. A profile with samples of \
             the kernel's functions (as root) lets those be chosen that are like it."
        ),
        KernelFrom::Pieces => format!("The factor of kernel code is from pieces of work; {spread}."),
    });
    prediction.draws = draws;
    prediction.breakdown = Some(breakdown);
}

/// Completes a prediction by what the application asks of the kernel.
pub(super) fn of_crossings(prediction: &mut Prediction, found: Crossed) {
    let mut named: Vec<(&str, f64)> = PARTS.into_iter().zip(found.seconds).collect();
    named.sort_by(|a, b| b.1.total_cmp(&a.1));
    let all: f64 = found.seconds.iter().sum();
    let told: Vec<String> = named
        .iter()
        .take(3)
        .map(|(part, seconds)| format!("{part} {:.0} %", 100.0 * seconds / all))
        .collect();
    prediction.bottleneck = format!("of its time in the VM {}", told.join(", "));
    for (part, seconds) in named.iter().filter(|(part, _)| *part != PARTS[0]) {
        consider(prediction, &format!("half as much of: {part}"), 1.0 / (all - seconds / 2.0));
    }
    sort(prediction);
    let like = if found.is_unlike {
        "it is unlike all of them, so the interval is twice as wide as what they are missed by".to_owned()
    } else {
        format!("its time goes where that of {} goes", found.nearest.join(", "))
    };
    prediction.cautions.push(format!(
        "What each part costs is from {} reference applications; left out and predicted from the others, they are off by {:.0} %; {like}.",
        found.references,
        100.0 * found.spread
    ));
    let ms = |seconds: f64| seconds * 1e3;
    let [user_s, kernel_s, rest_s] = found.reference_s;
    let [user, .., transfers, flushes, wait] = found.seconds;
    let disk = transfers + flushes;
    let kernel = all - user - disk - wait;
    prediction.breakdown = Some([
        Breakdown::from_parts([
            (Part::User, ms(user_s)),
            (Part::System, ms(kernel_s)),
            (Part::Disk, ms(rest_s)),
        ]),
        Breakdown::from_parts([
            (Part::User, ms(user.min(user_s))),
            (Part::System, ms(kernel_s.min(kernel))),
            (Part::Virtualization, ms((user - user_s).max(0.0) + (kernel - kernel_s).max(0.0))),
            (Part::Disk, ms(disk + wait)),
        ]),
    ]);
    prediction.draws = found.draws;
}

/// Completes a prediction for another storage.
pub(super) fn of_storage(prediction: &mut Prediction, found: OnStorage) {
    prediction.bottleneck = match found.limit {
        Limit::Processor => "computing",
        Limit::Latency => "waiting for single operations of the storage",
        Limit::Rate => STORAGE_RATE,
    }
    .to_owned();
    let of = |waiting_s: f64| {
        Breakdown::from_parts([(Part::User, found.computing_s * 1e3), (Part::Disk, waiting_s * 1e3)])
    };
    prediction.breakdown = Some(found.waiting_s.map(of));
    prediction.draws = found.draws;
}

/// Completes a prediction by the network.
pub(super) fn of_queueing(
    prediction: &mut Prediction,
    fitted: &Fitted,
    subject: &Subject,
    here: &Outcome,
    there: &Outcome,
) {
    let longest = there.breakdown.0.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
    let busy = |share: f64| format!("{:.0} %", 100.0 * share);
    prediction.bottleneck = if there.disk_utilisation.max(there.cpu_utilisation) > 0.8 {
        if there.disk_utilisation >= there.cpu_utilisation {
            format!(
                "the disk: {} of what it can do is used (processors {})",
                busy(there.disk_utilisation),
                busy(there.cpu_utilisation)
            )
        } else {
            format!(
                "the processors: {} busy (disk {})",
                busy(there.cpu_utilisation),
                busy(there.disk_utilisation)
            )
        }
    } else {
        format!(
            "no device: disk {}, processors {} busy; an operation's time is mostly {}",
            busy(there.disk_utilisation),
            busy(there.cpu_utilisation),
            longest.map_or("nothing", |(part, _)| part.name())
        )
    };
    if let Some(off) = fitted.response_off.filter(|off| off.abs() > 0.1) {
        prediction.cautions.push(format!(
            "On the reference the network's response time is {:+.0} % off the profile's: the surface's depth and the \
             application's do not go together.",
            100.0 * off
        ));
    }
    let mismatch = here.per_second / fitted.reference_rate() - 1.0;
    if mismatch.abs() > 0.05 {
        prediction.cautions.push(format!(
            "On the reference the network does {:+.0} % more than the application.",
            100.0 * mismatch
        ));
    }
    let with = |subject: Subject, customers: f64| fitted.on(&subject, customers).per_second / here.per_second;
    let compute = ComputeCost { user_overhead: 0.0, system_overhead: 0.0, ..subject.compute };
    consider(
        prediction,
        "a disk path as fast as the reference's",
        with(Subject { disk_ratio: subject.disk_ratio.max(1.0), ..*subject }, 1.0),
    );
    consider(
        prediction,
        "twice the processors (vCPUs)",
        with(Subject { processors: subject.processors * 2.0, ..*subject }, 1.0),
    );
    consider(prediction, "twice as many operations outstanding", with(*subject, 2.0));
    consider(
        prediction,
        "computing without virtualization overhead",
        with(Subject { compute, ..*subject }, 1.0),
    );
    prediction.breakdown = Some([here.breakdown.clone(), there.breakdown.clone()]);
    sort(prediction);
}

/// Notes a change where it helps.
fn consider(prediction: &mut Prediction, change: &str, ratio: f64) {
    if ratio > prediction.ratio * (1.0 + WORTH_SAYING) {
        let capacity = prediction.reference.value * ratio;
        prediction.what_if.push(WhatIf { change: change.to_owned(), capacity });
    }
}

fn sort(prediction: &mut Prediction) {
    prediction.what_if.sort_by(|a, b| b.capacity.total_cmp(&a.capacity));
}
