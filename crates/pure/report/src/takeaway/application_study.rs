//! What a reader takes away from a study of an application.

use virtbench_model::application::{ApplicationSideFound, ApplicationStudyAnalysis, MetricFound};
use virtbench_record::{ApplicationMetric, ApplicationPlan, Better, Provenance};

use super::Takeaway;
use super::cautions::emulation;
use crate::format::{count, ratio, ratio_span, rounded, with_unit};

/// Each VM against its native side by the metrics, the first being the headline; then what neighbours do to each side.
pub(crate) fn of_application_study(
    provenance: &Provenance,
    plan: &ApplicationPlan,
    analysis: &ApplicationStudyAnalysis,
) -> Takeaway {
    let mut sentences: Vec<String> = Vec::new();
    for side in &analysis.sides {
        let native = analysis
            .sides
            .iter()
            .find(|other| side.side.vm && !other.side.vm && other.side.vcpus == side.side.vcpus);
        let Some(native) = native else { continue };
        for (index, metric) in plan.metrics.iter().enumerate() {
            sentences.extend(compared(metric, side, native, index));
        }
    }
    for side in &analysis.sides {
        for (metric, found) in plan.metrics.iter().zip(&side.metrics) {
            sentences.extend(disturbed(plan, metric, side, found));
        }
    }
    let mut cautions: Vec<String> = emulation(provenance).into_iter().collect();
    cautions.extend(analysis.sides.iter().filter_map(failed));
    if plan.sides.iter().any(|side| side.vcpus >= provenance.host.processors) {
        cautions
            .push("The client shares processors with the application where that has all of them.".to_owned());
    } else if plan.neighbours > 0
        && plan.sides.iter().any(|side| side.vcpus * (1 + plan.neighbours) > provenance.host.processors)
    {
        cautions.push(
            "Neighbours share processors with what is measured: there are not enough for each.".to_owned(),
        );
    }
    match plan.repetitions {
        0 | 1 => cautions.push("Each side has 1 value at most: there are intervals from two on.".to_owned()),
        2 => cautions.push("Each side has 2 values at most: intervals of two are wide.".to_owned()),
        _ => {}
    }
    let nothing = || "No two sides have been measured yet.".to_owned();
    let mut sentences = sentences.into_iter();
    Takeaway { headline: sentences.next().unwrap_or_else(nothing), details: sentences.collect(), cautions }
}

fn compared(
    metric: &ApplicationMetric,
    side: &ApplicationSideFound,
    native: &ApplicationSideFound,
    index: usize,
) -> Option<String> {
    let (found, reference) = (&side.metrics[index], &native.metrics[index]);
    let against = found.against_native?;
    let span = against.interval.map_or_else(String::new, |span| format!(" ({})", ratio_span(span)));
    Some(format!(
        "{}: {} in {}, {} times the {} of {}{span}; {}.",
        metric.name,
        with_unit(found.alone?.mean, &metric.unit),
        side.side.name,
        ratio(against.value),
        with_unit(reference.alone?.mean, &metric.unit),
        native.side.name,
        direction(metric.better)
    ))
}

fn direction(better: Better) -> &'static str {
    match better {
        Better::Higher => "more is better",
        Better::Lower => "less is better",
        Better::Neither => "neither more nor less is better",
    }
}

fn disturbed(
    plan: &ApplicationPlan,
    metric: &ApplicationMetric,
    side: &ApplicationSideFound,
    found: &MetricFound,
) -> Option<String> {
    let (deviation, beside) = (found.deviation?, found.beside?);
    let span = deviation.estimate.span().map_or_else(String::new, |span| {
        format!(" ({} to {} %)", rounded(span.low, 0), rounded(span.high, 0))
    });
    Some(format!(
        "Beside {}, {} of {} is {}: {} % from alone{span}.",
        count(plan.neighbours as usize, "neighbour"),
        metric.name,
        side.side.name,
        with_unit(beside.mean, &metric.unit),
        rounded(deviation.estimate.mean, 0),
    ))
}

fn failed(side: &ApplicationSideFound) -> Option<String> {
    let first = side.failures.first()?;
    Some(format!("{} of {} failed: {first}", count(side.failures.len(), "measurement"), side.side.name))
}
