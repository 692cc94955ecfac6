//! Predictions held against what happened, as one page and as CSV.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use maud::{Markup, html};
use virtbench_chart::{Axis, Chart, Dash, Form, Look, Point, Series, look};
use virtbench_model::busy_host;
use virtbench_model::predict::trials::{
    TOLD_APART, better_named, by_case, coverage, mean_absolute_error_percent, mean_error_of_averages_percent,
};
use virtbench_record::{CaseSet, HostUse, Provenance, Trial};

use super::figures::style::GREY;
use super::figures::{Drawing, Figure, Values, Variant};
use super::takeaway::Takeaway;
use crate::format::{count, rounded, significant};
use crate::page::{Head, Section, document};
use crate::rows::figure;

/// What the page says, and its figures.
pub(crate) fn head(provenance: &Provenance, trials: &[Trial]) -> Head<2> {
    const NOTHING: &str = "There is no trial yet.";
    let calibration = self::calibration(trials);
    Head {
        title: "Predicted, then run".into(),
        place: place(provenance),
        takeaway: predictions_takeaway(provenance, trials),
        sections: [
            Section::new("calibration", "Do intervals hold what they say?", NOTHING, calibration),
            Section::new(
                "scatter",
                "Predicted against measured",
                NOTHING,
                scatter(reference(provenance), trials),
            ),
        ],
    }
}

/// The report of a run of predictions as one HTML file.
pub(crate) fn predictions_html(provenance: &Provenance, trials: &[Trial]) -> String {
    let head = head(provenance, trials);
    let set = provenance.plan.predictions().and_then(|plan| plan.set);
    let table_title =
        set.map_or_else(|| "Case by case".to_owned(), |set| format!("Case by case: the {} set", set.name()));
    let content = html! {
        (head.plain_opening())
        @for section in &head.sections { (section.markup()) }
        section aria-labelledby="cases" { h2 id="cases" { (table_title) } (table(reference(provenance), trials)) }
        section aria-labelledby="provenance" {
            h2 id="provenance" { "Where these figures come from" }
            (crate::provenance::section(provenance, &provenance.notes, &|_| None))
        }
    };
    document(&head.title, &provenance.version, &content)
}

/// What applications run on while they are profiled.
fn reference(provenance: &Provenance) -> &str {
    provenance.plan.predictions().map_or("native", |plan| plan.reference())
}

/// Where it was measured, in a line.
fn place(provenance: &Provenance) -> String {
    let host = &provenance.host;
    let natively = format!("{}, {} processors, {}", host.cpu, host.processors, host.kernel);
    match (&provenance.guest, provenance.plan.predictions()) {
        (Some(guest), _) => {
            format!("{natively}; VM: {} vCPUs, {}, {}", guest.vcpus, guest.accelerator.name, guest.adapter)
        }
        (None, Some(plan)) => format!("{natively}; VM: {} vCPUs, {}", plan.vcpus, plan.adapter),
        (None, None) => natively,
    }
}

fn table(reference: &str, trials: &[Trial]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Case by case" {
            table {
                thead { tr {
                    th { "application" } th { "unit" } th.number { (reference) } th.number { "predicted" } th.number { "measured" }
                    th.number { "error, %" } th.number { "in the 95 % interval" }
                    th.number { "other programs, % of the host: " (reference) } th.number { "where it was predicted for" }
                } }
                tbody { @for case in by_case(trials) {
                    @let [base, predicted, truth] = case.capacities();
                    @let held = case.trials.iter().filter(|trial| trial.holds(trial.intervals.len() - 1)).count();
                    tr {
                        td { (case.name()) } td { (case.trials[0].capacity_name) }
                        td.number { (significant(base)) } td.number { (significant(predicted)) } td.number { (significant(truth)) }
                        td.number { (format!("{:+.0}", case.error_percent())) }
                        td.number { (held) " of " (case.trials.len()) }
                        @for of in [reference_host, machine_host] { td.number { (most_of_others(&case.trials, of)) } }
                    }
                } }
            }
        }
    }
}

fn reference_host(trial: &Trial) -> Option<&HostUse> {
    trial.reference_host.as_ref()
}

fn machine_host(trial: &Trial) -> Option<&HostUse> {
    trial.machine_host.as_ref()
}

