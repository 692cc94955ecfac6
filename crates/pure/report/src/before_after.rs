//! Two runs of one plan compared: the sentences a reader takes away, a table for a pull request, and a page.

use std::fmt::Write as _;

use maud::{Markup, html};
use virtbench_model::before_after::{Change, ChangedEnvironment, ChangedPoint, Direction, Quantity};
use virtbench_model::{BeforeAfter, Span};

use crate::figures;
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
        let overall =
            || environments.iter().flat_map(|one| one.overall.iter().map(move |change| (one, change)));
        let worse: Vec<String> = overall()
            .filter(|(_, change)| change.regression)
            .map(|(environment, change)| {
                format!(
                    "{}'s {} is {} of what it was",
                    environment.name,
                    change.quantity.name(),
                    spanned(change)
                )
            })
            .collect();
        let margin = self.margin();
        if !worse.is_empty() {
            return format!("It got worse: {}.", worse.join("; "));
        }
        if self.compared.is_regression() {
            let points = environments.iter().flat_map(|environment| &environment.points);
            let worse = points.filter(|point| point.changes.iter().any(|change| change.regression)).count();
            // Of so many comparisons some would look worse by chance.
            let seems_worse = overall().any(|(_, change)| change.verdict == Direction::Worse);
            let average = if seems_worse { "whether on average too is not sure" } else { "not on average" };
            return format!("It got worse at {}; {average}.", count(worse, "point"));
        }
        if overall().all(|(_, change)| change.verdict == Direction::Better) {
            return format!("It got better by more than {margin}.");
        }
        if overall().all(|(_, change)| matches!(change.verdict, Direction::Equivalent | Direction::Better)) {
            return format!(
                "It did not get worse: on average everything is within {margin} of what it was, or better."
            );
        }
        format!(
            "It is not shown that anything got worse by more than {margin}, nor that nothing did: repeat more often, or on a \
             quieter host."
        )
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
        let points = || compared.environments.iter().flat_map(|environment| &environment.points);
        let single = points().filter(|point| point.repetitions.contains(&1)).count();
        if single > 0 {
            cautions.push(format!(
                "{} measured once on a side: judged by the values alone, and never called a regression.",
                if single == 1 { "1 point was".to_owned() } else { format!("{single} points were") }
            ));
        }
        if compared.unmatched_points > 0 {
            cautions.push(format!("{} in one run only and left out.", are(compared.unmatched_points)));
        }
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
            let cells =
                Quantity::ALL.map(|quantity| quantity.find(changes).map_or_else(|| "–".into(), in_cell));
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
        let figures = figures::before_after(self.compared);
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
                @match quantity.find(changes) {
                    Some(change) => td class=(class(change)) { (in_cell(change)) },
                    None => td { "–" },
                }
            }
        }
    }
}

/// `0.80 (0.78 to 0.82)`.
fn spanned(change: &Change) -> String {
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

fn are(points: usize) -> String {
    if points == 1 { "1 point is".into() } else { format!("{points} points are") }
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
            environments: vec![ChangedEnvironment { name: "vm".into(), overall, points }],
            unmatched_points: 0,
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
