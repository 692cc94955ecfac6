//! Two runs of one plan compared: the sentences a reader takes away, a table for a pull request, and a page.

use std::fmt::Write as _;

use maud::{Markup, html};
use virtbench_chart::{Chart, Look, Shape};
use virtbench_model::before_after::{Change, ChangedEnvironment, ChangedPoint, Direction, Quantity};
use virtbench_model::platform::{Moved, PlatformsCompared};
use virtbench_model::{BeforeAfter, Span};

use super::figures::ratios::{Ratio, ratios, short_name};
use super::figures::style::{BETTER, GREY, INK, WORSE, dashed_rule};
use super::figures::{Drawing, Figure, Values, Variant};
use crate::format::{count, ratio, ratio_span, trimmed};
use crate::page::{document, opening, section};
use crate::takeaway::Takeaway;

/// Two runs compared, with the names that a reader knows them by.
#[derive(Debug, Clone, Copy)]
pub struct BeforeAfterPage<'a> {
    /// What was found.
    pub compared: &'a BeforeAfter,
    /// The run before, and the run after.
    pub runs: [&'a str; 2],
}

impl BeforeAfterPage<'_> {
    /// What a reader takes away.
    #[must_use]
    pub fn takeaway(&self) -> Takeaway {
        let details = self.compared.environments.iter().map(|environment| {
            let changes: Vec<String> = environment.overall.iter().map(in_words).collect();
            format!(
                "{} over {}: {}.",
                environment.name,
                count(environment.points.len(), "point"),
                changes.join("; ")
            )
        });
        let tallies = Quantity::ALL.into_iter().filter_map(|quantity| self.tally(quantity));
        Takeaway {
            headline: self.headline(),
            details: details.chain(tallies).collect(),
            cautions: self.cautions(),
        }
    }

    fn headline(&self) -> String {
        let environments = &self.compared.environments;
        if environments.is_empty() {
            return "The runs have no point in common, so there is nothing to compare.".into();
        }
        if let Some(worse) = self.worse() {
            return worse;
        }
        let busier =
            environments.iter().find_map(|environment| Some((&environment.name, environment.busier?)));
        if let Some((name, busier)) = busier {
            return format!("Not comparable: {}, beside {name}.", busier.words());
        }
        if !self.compared.is_judged() {
            return format!(
                "It cannot be told whether it got worse: {}.",
                self.compared.undecided.join("; ")
            );
        }
        let margin = self.margin();
        let all = |directions: &[Direction]| {
            environments.iter().all(|environment| {
                let mut overall = environment.overall.iter();
                !environment.overall.is_empty() && overall.all(|change| directions.contains(&change.verdict))
            })
        };
        // Of what could not be judged nothing good is said.
        let judged = if self.compared.undecided.is_empty() { "" } else { ", as far as it could be judged" };
        if all(&[Direction::Better]) {
            return format!("It got better by more than {margin}{judged}.");
        }
        if all(&[Direction::Equivalent, Direction::Better]) {
            return format!(
                "It did not get worse{judged}: on average everything is within {margin} of what it was, or better."
            );
        }
        format!(
            "It is not shown that anything got worse by more than {margin}, nor that nothing did: repeat more often, or on a \
             quieter host."
        )
    }

    /// What got worse beyond doubt.
    fn worse(&self) -> Option<String> {
        if !self.compared.is_regression() {
            return None;
        }
        let environments = &self.compared.environments;
        let mut worse: Vec<String> = environments.iter().filter_map(stopped).collect();
        for environment in environments {
            let changes =
                environment.overall.iter().filter(|change| change.regression && !change.is_stopped());
            worse.extend(changes.map(|change| {
                let what = change.quantity.name();
                format!("{}'s {what} is {} of what it was", environment.name, spanned(change))
            }));
        }
        if !worse.is_empty() {
            return Some(format!("It got worse: {}.", worse.join("; ")));
        }
        let points = environments.iter().flat_map(|environment| &environment.points);
        let points = points.filter(|point| point.changes.iter().any(|change| change.regression)).count();
        let mut overall = environments.iter().flat_map(|environment| &environment.overall);
        // Of so many comparisons some would look worse by chance.
        let seems_worse = overall.any(|change| change.verdict == Direction::Worse);
        let average = if seems_worse { "whether on average too is not sure" } else { "not on average" };
        Some(format!("It got worse at {}; {average}.", count(points, "point")))
    }

    fn tally(&self, quantity: Quantity) -> Option<String> {
        let tally = self.compared.tally(quantity);
        let all: usize = tally.values().sum();
        let parts: Vec<String> =
            tally.iter().map(|(direction, number)| format!("{} at {number}", direction.name())).collect();
        (all > 0).then(|| format!("At {}, {} is {}.", count(all, "point"), quantity.name(), parts.join(", ")))
    }

    fn cautions(&self) -> Vec<String> {
        let compared = self.compared;
        let mut cautions: Vec<String> =
            compared.differences.iter().map(|difference| format!("The runs differ: {difference}.")).collect();
        if !compared.alternated && !compared.environments.is_empty() {
            cautions.push(
                "The runs were not measured in turn: whatever else changed on the host between them is in these ratios."
                    .into(),
            );
        }
        match compared.runs_of_the_past {
            Some(runs) => cautions.push(format!(
                "How much runs of one configuration differ is known from {runs} comparable ones of the past, and is in these \
                 intervals."
            )),
            None if compared.runs == [1, 1] && !compared.environments.is_empty() => cautions.push(
                "How much two runs of one configuration differ by themselves is unknown here: the repetitions of a run do not show \
                 it, so it is in no interval. Comparable runs of the past tell, and so do sides measured in turn."
                    .into(),
            ),
            None => {}
        }
        cautions.extend(compared.undecided.iter().map(|reason| format!("Not judged: {reason}.")));
        cautions
    }

    fn margin(&self) -> String {
        format!("{} %", trimmed(100.0 * self.compared.margin, 2))
    }

    /// A table in Markdown, for a pull request: every environment, then the points that did not stay the same.
    #[must_use]
    pub fn markdown(&self) -> String {
        let Takeaway { headline, cautions, .. } = self.takeaway();
        let mut text = format!("**{headline}**\n\n");
        for caution in cautions {
            let _ = writeln!(text, "- {caution}");
        }
        let names: Vec<&str> = Quantity::ALL.iter().map(|quantity| quantity.name()).collect();
        let _ = writeln!(text, "\n| environment | point | {} |\n|---|---|---|---|---|", names.join(" | "));
        let mut row = |name: &str, point: &str, changes: &[Change]| {
            let cells = Quantity::ALL
                .map(|quantity| Change::find(changes, quantity).map_or_else(|| "–".into(), in_cell));
            let _ = writeln!(text, "| {name} | {point} | {} |", cells.join(" | "));
        };
        for environment in &self.compared.environments {
            row(&environment.name, "all", &environment.overall);
        }
        for (environment, point) in self.changed_points() {
            row(&environment.name, &point.point.to_string(), &point.changes);
        }
        let _ = writeln!(
            text,
            "\nAfter as a multiple of before, with intervals of 90 %, within {}. Points at which nothing was shown are left out.",
            self.margin()
        );
        text
    }

    /// Points at which something got better or worse.
    fn changed_points(&self) -> impl Iterator<Item = (&ChangedEnvironment, &ChangedPoint)> {
        let changed = |change: &Change| matches!(change.verdict, Direction::Better | Direction::Worse);
        self.compared
            .environments
            .iter()
            .flat_map(|environment| environment.points.iter().map(move |point| (environment, point)))
            .filter(move |(_, point)| point.changes.iter().any(changed))
    }

    /// One self-contained page, as written by a version of virtbench.
    #[must_use]
    pub fn html(&self, version: &str) -> String {
        let title = "Before and after";
        let figures = before_after(self.compared);
        let [before, after] = self.runs;
        let content = html! {
            (opening(title, &format!("{before} · {after}"), &self.takeaway(), &html! {}))
            (section("figures", "Every point", "The runs have no point in common.", &figures))
            section aria-labelledby="points" {
                h2 id="points" { "Numbers" }
                p.hint { "After as a multiple of before, with intervals of 90 %; within " (self.margin()) " counts as the same." }
                (self.table())
            }
        };
        document(title, version, &content)
    }

    fn table(&self) -> Markup {
        html! {
            div.scroll tabindex="0" role="region" aria-label="Numbers" {
                table {
                    thead { tr {
                        th scope="col" { "environment" } th scope="col" { "point" } th.number scope="col" { "repetitions" }
                        @for quantity in Quantity::ALL { th scope="col" { (quantity.name()) } }
                    } }
                    tbody { @for environment in &self.compared.environments {
                        (row(&environment.name, "all points", "", &environment.overall))
                        @for point in &environment.points {
                            @let [before, after] = point.repetitions;
                            (row(&environment.name, &point.point.to_string(), &format!("{before}, {after}"), &point.changes))
                        }
                    } }
                }
            }
        }
    }
}