/// What other programs used of all processors, in percent, beside the trial that they disturbed most.
fn most_of_others(trials: &[&Trial], of: fn(&Trial) -> Option<&HostUse>) -> String {
    let of_host = |host: &HostUse| Some(host.others_percent? / f64::from(host.processors.max(1)));
    let known = trials.iter().filter_map(|trial| of_host(of(trial)?));
    known.reduce(f64::max).map_or_else(|| "not seen".to_owned(), |most| format!("{most:.0}"))
}

/// A line for each trial.
#[must_use]
pub fn trials_csv(trials: &[Trial]) -> String {
    let mut text = String::from(
        "case,trial,unit,native,predicted,low95,high95,measured,error_percent,native_user_percent,\
         native_system_percent,vm_user_percent,vm_system_percent,native_others_percent,vm_others_percent\n",
    );
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let known = |value: Option<f64>| value.map_or_else(String::new, figure);
    for trial in trials {
        let interval = trial.intervals.last();
        let figures = [
            Some(trial.reference),
            Some(trial.predicted),
            interval.map(|interval| interval[0]),
            interval.map(|interval| interval[1]),
            Some(trial.truth),
            Some(trial.error_percent()),
            trial.reference_percent.map(|percent| percent[0]),
            trial.reference_percent.map(|percent| percent[1]),
            trial.machine_percent.map(|percent| percent[0]),
            trial.machine_percent.map(|percent| percent[1]),
            reference_host(trial).and_then(|host| host.others_percent),
            machine_host(trial).and_then(|host| host.others_percent),
        ];
        let _ = writeln!(
            text,
            "{},{},{},{}",
            quoted(&trial.name()),
            trial.trial,
            quoted(&trial.capacity_name),
            figures.map(known).join(",")
        );
    }
    text
}

/// Both tables for a document, in Markdown: case by case, means over trials, and how often intervals held the truth.
#[must_use]
pub fn trials_markdown(trials: &[Trial]) -> String {
    let is_of_storages = trials.iter().any(|trial| trial.storage.is_some());
    let [from, to] = if is_of_storages { ["on the first", "measured"] } else { ["native", "in the VM"] };
    let mut text = format!(
        "| case | trials | {from} | predicted | 95 % interval | {to} | from to | error | mean size of error |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for case in by_case(trials) {
        let [reference, predicted, truth] = case.capacities().map(significant);
        let last = |end: usize| {
            let all = case.trials.iter().filter_map(|trial| Some(trial.intervals.last()?[end]));
            significant(all.sum::<f64>() / case.trials.len() as f64)
        };
        let truths = case.trials.iter().map(|trial| trial.truth);
        let (least, most) = (truths.clone().fold(f64::INFINITY, f64::min), truths.fold(0.0, f64::max));
        let _ = writeln!(
            text,
            "| {}, {} | {} | {reference} | {predicted} | {} to {} | {truth} | {} to {} | {:+.0} % | {:.0} % |",
            case.name(),
            case.trials[0].capacity_name,
            case.trials.len(),
            last(0),
            last(1),
            significant(least),
            significant(most),
            case.error_percent(),
            case.absolute_error_percent()
        );
    }
    let _ = writeln!(
        text,
        "| **mean absolute error** | {} | | | | | | **{:.0} %** | **{:.0} %** |\n\n| stated | held the truth |\n|---|---|",
        trials.len(),
        mean_error_of_averages_percent(trials),
        mean_absolute_error_percent(trials)
    );
    for (confidence, share) in coverage(trials) {
        let _ = writeln!(text, "| {:.0} % | {:.0} % |", 100.0 * confidence, 100.0 * share);
    }
    text
}

/// An application is predicted well if single trials are off by no more than this on average, in percent.
const WELL: f64 = 10.0;

/// Intervals that are named.
const TOLD: [f64; 3] = [0.5, 0.8, 0.95];

/// What a reader takes away from a run of predictions.
pub(crate) fn predictions_takeaway(provenance: &Provenance, trials: &[Trial]) -> Takeaway {
    let set = provenance.plan.predictions().and_then(|plan| plan.set);
    Takeaway {
        headline: headline(set, trials),
        details: details(trials),
        cautions: cautions(provenance, set, trials),
    }
}

