//! Tiles as they were predicted from each member by itself, beside what was measured.

use maud::{Markup, html};
use virtbench_chart::{Axis, Chart, Dash, Form, Point, Scale, Series, look};
use virtbench_model::tiles_study::TilesStudyAnalysis;
use virtbench_record::{TilePredicted, TilePredictedMember};

use crate::figures::{Drawing, Figure, Values, Variant};
use crate::format::{MILLISECOND_NS, count, rounded, significant};
use crate::page;

/// The section; nothing where no prediction was asked for.
pub(crate) fn section(analysis: &TilesStudyAnalysis) -> Markup {
    if analysis.predicted.is_empty() && analysis.unpredicted.is_none() {
        return html! {};
    }
    html! {
        section aria-labelledby="predicted" {
            h2 id="predicted" { "Predicted from each member by itself" }
            @if let Some(why) = &analysis.unpredicted { p { "Not predicted: " (why) "." } }
            @if let Some(drawn) = figure(&analysis.predicted) { (page::figure(&drawn, false)) }
            @if !analysis.predicted.is_empty() { (table(&analysis.predicted)) }
        }
    }
}

/// How far predictions were off, in words; nothing without any.
pub(crate) fn in_words(analysis: &TilesStudyAnalysis) -> Option<String> {
    if let Some(why) = &analysis.unpredicted {
        return Some(format!("Tiles were not predicted: {why}."));
    }
    let errors = analysis.prediction_errors?;
    let response = errors
        .response_percent
        .map_or_else(String::new, |percent| format!(", mean response times by {} %", rounded(percent, 0)));
    Some(format!(
        "Predicted from each member by itself, operations a second were off by {} % on average over the members of {}{response}, \
         and the use of the host's processors by {} %.",
        rounded(errors.per_second_percent, 0),
        count(errors.runs as usize, "run"),
        rounded(errors.busy_percent, 0)
    ))
}

/// What is drawn of a member: a prediction, and what was measured.
type Of = fn(&TilePredictedMember) -> [Option<f64>; 2];

fn rates(member: &TilePredictedMember) -> [Option<f64>; 2] {
    [Some(member.predicted_per_second), Some(member.measured_per_second)]
}

fn responses(member: &TilePredictedMember) -> [Option<f64>; 2] {
    [member.predicted_response_ns, member.measured_response_ns]
        .map(|ns| ns.map(|ns| ns as f64 / MILLISECOND_NS))
}

fn figure(predicted: &[TilePredicted]) -> Option<Figure> {
    let quantities: [(&str, &str, Of); 2] = [
        ("predicted-rate", "operations a second of a tile", rates),
        ("predicted-response", "mean response time, ms", responses),
    ];
    let drawings: Vec<Drawing> = quantities
        .into_iter()
        .filter_map(|(id, quantity, of)| drawing(predicted, id, quantity, of))
        .collect();
    (!drawings.is_empty()).then(|| Figure {
        title: "Predicted and measured".into(),
        caption: "Lines are predicted from what each member does by itself, marks are runs. Where a member is predicted not to keep up \
                  with its rate, there is no response time."
            .into(),
        drawings,
        values: Values::Own,
    })
}

fn drawing(predicted: &[TilePredicted], id: &str, quantity: &str, of: Of) -> Option<Drawing> {
    let names: Vec<&str> = predicted.first()?.members.iter().map(|one| one.member.as_str()).collect();
    let mut series = Vec::new();
    for (index, name) in names.into_iter().enumerate() {
        let points = |side: usize| -> Vec<Point> {
            let of_run = |run: &TilePredicted| {
                let member = run.members.iter().find(|one| one.member == name)?;
                Some(Point::new(f64::from(run.tiles), of(member)[side]?))
            };
            predicted.iter().filter_map(of_run).collect()
        };
        let (mut foreseen, measured) = (points(0), points(1));
        foreseen.sort_by(|one, other| one.x.total_cmp(&other.x));
        foreseen.dedup_by(|one, other| (one.x - other.x).abs() < f64::EPSILON);
        let [line, marks] = [look(index).dashed(Dash::Dashed), look(index)];
        series.push(Series {
            name: format!("{name}, predicted"),
            look: line,
            form: Form::Line,
            points: foreseen,
        });
        series.push(Series {
            name: format!("{name}, measured"),
            look: marks,
            form: Form::Marks,
            points: measured,
        });
    }
    series.retain(|one| !one.points.is_empty());
    if series.is_empty() {
        return None;
    }
    let chart = Chart { series, ..Chart::new(Axis::new("tiles", Scale::Whole), Axis::from_zero(quantity)) };
    let label = format!(
        "{quantity}, predicted and measured, over the number of tiles; the table below holds the values."
    );
    Some(Drawing::only(id, label, Variant::chart(quantity, chart)))
}

fn table(predicted: &[TilePredicted]) -> Markup {
    let percent = |said: f64, is: f64| {
        if is > 0.0 { format!("{:+.0}", 100.0 * (said / is - 1.0)) } else { "–".into() }
    };
    let pair = |[said, is]: [Option<f64>; 2]| {
        let shown = |value: Option<f64>| value.map_or_else(|| "–".into(), significant);
        let error = said.zip(is).map_or_else(|| "–".into(), |(said, is)| percent(said, is));
        html! { td.number { (shown(said)) } td.number { (shown(is)) } td.number { (error) } }
    };
    html! {
        div.scroll tabindex="0" role="region" aria-label="Predicted and measured" {
            table {
                thead { tr {
                    th.number scope="col" { "tiles" } th.number scope="col" { "run" } th scope="col" { "member" }
                    th.number scope="col" { "operations/s, predicted" } th.number scope="col" { "measured" } th.number scope="col" { "error, %" }
                    th.number scope="col" { "mean response, ms, predicted" } th.number scope="col" { "measured" } th.number scope="col" { "error, %" }
                    th.number scope="col" { "host busy, %, predicted" } th.number scope="col" { "measured" }
                } }
                tbody { @for run in predicted { @for (index, one) in run.members.iter().enumerate() {
                    tr {
                        td.number { (run.tiles) }
                        td.number { (run.repetition + 1) }
                        th scope="row" { (one.member) }
                        (pair(rates(one)))
                        (pair(responses(one)))
                        td.number { @if index == 0 { (rounded(run.predicted_busy_percent, 0)) } }
                        td.number { @if index == 0 { (rounded(run.measured_busy_percent, 0)) } }
                    }
                } } }
            }
        }
    }
}
