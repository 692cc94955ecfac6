//! Tiles on several configurations: the sentences a reader takes away, their numbers and figure, their page and their rows of CSV.

use csv::Writer;
use maud::{Markup, html};
use virtbench_chart::{Axis, Chart, Form, Look, Point, Scale, Series, Shape, look};
use virtbench_model::tiles::{TileChange, TileConfiguration, TileStep};
use virtbench_model::tiles_study::{NO_MEMBER, tile_rows};
use virtbench_model::{Estimate, TilesAnalysis};
use virtbench_record::{INFRASTRUCTURE, TILE_COLUMNS, TileDone, TileRow, TileTable, TilesPlan, TilesRecord};

use super::figures::style::INK;
use super::figures::{Drawing, Figure, Values, Variant};
use crate::configurations::facts;
use crate::format::{count, ratio, ratio_span, rounded, significant};
use crate::page::{document, opening, section};
use crate::rows::{CsvError, text};
use crate::takeaway::Takeaway;

/// A table of tiles with what follows from it.
#[derive(Debug, Clone, Copy)]
pub struct TilesPage<'a> {
    /// The table.
    pub table: &'a TileTable,
    /// What follows from it.
    pub analysis: &'a TilesAnalysis,
}

impl TilesPage<'_> {
    /// What a reader takes away.
    #[must_use]
    pub fn takeaway(&self) -> Takeaway {
        of_tiles(self.analysis)
    }

    /// One self-contained page.
    #[must_use]
    pub fn html(&self) -> String {
        let title = self.table.facts.get("title").unwrap_or("Tiles");
        let place = self.table.facts.get("host").unwrap_or("a table of results");
        let drawn: Vec<_> = tiles_figure(self.analysis).into_iter().collect();
        let content = html! {
            (opening(title, place, &self.takeaway(), &html! {}))
            (section("score", "Score over tiles", "No run has a score.", &drawn))
            section aria-labelledby="counts" {
                h2 id="counts" { "Every number of tiles" }
                (tiles_table(self.analysis))
            }
            section aria-labelledby="provenance" {
                h2 id="provenance" { "Provenance" }
                (facts(&self.table.facts))
            }
        };
        document(title, env!("CARGO_PKG_VERSION"), &content)
    }
}

/// How many missing figures are named.
const NAMED: usize = 4;

/// How many tiles fit on each configuration, and what changed.
pub(crate) fn of_tiles(analysis: &TilesAnalysis) -> Takeaway {
    let mut sentences: Vec<String> = analysis.configurations.iter().map(fits).collect();
    let others = 1..analysis.configurations.len();
    sentences.extend(others.filter_map(|index| Some(changed(analysis, widest(analysis, index)?))));
    sentences.extend(analysis.configurations.iter().filter_map(confidence));
    let mut sentences = sentences.into_iter();
    let headline = sentences.next().unwrap_or_else(|| "There is no tile.".into());
    Takeaway { headline, details: sentences.collect(), cautions: cautions(analysis) }
}

fn fits(one: &TileConfiguration) -> String {
    let broke = one.too_many().map(broke);
    match (one.most(), broke) {
        (None, Some(broke)) => format!("No tile fits on {}: {broke}.", one.name),
        (None, None) => format!("Nothing was measured on {}.", one.name),
        (Some(most), broke) if !most.levels_known => format!(
            "Whether {} fits on {} is not known{}: the table does not say whether service levels were held{}.",
            count(most.tiles as usize, "tile"),
            one.name,
            score(most),
            broke.map_or_else(String::new, |broke| format!("; {broke}"))
        ),
        (Some(most), broke) => format!(
            "{} fits {}{}; {}.",
            one.name,
            count(most.tiles as usize, "tile"),
            score(most),
            broke.unwrap_or_else(|| "more were not tried".into())
        ),
    }
}

fn confidence(one: &TileConfiguration) -> Option<String> {
    let (most, share) = (one.most()?, one.holds_at_least()?);
    if !most.levels_known {
        return None;
    }
    let runs = if most.runs == 1 { "The only run".into() } else { format!("All {} runs", most.runs) };
    Some(format!(
        "{runs} with {} on {} kept every service level: with 95 % confidence at least {} % of such runs do.",
        count(most.tiles as usize, "tile"),
        one.name,
        rounded(100.0 * share, 0)
    ))
}

/// The comparison with the most tiles that fit on both; where none do, with the most that both have.
fn widest(analysis: &TilesAnalysis, index: usize) -> Option<&TileChange> {
    let fits = |change: &TileChange| {
        [0, index]
            .iter()
            .all(|one| analysis.configurations[*one].most().is_some_and(|most| most.tiles >= change.tiles))
    };
    let own = analysis.changes.iter().filter(|change| change.configuration == index);
    own.max_by_key(|change| (fits(change), change.tiles))
}