fn row(name: &str, point: &str, repetitions: &str, changes: &[Change]) -> Markup {
    let class = |change: &Change| match change.verdict {
        Direction::Better => "higher",
        Direction::Worse => "lower",
        Direction::Equivalent | Direction::Undecided => "",
    };
    html! {
        tr {
            th scope="row" { (name) } td { (point) } td.number { (repetitions) }
            @for quantity in Quantity::ALL {
                @match Change::find(changes, quantity) {
                    Some(change) => td class=(class(change)) { (in_cell(change)) },
                    None => td { "–" },
                }
            }
        }
    }
}

/// `vm completed nothing at 2 of 3 points`.
fn stopped(environment: &ChangedEnvironment) -> Option<String> {
    let is_stopped = |point: &&ChangedPoint| point.changes.iter().any(Change::is_stopped);
    let points = environment.points.iter().filter(is_stopped).count();
    let all = count(environment.points.len(), "point");
    (points > 0)
        .then(|| format!("{} completed nothing in some repetition at {points} of {all}", environment.name))
}

/// `0.80 (0.78 to 0.82)`.
fn spanned(change: &Change) -> String {
    if change.is_stopped() {
        return "nothing completed".into();
    }
    if !change.ratio.is_finite() {
        return "nothing completed before".into();
    }
    let interval = change
        .interval
        .map_or_else(String::new, |[low, high]| format!(" ({})", ratio_span(Span { low, high })));
    format!("{}{interval}", ratio(change.ratio))
}

