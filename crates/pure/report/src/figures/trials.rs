//! Predictions against what happened: how often intervals held the truth, and every trial.

use virtbench_chart::{Axis, Chart, Dash, Form, Look, Point, Series, look};
use virtbench_model::predict::trials::coverage;
use virtbench_record::Trial;

use super::style::GREY;
use super::{Drawing, Figure, Values, Variant};
use crate::format::{rounded, significant};

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
pub(crate) fn scatter(trials: &[Trial]) -> Option<Figure> {
    let percent = |trial: &Trial, value: f64| (100.0 * value / trial.reference).max(1e-4);
    let points = trials.iter().map(|trial| {
        let interval = trial.intervals.last().map(|ends| ends.map(|end| percent(trial, end)));
        let hover = format!(
            "{}: predicted {}, measured {}",
            trial.case,
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
        ..Chart::new(Axis::logarithmic("measured, % of native"), Axis::logarithmic("predicted, % of native"))
    };
    let label =
        "Predicted against measured share of native capacity; the table under Case by case holds the values.";
    Some(Figure {
        title: "Predicted against measured".into(),
        caption: "Shares of the native capacity, both on logarithmic scales; each mark is a trial, its whisker the 95 % interval. \
                  On the line the prediction was right."
            .into(),
        drawings: vec![Drawing::only("scatter-chart", label.into(), Variant::chart("", chart))],
        values: Values::Own,
    })
}