fn score(step: &TileStep) -> String {
    let Some(score) = step.score() else { return ", without a score".into() };
    let span = score.span().map_or_else(String::new, |span| {
        format!(" ({} to {})", significant(span.low), significant(span.high))
    });
    format!(", score {}{span}", significant(score.mean))
}

fn broke(step: &TileStep) -> String {
    let with = count(step.tiles as usize, "tile");
    let broken = format!("in {} of {}", step.runs - step.held, count(step.runs as usize, "run"));
    match step.weakest() {
        Some(member) if member.name == NO_MEMBER => format!("{with} could not start, {broken}"),
        Some(member) => format!("with {with} {} breaks its service levels, {broken}", member.name),
        None => format!("with {with} a service level is broken"),
    }
}

fn changed(analysis: &TilesAnalysis, change: &TileChange) -> String {
    let name = |index: usize| &analysis.configurations[index].name;
    let span = |ratio: &virtbench_model::Ratio| {
        ratio.interval.map_or_else(String::new, |span| format!(" ({})", ratio_span(span)))
    };
    let moved = change.members.first().map_or_else(String::new, |(member, moved)| {
        format!("; {member} moved most: {} times{}", ratio(moved.value), span(moved))
    });
    format!(
        "With {} {} scores {} times what {} does{}{moved}.",
        count(change.tiles as usize, "tile"),
        name(change.configuration),
        ratio(change.sum.value),
        name(0),
        span(&change.sum)
    )
}

fn cautions(analysis: &TilesAnalysis) -> Vec<String> {
    let mut cautions = Vec::new();
    let steps = || analysis.configurations.iter().flat_map(|one| &one.steps);
    if steps().all(|step| step.runs < 3) {
        cautions.push("No number of tiles was run three times, so nothing is known of the spread.".into());
    }
    for one in &analysis.configurations {
        let gap = one.steps.windows(2).find(|pair| pair[1].tiles > pair[0].tiles + 1);
        if let Some([before, after]) = gap.map(|pair| [pair[0].tiles, pair[1].tiles]) {
            cautions.push(format!("{}: nothing is known between {before} and {after} tiles.", one.name));
        }
        for step in one.steps.iter().filter(|step| !step.missing.is_empty()) {
            let more = step.missing.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let named = step.missing.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
            cautions.push(format!(
                "{} with {}: a run without all its members has no score. Missing: {named}{more}.",
                one.name,
                count(step.tiles as usize, "tile")
            ));
        }
    }
    cautions
}

/// Whether management operations ran beside any tiles.
fn has_infrastructure(analysis: &TilesAnalysis) -> bool {
    analysis.configurations.iter().flat_map(|one| &one.steps).any(|step| step.infrastructure.is_some())
}

fn mean(estimate: Option<Estimate>) -> String {
    estimate.map_or_else(|| "–".into(), |estimate| significant(estimate.mean))
}

/// A row for each number of tiles, and under each what its members did.
pub(crate) fn tiles_table(analysis: &TilesAnalysis) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Every number of tiles" {
            table {
                thead { tr {
                    th scope="col" { "configuration" }
                    th.number scope="col" { "tiles" }
                    th.number scope="col" { "runs that held" }
                    th.number scope="col" { "score" }
                    @if has_infrastructure(analysis) {
                        th.number scope="col" { "applications" }
                        th.number scope="col" { "infrastructure" }
                    }
                    th.number scope="col" { "fairness" }
                    th scope="col" { "members: of the reference, of one tile, times broken" }
                } }
                tbody {
                    @for one in &analysis.configurations { @for step in &one.steps { tr {
                        th scope="row" { (one.name) }
                        td.number { (step.tiles) }
                        td.number { (step.held) " of " (step.runs) }
                        td.number { @match step.total {
                            Some(sum) => {
                                (significant(sum.mean))
                                @if let Some(span) = sum.span() { " " small { (significant(span.low)) " to " (significant(span.high)) } }
                                @if !step.fits() { " " small { "void" } }
                            }
                            None => "–",
                        } }
                        @if has_infrastructure(analysis) {
                            td.number { (mean(step.sum)) }
                            td.number { (mean(step.infrastructure)) }
                        }
                        td.number { @match step.jain { Some(jain) => (rounded(jain, 3)), None => "–" } }
                        td { @for member in &step.members {
                            div { (member.name) ": "
                                @match member.normalised { Some(done) => (ratio(done.mean)), None => "not scored" }
                                @if let Some(left) = member.of_one_tile { ", " (ratio(left.value)) }
                                @if member.broken > 0 { ", " strong { (member.broken) " broken" } }
                            }
                        } }
                    } } }
                }
            }
        }
    }
}