/// Mean absolute error of single trials: what somebody has to expect who predicts once.
fn headline(set: Option<CaseSet>, trials: &[Trial]) -> String {
    let cases = by_case(trials);
    if cases.is_empty() {
        return "No application has been tried yet.".into();
    }
    let well = cases.iter().filter(|case| case.absolute_error_percent() <= WELL).count();
    let names: BTreeSet<&str> = trials.iter().map(|trial| trial.case.as_str()).collect();
    let storages: BTreeSet<&str> = trials.iter().filter_map(|trial| trial.storage.as_deref()).collect();
    let on =
        if storages.is_empty() { String::new() } else { format!(" on {}", count(storages.len(), "storage")) };
    let over = format!("{}{on}", count(names.len(), "application"));
    let whose =
        set.map_or_else(|| format!("Over {over}"), |set| format!("Over {over} of the {} set", set.name()));
    format!(
        "{whose} predictions of single trials were {:.0} % off on average (mean absolute error of {}); {well} of \
         {} within {WELL:.0} %.",
        mean_absolute_error_percent(trials),
        count(trials.len(), "trial"),
        cases.len()
    )
}

fn details(trials: &[Trial]) -> Vec<String> {
    let averaged = (trials.len() > by_case(trials).len()).then(|| {
        let averaged = mean_error_of_averages_percent(trials);
        format!("With the trials of each averaged, so that chance evens out, {averaged:.0} %.")
    });
    let told = coverage(trials)
        .into_iter()
        .filter(|(confidence, _)| !trials.is_empty() && TOLD.contains(confidence));
    let held = told.map(|(confidence, share)| {
        format!(
            "Intervals stated at {:.0} % held the truth in {:.0} % of {}.",
            100.0 * confidence,
            100.0 * share,
            count(trials.len(), "trial")
        )
    });
    let better = match better_named(trials) {
        (_, 0) => None,
        (right, all) => Some(format!(
            "Of two storages that differ by more than {:.0} % the better one was named in {:.0} % ({right} of {all}).",
            100.0 * TOLD_APART,
            100.0 * right as f64 / all as f64
        )),
    };
    averaged.into_iter().chain(better).chain(held).collect()
}

fn cautions(provenance: &Provenance, set: Option<CaseSet>, trials: &[Trial]) -> Vec<String> {
    let mut said = Vec::new();
    if set == Some(CaseSet::Tuning) {
        said.push(
            "Ideas for the model were compared on the tuning set: expect larger errors of other applications.".into(),
        );
    }
    if provenance.guest.as_ref().is_some_and(|guest| guest.accelerator.name == "tcg") {
        said.push("The VM ran under TCG, software emulation: this says nothing of virtualization.".into());
    }
    said.extend(busy_host(trials.iter().flat_map(Trial::hosts)).map(|busy| busy.words()));
    let planned = provenance.plan.predictions().into_iter().flat_map(|plan| &plan.cases);
    let missing: Vec<&str> = planned
        .map(|case| case.name.as_str())
        .filter(|name| trials.iter().all(|trial| trial.case != *name))
        .collect();
    if !missing.is_empty() {
        said.push(format!("Without any trial: {}.", missing.join(", ")));
    }
    said.extend(provenance.notes.iter().cloned());
    said
}

/// Where stated and found, or predicted and measured, agree.
fn agreement(low: f64, high: f64) -> Series {
    Series {
        name: "where both agree".into(),
        look: Look::of_colour(GREY).dashed(Dash::Dashed),
        form: Form::Line,
        points: [low, high].map(|end| Point::new(end, end)).into(),
    }
}

/// The confidence that is stated against the share of trials whose interval held the truth. Nothing without a trial.
pub(crate) fn calibration(trials: &[Trial]) -> Option<Figure> {
    (!trials.is_empty()).then_some(())?;
    let points = coverage(trials).into_iter().map(|(confidence, share)| {
        let [stated, held] = [confidence, share].map(|share| rounded(100.0 * share, 0));
        Point::new(100.0 * confidence, 100.0 * share).hover(format!("stated {stated} %: {held} % held"))
    });
    let points = points.collect();
    let held = Series { name: "trials".into(), look: look(0), form: Form::Marked, points };
    let axis = |title: &str| Axis::from_zero(title).within(0.0, 100.0);
    let chart = Chart {
        series: vec![agreement(0.0, 100.0), held],
        ..Chart::new(axis("stated confidence, %"), axis("intervals that held the truth, %"))
    };
    let label = "Stated confidence against the share of truths inside; the table below holds the values.";
    Some(Figure {
        title: "Stated confidence".into(),
        caption: "Across: the confidence that is stated. Up: the share of trials whose interval held the truth. On the line they \
                  agree; above it intervals are wider than they need be, below it too narrow."
            .into(),
        drawings: vec![Drawing::only("calibration-chart", label.into(), Variant::chart("", chart))],
        values: Values::Own,
    })
}

