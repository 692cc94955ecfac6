//! Two runs compared: every point's ratio, after to before.

use virtbench_chart::{Chart, Look, Shape};
use virtbench_model::before_after::{Change, ChangedEnvironment, Direction, Quantity};
use virtbench_model::platform::{Moved, PlatformsCompared};
use virtbench_model::{BeforeAfter, Span};

use super::ratios::{Ratio, ratios, short_name};
use super::style::{BETTER, GREY, INK, WORSE, dashed_rule};
use super::{Drawing, Figure, Values, Variant};
use crate::format::{ratio, ratio_span};

/// Verdicts in the order of their looks.
const DIRECTIONS: [(Direction, u8, Shape); 4] = [
    (Direction::Worse, WORSE, Shape::Triangle),
    (Direction::Better, BETTER, Shape::Diamond),
    (Direction::Equivalent, INK, Shape::Circle),
    (Direction::Undecided, GREY, Shape::Circle),
];

/// A figure for each environment, throughput beside latency.
pub(crate) fn before_after(compared: &BeforeAfter) -> Vec<Figure> {
    let figures = compared.environments.iter().enumerate().map(|(index, environment)| Figure {
        title: environment.name.clone(),
        caption: format!(
            "Each mark is a point of {}, named by block size, % read / % random: after divided by before. Whiskers are 90 % \
             intervals; what is shaded is within the margin.",
            environment.name
        ),
        drawings: [Quantity::Throughput, Quantity::P99Latency]
            .into_iter()
            .filter_map(|quantity| drawing(index, environment, quantity, compared.margin))
            .collect(),
        values: Values::Under("Numbers"),
    });
    figures.filter(|figure| !figure.drawings.is_empty()).collect()
}

fn drawing(
    index: usize,
    environment: &ChangedEnvironment,
    quantity: Quantity,
    margin: f64,
) -> Option<Drawing> {
    let points =
        environment.points.iter().filter_map(|point| Some((point, Change::find(&point.changes, quantity)?)));
    // What completed nothing stands in the table.
    let points = points.filter(|(_, change)| change.ratio.is_finite());
    let points = points.map(|(point, change)| {
        let interval = change.interval.map(|[low, high]| Span { low, high });
        let words =
            interval.map_or_else(|| "no interval".into(), |span| format!("90 %: {}", ratio_span(span)));
        Ratio {
            name: short_name(point.point),
            value: change.ratio,
            interval,
            hover: format!("{}\n{}, {}\n{words}", point.point, ratio(change.ratio), change.verdict.name()),
            look: look_of(change.verdict),
        }
    });
    let mut points: Vec<Ratio> = points.collect();
    if points.is_empty() {
        return None;
    }
    points.sort_by(|one, other| one.value.total_cmp(&other.value));
    let chart = changes(&points, margin);
    let label = format!(
        "{} of {} at {} points, after divided by before. The table under Numbers holds the values.",
        quantity.name(),
        environment.name,
        points.len()
    );
    let id = format!("change-{index}-{}", quantity.name().replace(' ', "-"));
    Some(Drawing::only(&id, label, Variant::chart(quantity.name(), chart)))
}

fn look_of(verdict: Direction) -> usize {
    DIRECTIONS.iter().position(|(direction, ..)| *direction == verdict).unwrap_or(0)
}

/// Changes with their verdicts; what is within the margin is shaded.
fn changes(points: &[Ratio], margin: f64) -> Chart {
    let looks = DIRECTIONS
        .map(|(direction, colour, shape)| (direction.name(), Look::of_colour(colour).shaped(shape)));
    let chart = ratios("after / before", points, &looks, vec![dashed_rule(1.0, "as before")]);
    Chart { bands: vec![[1.0 / (1.0 + margin), 1.0 + margin]], ..chart }
}

/// The score and the domains of two runs of a platform. Nothing where they have none in common.
pub(crate) fn moved_domains(compared: &PlatformsCompared) -> Option<Figure> {
    let row = |(name, moved): (&str, &Moved)| {
        let interval = moved.interval.map(|[low, high]| Span { low, high });
        let words =
            interval.map_or_else(|| "no interval".into(), |span| format!("90 %: {}", ratio_span(span)));
        Ratio {
            name: name.to_owned(),
            value: moved.times,
            interval,
            hover: format!("{}\n{}, {}\n{words}", moved.name, ratio(moved.times), moved.verdict.name()),
            look: look_of(moved.verdict),
        }
    };
    let score = compared.score.iter().map(|score| ("score", score));
    let domains = compared.domains.iter().map(|moved| (moved.name.as_str(), moved));
    let all: Vec<Ratio> = score.chain(domains).filter(|(_, one)| one.times.is_finite()).map(row).collect();
    if all.is_empty() {
        return None;
    }
    let label = "Each domain, after divided by before. The table under Numbers holds the values.".into();
    Some(Figure {
        title: "Domain by domain".into(),
        caption: "Each mark is a domain: after divided by before, turned so that more is better. Whiskers are 90 % intervals; what is \
                  shaded is within the margin."
            .into(),
        drawings: vec![Drawing::only("moved", label, Variant::chart("", changes(&all, compared.margin)))],
        values: Values::Under("Numbers"),
    })
}
