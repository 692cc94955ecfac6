//! Two runs of a platform: the sentences a reader takes away, Markdown for a pull request, and a page.

use std::fmt::Write as _;

use maud::{Markup, html};
use virtbench_model::Span;
use virtbench_model::before_after::Direction;
use virtbench_model::platform::{Moved, MovedFigure, PlatformsCompared};

use crate::figures::Figure;
use crate::format::{ratio, ratio_span, trimmed, with_unit};
use crate::page::{document, opening, scroll, section};
use crate::takeaway::Takeaway;

/// So many figures of a domain are named.
const FIGURES: usize = 3;

/// Two runs of a platform, with the names that a reader knows them by.
#[derive(Debug, Clone, Copy)]
pub struct PlatformsPage<'a> {
    /// What was found.
    pub compared: &'a PlatformsCompared,
    /// The run before, and the run after.
    pub runs: [&'a str; 2],
}

impl PlatformsPage<'_> {
    /// Which domain moved, and why.
    #[must_use]
    pub fn takeaway(&self) -> Takeaway {
        let found = self.compared;
        let mut cautions = Vec::new();
        if let Some([before, after]) = &found.executed_by {
            cautions.push(format!(
                "Guests were executed by {before} before and by {after} after: the figures compare {before} with {after}, and nothing is judged."
            ));
        }
        cautions.extend(found.differences.iter().map(|one| format!("{one}.")));
        if !found.unmatched.is_empty() {
            cautions.push(format!(
                "{} in one run only: the scores are of other domains, and not compared.",
                found.unmatched.join(", ")
            ));
        }
        let nothing = &found.nothing_in_common;
        cautions.extend(nothing.iter().map(|name| format!("Of {name} the runs have no figure in common.")));
        let details = found.domains.iter().map(domain).collect();
        Takeaway { headline: headline(found), details, cautions }
    }

    /// The same in Markdown, for a pull request.
    #[must_use]
    pub fn markdown(&self) -> String {
        let Takeaway { headline, details, cautions } = self.takeaway();
        let mut text = format!("### Two runs of a platform\n\n**{headline}**\n\n");
        text += "| domain | before | after | times | verdict |\n|---|--:|--:|--:|---|\n";
        for moved in self.all() {
            let [before, after] = shares(moved);
            let (name, verdict) = (&moved.name, moved.verdict.name());
            // Writing into a string cannot fail.
            let _ = writeln!(text, "| {name} | {before} | {after} | {} | {verdict} |", spanned(moved));
        }
        for sentence in details.iter().chain(&cautions) {
            let _ = writeln!(text, "\n{sentence}");
        }
        text
    }

    /// One self-contained page, as written by a version of virtbench.
    #[must_use]
    pub fn html(&self, version: &str) -> String {
        let title = "Two runs of a platform";
        let [before, after] = self.runs;
        let figures: Vec<Figure> = crate::before_after::moved_domains(self.compared).into_iter().collect();
        // What details say in text stands in the tables.
        let takeaway = Takeaway { details: Vec::new(), ..self.takeaway() };
        let content = html! {
            (opening(title, &format!("{before} · {after}"), &takeaway, &html! {}))
            (section("domains", "Domain by domain", "The runs have no domain in common.", &figures))
            section aria-labelledby="numbers" {
                h2 id="numbers" { "Numbers" }
                p.hint { "After as a multiple of before, turned so that more is better, with intervals of 90 %. Less than "
                    (trimmed(100.0 * self.compared.margin, 2)) " % more or less counts as the same. A domain without a counterpart has no ratio: "
                    "its own figures are compared." }
                (self.table())
            }
            section aria-labelledby="why" {
                h2 id="why" { "Figures that moved" }
                (self.figures_that_moved())
            }
        };
        document(title, version, &content)
    }

    /// The score, then the domains.
    fn all(&self) -> impl Iterator<Item = &Moved> {
        self.compared.score.iter().chain(&self.compared.domains)
    }

    fn table(&self) -> Markup {
        let rows = html! { table {
            thead { tr {
                th scope="col" { "domain" } th.number scope="col" { "before" } th.number scope="col" { "after" }
                th.number scope="col" { "times" } th scope="col" { "verdict" }
            } }
            tbody { @for moved in self.all() {
                @let [before, after] = shares(moved);
                tr {
                    th scope="row" { (moved.name) }
                    td.number { (before) } td.number { (after) } td.number { (spanned(moved)) }
                    td class=(class(moved.verdict)) { (moved.verdict.name()) }
                }
            } }
        } };
        scroll("Numbers", &rows)
    }

    /// Each on both sides, so that it shows whether this host moved or its VMs did.
    fn figures_that_moved(&self) -> Markup {
        let moved: Vec<(&Moved, &MovedFigure)> = self
            .compared
            .domains
            .iter()
            .flat_map(|one| one.figures.iter().map(move |figure| (one, figure)))
            .collect();
        if moved.is_empty() {
            return html! { p { "No figure moved by more than the margin." } };
        }
        let rows = html! { table {
            thead { tr {
                th scope="col" { "domain" } th scope="col" { "figure" } th.number scope="col" { "before" } th.number scope="col" { "after" }
                th.number scope="col" { "times as good" }
            } }
            tbody { @for (domain, figure) in moved {
                @let [before, after] = figure.values.map(|value| with_unit(value, &figure.unit));
                tr {
                    th scope="row" { (domain.name) } td { (figure.name) }
                    td.number { (before) } td.number { (after) } td.number { (ratio(figure.times)) }
                }
            } }
        } };
        scroll("Figures that moved", &rows)
    }
}