/// Each trial's prediction with its interval against what was measured. Nothing without a trial.
pub(crate) fn scatter(reference: &str, trials: &[Trial]) -> Option<Figure> {
    let percent = |trial: &Trial, value: f64| (100.0 * value / trial.reference).max(1e-4);
    let points = trials.iter().map(|trial| {
        let interval = trial.intervals.last().map(|ends| ends.map(|end| percent(trial, end)));
        let hover = format!(
            "{}: predicted {}, measured {}",
            trial.name(),
            significant(trial.predicted),
            significant(trial.truth)
        );
        Point::new(percent(trial, trial.truth), percent(trial, trial.predicted))
            .between(interval)
            .hover(hover)
    });
    let points: Vec<Point> = points.collect();
    let all = || points.iter().flat_map(|point| [point.x, point.y]);
    let (low, high) = (all().reduce(f64::min)?, all().reduce(f64::max)?);
    let tried = Series { name: "a trial".into(), look: look(1), form: Form::Marks, points };
    let chart = Chart {
        series: vec![agreement(low, high), tried],
        height_px: 320.0,
        ..Chart::new(
            Axis::logarithmic(format!("measured, % of {reference}")),
            Axis::logarithmic(format!("predicted, % of {reference}")),
        )
    };
    let label = "Predicted against measured share of the capacity that it was predicted from; the table under Case by case holds the values.";
    Some(Figure {
        title: "Predicted against measured".into(),
        caption: "Shares of the capacity that it was predicted from, both on logarithmic scales; each mark is a trial, its whisker the 95 % interval. \
                  On the line the prediction was right."
            .into(),
        drawings: vec![Drawing::only("scatter-chart", label.into(), Variant::chart("", chart))],
        values: Values::Own,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(trial: u32, predicted: f64) -> Trial {
        Trial {
            format: virtbench_record::FORMAT,
            case: "db".into(),
            storage: None,
            trial,
            capacity_name: "tps".into(),
            reference: 1000.0,
            predicted,
            truth: 100.0,
            intervals: vec![[predicted - 15.0, predicted + 15.0]; 6],
            in_turn: None,
            bottleneck: String::new(),
            machine_percent: None,
            reference_percent: None,
            reference_host: None,
            machine_host: None,
        }
    }

    #[test]
    fn tables_of_storages_name_each_and_say_which_is_better() {
        let on = |storage: &str, predicted, truth| Trial {
            storage: Some(storage.into()),
            truth,
            ..trial(1, predicted)
        };
        let trials = [on("virtio-blk,iops=500", 450.0, 500.0), on("ide", 900.0, 800.0)];
        let text = trials_markdown(&trials);
        assert!(
            text.contains("| on the first | predicted |")
                && text.contains("| db on virtio-blk,iops=500, tps |"),
            "{text}"
        );
        assert!(trials_csv(&trials).contains("\"db on ide\",1,"));
        assert!(
            headline(None, &trials)
                .starts_with("Over 1 application on 2 storages predictions of single trials")
        );
        let said = details(&trials).join(" ");
        assert!(said.contains("more than 10 % the better one was named in 100 % (3 of 3)"), "{said}");
        assert!(!details(&[trial(1, 120.0)]).join(" ").contains("storages"));
    }

    #[test]
    fn trials_in_a_table_have_seven_digits() {
        let mut of_small = trial(1, 1.0 / 3.0);
        of_small.reference = 123_456.789_012;
        of_small.intervals = Vec::new();
        of_small.machine_percent = Some([200.0 / 3.0, 5.0]);
        let text = trials_csv(&[of_small]);
        let row = text.lines().nth(1);
        assert_eq!(row, Some("\"db\",1,\"tps\",123456.8,0.3333333,,,100,-99.66667,,,66.66667,5,,"), "{text}");
        assert_eq!(
            text.lines().next().map(|line| line.split(',').count()),
            row.map(|row| row.split(',').count())
        );
    }

    #[test]
    fn the_document_s_table_has_means_over_trials_and_what_intervals_held() {
        let text = trials_markdown(&[trial(1, 120.0), trial(2, 90.0)]);
        assert!(
            text.contains("| db, tps | 2 | 1,000 | 105 | 90.0 to 120 | 100 | 100 to 100 | +5 % | 15 % |"),
            "{text}"
        );
        assert!(text.contains("| **mean absolute error** | 2 | | | | | | **5 %** | **15 %** |"), "{text}");
        assert!(text.contains("| 95 % | 50 % |"), "{text}");
    }
}
