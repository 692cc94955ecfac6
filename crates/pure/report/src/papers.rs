//! Runs beside the conclusions of papers, for a document.

use std::fmt::Write as _;

use virtbench_model::papers::PaperRun;
use virtbench_record::{ClaimVerdict, JudgedClaim, PaperTable, PapersSummary};

use crate::forms::escaped;
use crate::provenance::started;

/// How to read it.
const HOW: &str = "`virtbench papers` made this of the runs that are named at the end. Below each table stands the rule by which a conclusion is said \
                   to hold; where it does not, what differs between the paper's machines and others.";

/// A table for each paper, what decided each conclusion, and the runs.
#[must_use]
pub fn papers_markdown(judged: &PapersSummary, runs: &[PaperRun<'_>]) -> String {
    let platforms = platforms(&judged.claims);
    // Writing into a string cannot fail.
    let mut text = String::from("# The papers' conclusions beside ours\n");
    let _ = write!(text, "\n{}\n\n{HOW}\n", headline(judged));
    let mut papers: Vec<&str> = Vec::new();
    for claim in &judged.claims {
        if !papers.contains(&claim.paper.as_str()) {
            papers.push(&claim.paper);
        }
    }
    for paper in papers {
        let own: Vec<&JudgedClaim> = judged.claims.iter().filter(|claim| claim.paper == paper).collect();
        let _ = write!(text, "\n## {paper}\n\n{}\n{}", table(&own, &platforms), grounds(&own));
        let tables = judged.tables.iter().filter(|table| table.paper == paper);
        text.extend(tables.map(|table| published_table(table, &platforms)));
    }
    let _ = write!(text, "\n## Runs\n\n{}", runs.iter().map(run_line).collect::<String>());
    text
}

/// How many conclusions hold, platform by platform over all.
fn headline(judged: &PapersSummary) -> String {
    let measured = judged.claims.iter().filter(|claim| !claim.findings.is_empty()).count();
    let unmeasured = match judged.claims.len() - measured {
        0 => String::new(),
        unmeasured => format!(" {unmeasured} were not measured."),
    };
    let per_platform: Vec<String> = platforms(&judged.claims)
        .iter()
        .map(|platform| {
            let own = || {
                judged.claims.iter().flat_map(|claim| &claim.findings).filter(|one| one.platform == *platform)
            };
            let hold = own().filter(|one| one.verdict == ClaimVerdict::Holds).count();
            let open = match own().filter(|one| one.verdict == ClaimVerdict::Open).count() {
                0 => String::new(),
                1 => ", 1 is open".to_owned(),
                open => format!(", {open} are open"),
            };
            format!(" On {} {hold} of {} hold{open}.", escaped(platform), own().count())
        })
        .collect();
    let all = judged.claims.len();
    format!("{measured} of {all} conclusions were measured here.{}{unmeasured}", per_platform.concat())
}

fn platforms(claims: &[JudgedClaim]) -> Vec<String> {
    let mut platforms: Vec<String> = Vec::new();
    for finding in claims.iter().flat_map(|claim| &claim.findings) {
        if !platforms.contains(&finding.platform) {
            platforms.push(finding.platform.clone());
        }
    }
    platforms
}

fn table(claims: &[&JudgedClaim], platforms: &[String]) -> String {
    let known: Vec<&String> = platforms
        .iter()
        .filter(|platform| {
            claims.iter().flat_map(|claim| &claim.findings).any(|one| one.platform == **platform)
        })
        .collect();
    let heads = ["conclusion", "published"].map(str::to_owned).into_iter();
    let mut text = cells(heads.chain(known.iter().map(|platform| escaped(platform))).collect());
    let _ = writeln!(text, "|{}", "---|".repeat(2 + known.len()));
    for claim in claims {
        let opening =
            [format!("{} ({})", escaped(&claim.words), escaped(&claim.place)), escaped(&claim.published)];
        let found = known.iter().map(|platform| {
            let finding = claim.findings.iter().find(|one| one.platform == **platform);
            finding.map_or_else(
                || "-".to_owned(),
                |one| format!("**{}**: {}", one.verdict.words(), escaped(&one.figures)),
            )
        });
        text += &cells(opening.into_iter().chain(found).collect());
    }
    text
}

/// A table of a paper, with a column for each platform that was measured, those of conclusions first.
fn published_table(table: &PaperTable, order: &[String]) -> String {
    let mut platforms: Vec<&str> = Vec::new();
    for cell in table.rows.iter().flat_map(|row| &row.found) {
        if !platforms.contains(&cell.platform.as_str()) {
            platforms.push(&cell.platform);
        }
    }
    platforms.sort_by_key(|name| order.iter().position(|known| known == name).unwrap_or(usize::MAX));
    let mut text = format!("\n### {} ({})\n\n", escaped(&table.title), escaped(&table.place));
    if platforms.is_empty() {
        let _ = write!(text, "Not measured: `virtbench {}`.\n\n", table.study);
    }
    let heads = ["", "published"].into_iter().chain(platforms.iter().copied());
    text += &cells(heads.map(escaped).collect());
    let _ = writeln!(text, "|{}", "---|".repeat(2 + platforms.len()));
    for row in &table.rows {
        let found = platforms.iter().map(|platform| {
            let cell = row.found.iter().find(|cell| cell.platform == *platform);
            cell.map_or_else(|| "-".to_owned(), |cell| escaped(&cell.figure))
        });
        text += &cells([escaped(&row.what), escaped(&row.published)].into_iter().chain(found).collect());
    }
    text
}

/// A line of a table.
fn cells(cells: Vec<String>) -> String {
    format!("| {} |\n", cells.join(" | "))
}

/// What each conclusion is held by; where it does not hold what differs, and where nothing was measured what would.
fn grounds(claims: &[&JudgedClaim]) -> String {
    let line = |claim: &&JudgedClaim| {
        let mut line =
            format!("- {} It is said to hold where {}.", escaped(&claim.words), escaped(&claim.rule));
        if claim.findings.iter().any(|one| one.verdict == ClaimVerdict::Fails) {
            let _ = write!(line, " What differs: {}", escaped(&claim.differs));
        }
        if claim.findings.is_empty() {
            let _ = write!(line, " Not measured: `virtbench {}`.", claim.study);
        }
        line + "\n"
    };
    claims.iter().map(line).collect()
}

fn run_line(run: &PaperRun<'_>) -> String {
    let facts = &run.provenance.host;
    format!(
        "- `{}`: {}, {} x {}, {}; virtbench {}\n",
        run.folder,
        started(run.provenance),
        facts.processors,
        escaped(&facts.cpu),
        escaped(&facts.kernel),
        escaped(&run.provenance.version)
    )
}

#[cfg(test)]
mod tests {
    use virtbench_model::papers::judge_claims;
    use virtbench_record::Records;
    use virtbench_samples::grid;

    use super::*;

    #[test]
    fn a_document_says_of_each_conclusion_whether_it_holds_or_what_would_measure_it() {
        let plan = grid::small_plan();
        let records = Records::Points(grid::records(&plan));
        let provenance = grid::provenance(plan);
        let runs = [PaperRun { folder: "out/disk", provenance: &provenance, records: &records }];
        let text = papers_markdown(&judge_claims(&runs), &runs);
        for words in [
            "## \\[VirtualFence 2013\\]",
            "holds**: ",
            "`virtbench study oltp`",
            "- `out/disk`: 2025-06-15",
            "### Throughput in the VM over native",
            "| average | 0.95, 1.08, 0.92 (three machines) | 0.",
        ] {
            assert!(text.contains(words) || text.contains(&words.replace('\\', "")), "{words}: {text}");
        }
        let columns = |line: &str| line.matches(" | ").count();
        for table in text.split("\n\n").filter(|part| part.starts_with('|')) {
            let mut lines = table.lines().filter(|line| line.starts_with("| "));
            let head = columns(lines.next().unwrap());
            assert!(lines.all(|line| columns(line) == head), "{table}");
        }
    }

    #[test]
    fn without_runs_it_says_that_nothing_was_measured() {
        let text = papers_markdown(&judge_claims(&[]), &[]);
        assert!(text.contains("0 of 30 conclusions were measured here. 30 were not measured."), "{text}");
    }
}
