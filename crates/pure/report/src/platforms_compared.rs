//! Two runs of a platform in sentences and as Markdown.

use std::fmt::Write as _;

use virtbench_model::before_after::Direction;
use virtbench_model::platform::{Moved, MovedFigure, PlatformsCompared};

use crate::format::{ratio, with_unit};
use crate::takeaway::Takeaway;

/// So many figures of a domain are named.
const FIGURES: usize = 3;

/// Which domain moved, and why.
#[must_use]
pub fn platforms_compared(found: &PlatformsCompared) -> Takeaway {
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
    let details = found.domains.iter().map(domain).collect();
    Takeaway { headline: headline(found), details, cautions }
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
            let [before, after] = score.ratios.map(ratio);
            format!("The score was {before} and is {after} ({})", score.verdict.name())
        },
    );
    match names.as_slice() {
        [] => format!("{score}; no domain is shown to have moved."),
        names => format!("{score}; moved: {}.", names.join(", ")),
    }
}

fn domain(moved: &Moved) -> String {
    let [before, after] = moved.ratios.map(ratio);
    let span = moved
        .interval
        .map_or_else(String::new, |[low, high]| format!(", 90 % interval {} to {}", ratio(low), ratio(high)));
    let mut sentence = format!(
        "{}: {before} before, {after} after, {} times{span}: {}.",
        moved.name,
        ratio(moved.times),
        moved.verdict.name()
    );
    let why: Vec<String> = moved.figures.iter().take(FIGURES).map(figure).collect();
    if !why.is_empty() {
        // Writing into a string cannot fail.
        let _ = write!(sentence, " Figures that moved: {}.", why.join("; "));
    }
    sentence
}

fn figure(moved: &MovedFigure) -> String {
    let [before, after] = moved.values.map(|value| with_unit(value, &moved.unit));
    format!("{} {before} to {after}", moved.name)
}

/// The same in Markdown, for a pull request.
#[must_use]
pub fn platforms_markdown(found: &PlatformsCompared) -> String {
    let Takeaway { headline, details, cautions } = platforms_compared(found);
    let mut text = format!("### Two runs of a platform\n\n**{headline}**\n\n");
    text += "| domain | before | after | times | verdict |\n|---|--:|--:|--:|---|\n";
    for moved in found.score.iter().chain(&found.domains) {
        let [before, after] = moved.ratios.map(ratio);
        let verdict = moved.verdict.name();
        let _ =
            writeln!(text, "| {} | {before} | {after} | {} | {verdict} |", moved.name, ratio(moved.times));
    }
    for sentence in details.iter().chain(&cautions) {
        let _ = writeln!(text, "\n{sentence}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(name: &str, times: f64, verdict: Direction) -> Moved {
        Moved {
            name: name.into(),
            ratios: [0.5, 0.5 * times],
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
        }
    }

    #[test]
    fn the_domain_that_moved_stands_first_and_its_figures_say_why() {
        let said = platforms_compared(&compared(None));
        assert_eq!(said.headline, "The score was 0.50 and is 0.25 (worse); moved: storage worse (0.50).");
        assert!(said.details[0].contains("throughput (vm) 200 MB/s to 100 MB/s"), "{:?}", said.details);
        let markdown = platforms_markdown(&compared(None));
        assert!(markdown.contains("| storage | 0.50 | 0.25 | 0.50 | worse |"), "{markdown}");
    }

    #[test]
    fn another_accelerator_is_the_first_thing_that_is_said() {
        let said = platforms_compared(&compared(Some(["KVM".into(), "TCG".into()])));
        assert!(said.cautions[0].contains("by KVM before and by TCG after"), "{:?}", said.cautions);
    }
}