fn class(verdict: Direction) -> &'static str {
    match verdict {
        Direction::Better => "higher",
        Direction::Worse => "lower",
        Direction::Equivalent | Direction::Undecided => "",
    }
}

/// What it was before and after of what it is compared with; a dash where it has no counterpart.
fn shares(moved: &Moved) -> [String; 2] {
    moved.ratios.map_or_else(|| ["–", "–"].map(String::from), |both| both.map(ratio))
}

/// `0.50 (0.48 to 0.52)`
fn spanned(moved: &Moved) -> String {
    let span = moved.interval.map(|[low, high]| format!(" ({})", ratio_span(Span { low, high })));
    format!("{}{}", ratio(moved.times), span.unwrap_or_default())
}

fn headline(found: &PlatformsCompared) -> String {
    let has_moved = |moved: &&Moved| matches!(moved.verdict, Direction::Worse | Direction::Better);
    let names: Vec<String> = found
        .domains
        .iter()
        .filter(has_moved)
        .map(|moved| format!("{} {} ({})", moved.name, moved.verdict.name(), ratio(moved.times)))
        .collect();
    let score = found.score.as_ref().map_or_else(
        || "The scores cannot be compared".to_owned(),
        |score| {
            let [before, after] = shares(score);
            format!("The score was {before} and is {after} ({})", score.verdict.name())
        },
    );
    match names.as_slice() {
        [] => format!("{score}; no domain is shown to have moved."),
        names => format!("{score}; moved: {}.", names.join(", ")),
    }
}

fn domain(moved: &Moved) -> String {
    let span = moved
        .interval
        .map_or_else(String::new, |[low, high]| format!(", 90 % interval {} to {}", ratio(low), ratio(high)));
    let [before, after] = shares(moved);
    let both = moved.ratios.map_or_else(String::new, |_| format!("{before} before, {after} after, "));
    let mut sentence =
        format!("{}: {both}{} times{span}: {}.", moved.name, ratio(moved.times), moved.verdict.name());
    let why: Vec<String> = moved.figures.iter().take(FIGURES).map(figure).collect();
    if !why.is_empty() {
        let _ = write!(sentence, " Figures that moved: {}.", why.join("; "));
    }
    sentence
}

fn figure(moved: &MovedFigure) -> String {
    let [before, after] = moved.values.map(|value| with_unit(value, &moved.unit));
    format!("{} {before} to {after}", moved.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(name: &str, times: f64, verdict: Direction) -> Moved {
        Moved {
            name: name.into(),
            ratios: Some([0.5, 0.5 * times]),
            times,
            interval: Some([times * 0.9, times * 1.1]),
            verdict,
            regression: verdict == Direction::Worse,
            figures: vec![MovedFigure {
                name: "throughput (vm)".into(),
                unit: "B/s".into(),
                values: [2e8, 2e8 * times],
                times,
            }],
        }
    }

    fn compared(executed_by: Option<[String; 2]>) -> PlatformsCompared {
        PlatformsCompared {
            margin: 0.05,
            differences: Vec::new(),
            executed_by,
            score: Some(moved("score of storage", 0.5, Direction::Worse)),
            domains: vec![moved("storage", 0.5, Direction::Worse)],
            unmatched: Vec::new(),
            nothing_in_common: Vec::new(),
        }
    }

    #[test]
    fn the_domain_that_moved_stands_first_and_its_figures_say_why() {
        let compared = compared(None);
        let page = PlatformsPage { compared: &compared, runs: ["before", "after"] };
        let said = page.takeaway();
        assert_eq!(said.headline, "The score was 0.50 and is 0.25 (worse); moved: storage worse (0.50).");
        assert!(said.details[0].contains("throughput (vm) 200 MB/s to 100 MB/s"), "{:?}", said.details);
        let markdown = page.markdown();
        assert!(markdown.contains("| storage | 0.50 | 0.25 | 0.50 (0.45 to 0.55) | worse |"), "{markdown}");
        let html = page.html("0");
        assert!(html.contains("throughput (vm)") && html.contains("200 MB/s"), "{html}");
    }

    #[test]
    fn another_accelerator_is_the_first_thing_that_is_said() {
        let compared = compared(Some(["KVM".into(), "TCG".into()]));
        let said = PlatformsPage { compared: &compared, runs: ["before", "after"] }.takeaway();
        assert!(said.cautions[0].contains("by KVM before and by TCG after"), "{:?}", said.cautions);
    }
}