/// Two drawings: the score, a line for each configuration; what is left to each member of the first configuration. Nothing
/// without a score.
pub(crate) fn tiles_figure(analysis: &TilesAnalysis) -> Option<Figure> {
    let mut steps = analysis.configurations.iter().flat_map(|one| &one.steps);
    steps.any(|step| step.total.is_some()).then_some(())?;
    Some(Figure {
        title: "Tiles against score, and what is left to each member".into(),
        caption: "The sum of the tiles' scores, weighed with the infrastructure load where there was one. A cross is a number of tiles at which a member broke its service levels: it has \
                  no score. What is left is of what a member does with one tile."
            .into(),
        drawings: vec![scores(analysis), members(analysis)],
        values: Values::Own,
    })
}

fn scores(analysis: &TilesAnalysis) -> Drawing {
    let mut series: Vec<Series> = Vec::new();
    for (index, one) in analysis.configurations.iter().enumerate() {
        let points = one.steps.iter().filter_map(|step| {
            let (sum, tiles) = (step.total?.mean, step.tiles);
            let (held, runs) = (step.held, step.runs);
            let hover =
                format!("{}\n{tiles} tiles: {}\n{held} of {runs} runs held", one.name, significant(sum));
            Some(Point::new(f64::from(tiles), sum).hover(hover))
        });
        let points = points.collect();
        series.push(Series { name: one.name.clone(), look: look(index), form: Form::Marked, points });
    }
    let steps = analysis.configurations.iter().flat_map(|one| &one.steps);
    let void = steps.filter_map(|step| {
        let sum = step.total.filter(|_| !step.fits())?.mean;
        Some(Point::new(f64::from(step.tiles), sum).hover(format!("{} tiles: void", step.tiles)))
    });
    let look = Look::of_colour(INK).shaped(Shape::Cross);
    series.push(Series { name: "void".into(), look, form: Form::Marks, points: void.collect() });
    drawing("tiles-score", "score", series)
}

fn members(analysis: &TilesAnalysis) -> Drawing {
    let steps = analysis.configurations.first().map_or(&[][..], |one| one.steps.as_slice());
    let mut names: Vec<&str> = Vec::new();
    for one in steps.iter().flat_map(|step| &step.members) {
        if !names.contains(&one.name.as_str()) {
            names.push(&one.name);
        }
    }
    let lines = names.iter().enumerate().map(|(index, name)| {
        let left = |step: &TileStep| step.members.iter().find(|one| one.name == *name)?.of_one_tile;
        let points = steps.iter().filter_map(|step| {
            let left = left(step)?.value;
            let hover = format!("{name}\n{} tiles: {}", step.tiles, ratio(left));
            Some(Point::new(f64::from(step.tiles), left).hover(hover))
        });
        Series { name: (*name).into(), look: look(index), form: Form::Marked, points: points.collect() }
    });
    drawing("tiles-members", "of what it does with one tile", lines.collect())
}

fn drawing(id: &str, quantity: &str, series: Vec<Series>) -> Drawing {
    let chart = Chart { series, ..Chart::new(Axis::new("tiles", Scale::Whole), Axis::from_zero(quantity)) };
    let label = format!("{quantity} against tiles; the table below holds the values.");
    Drawing::only(id, label, Variant::chart(quantity, chart))
}

/// One row for each member of each tile of every run that counts.
pub(crate) fn tiles_csv(plan: &TilesPlan, records: &[TilesRecord]) -> Result<String, CsvError> {
    let mut writer = Writer::from_writer(Vec::new());
    writer.write_record(TILE_COLUMNS)?;
    for row in tile_rows(plan, records) {
        let done = done(records, &row);
        let number = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
        let part = |place: usize| row.done.map_or_else(String::new, |done| done[place].to_string());
        let percentile = plan.member(&row.member).map_or(0.0, |member| member.levels.percentile);
        writer.write_record([
            row.configuration.clone(),
            row.repetition.to_string(),
            row.tiles.to_string(),
            if row.tile == INFRASTRUCTURE { "infrastructure".into() } else { row.tile.to_string() },
            row.member.clone(),
            part(0),
            part(1),
            if row.held == Some(true) { "yes".to_owned() } else { "no".to_owned() },
            number(done.and_then(|done| done.response_ns(percentile))),
            number(done.and_then(|done| done.completed)),
            number(done.map(|done| done.failed)),
        ])?;
    }
    text(writer)
}

/// What is behind a row.
fn done<'a>(records: &'a [TilesRecord], row: &TileRow) -> Option<&'a TileDone> {
    let mut counts = records.iter().filter(|record| record.void().is_none());
    let record =
        counts.rfind(|record| record.key.tiles == row.tiles && record.key.repetition == row.repetition)?;
    let members = &record.measured()?.members;
    members.iter().find(|one| one.tile == row.tile && one.member == row.member)?.done.as_ref()
}