fn in_cell(change: &Change) -> String {
    format!("{}, {}", spanned(change), change.verdict.name())
}

fn in_words(change: &Change) -> String {
    format!("{} {}", change.quantity.name(), in_cell(change))
}

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

#[cfg(test)]
mod tests {
    use virtbench_record::PointKey;

    use super::*;

    /// One point that got worse beyond doubt, in an environment of which this is said on average.
    fn headline(overall: Direction) -> String {
        let change = |verdict, regression| Change {
            quantity: Quantity::ALL[0],
            ratio: 0.1,
            interval: Some([0.02, 0.6]),
            verdict,
            regression,
        };
        let point = PointKey { block_bytes: 4096, read_percent: 0, random_percent: 100 };
        let points =
            vec![ChangedPoint { point, repetitions: [4, 4], changes: vec![change(Direction::Worse, true)] }];
        let overall = vec![change(overall, false)];
        let compared = BeforeAfter {
            margin: 0.05,
            differences: Vec::new(),
            alternated: true,
            runs: [1, 1],
            runs_of_the_past: None,
            same_run: false,
            environments: vec![ChangedEnvironment { name: "vm".into(), overall, points, busier: None }],
            unmatched_environments: Vec::new(),
            unmatched_points: 0,
            undecided: Vec::new(),
        };
        BeforeAfterPage { compared: &compared, runs: ["before", "after"] }.takeaway().headline
    }

    #[test]
    fn the_headline_does_not_say_of_an_average_what_the_table_contradicts() {
        assert_eq!(headline(Direction::Undecided), "It got worse at 1 point; not on average.");
        let unsure = "It got worse at 1 point; whether on average too is not sure.";
        assert_eq!(headline(Direction::Worse), unsure);
    }
}
