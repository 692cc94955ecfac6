//! An application on several sides: the sentences a reader takes away, its numbers and figures, its page and its rows of CSV;
//! the same of a study that runs it alone and beside neighbours.

use csv::Writer;
use maud::{Markup, html};
use virtbench_chart::{Axis, Chart, Form, Look, Point, Series, Shape, look};
use virtbench_model::application::{
    ApplicationSide, ApplicationSideFound, ApplicationStudyAnalysis, MetricFound, SideRatio,
    analyse_application_study,
};
use virtbench_model::{ApplicationAnalysis, Ratio, Span};
use virtbench_record::{
    ApplicationMetric, ApplicationPlan, ApplicationRecord, ApplicationTable, Better, Provenance, Quantity,
};

use super::figures::style::{INK, ends, rows};
use super::figures::{Drawing, Figure, Values, Variant};
use super::tables::{estimate, times};
use super::takeaway::cautions::emulation;
use crate::configurations::facts;
use crate::figures;
use crate::format::{count, path_cost, ratio, ratio_span, rounded, scaled, significant, trimmed, with_unit};
use crate::page::{Head, Section, document, opening, section};
use crate::rows::{CsvError, figure, text};
use crate::takeaway::Takeaway;

/// A table of an application's results with what follows from it.
#[derive(Debug, Clone, Copy)]
pub struct ApplicationPage<'a> {
    /// The table.
    pub table: &'a ApplicationTable,
    /// What follows from it.
    pub analysis: &'a ApplicationAnalysis,
}

impl ApplicationPage<'_> {
    /// What a reader takes away.
    #[must_use]
    pub fn takeaway(&self) -> Takeaway {
        of_application(self.analysis)
    }

    /// One self-contained page.
    #[must_use]
    pub fn html(&self) -> String {
        let title = self.table.facts.get("title").unwrap_or("An application on several sides");
        let place = self.table.facts.get("host").unwrap_or("a table of results");
        let drawn: Vec<_> = figures::growth(self.analysis).into_iter().collect();
        let content = html! {
            (opening(title, place, &self.takeaway(), &html! {}))
            @if !drawn.is_empty() { (section("cycles", "Why a transaction costs what it does", "", &drawn)) }
            section aria-labelledby="sides" {
                h2 id="sides" { "Every figure" }
                (every_figure(self.analysis))
            }
            section aria-labelledby="provenance" {
                h2 id="provenance" { "Provenance" }
                (facts(&self.table.facts))
            }
        };
        document(title, env!("CARGO_PKG_VERSION"), &content)
    }
}

/// What the first side compared comes to; the others are details.
pub(crate) fn of_application(analysis: &ApplicationAnalysis) -> Takeaway {
    let Some(reference) = analysis.sides.first() else { return Takeaway::default() };
    let mut sentences: Vec<String> = analysis.sides.iter().filter_map(stall).collect();
    for against in &analysis.ratios {
        let side = &analysis.sides[against.side];
        sentences.extend(throughput(reference, side, against));
        sentences.extend(cycles(reference, side, against));
    }
    let mut cautions: Vec<String> = analysis.sides.iter().filter_map(mismatch).collect();
    cautions.extend(analysis.sides.iter().filter_map(partial_stall));
    let ratios = || analysis.ratios.iter().flat_map(|against| against.ratios.values());
    if ratios().next().is_some() && ratios().all(|ratio| ratio.interval.is_none()) {
        cautions.push("Each side has a single value, so nothing is known of the spread.".into());
    }
    let nothing = || "There is nothing that two sides have in common.".to_owned();
    let mut sentences = sentences.into_iter();
    Takeaway { headline: sentences.next().unwrap_or_else(nothing), details: sentences.collect(), cautions }
}

/// A side that did nothing at all comes before any ratio: it has none.
fn stall(side: &ApplicationSide) -> Option<String> {
    let has_stalled = side.counted > 0 && side.stalled == side.counted;
    has_stalled.then(|| format!("{} completed no transaction in {}.", side.name, repetitions(side.counted)))
}

fn partial_stall(side: &ApplicationSide) -> Option<String> {
    let is_partial = side.stalled > 0 && side.stalled < side.counted;
    is_partial.then(|| {
        format!(
            "{} completed no transaction in {} of {}: ratios leave these out and are too kind to it.",
            side.name,
            side.stalled,
            repetitions(side.counted)
        )
    })
}

fn repetitions(number: usize) -> String {
    count(number, "repetition")
}

fn throughput(reference: &ApplicationSide, side: &ApplicationSide, against: &SideRatio) -> Option<String> {
    let done = against.ratios.get(&Quantity::TransactionsPerSecond)?;
    let mean = |side: &ApplicationSide, quantity| side.known.get(&quantity).map(|estimate| estimate.mean);
    let users = |of: &ApplicationSide| match mean(of, Quantity::Users) {
        Some(users) => format!(" with {} users", trimmed(users, 1)),
        None => String::new(),
    };
    let rate = |of| mean(of, Quantity::TransactionsPerSecond).map_or_else(String::new, significant);
    Some(format!(
        "{} does {} of {}'s transactions{}: {} a second{} against {}{}.",
        side.name,
        ratio(done.value),
        reference.name,
        span(done),
        rate(side),
        users(side),
        rate(reference),
        users(reference)
    ))
}

fn cycles(reference: &ApplicationSide, side: &ApplicationSide, against: &SideRatio) -> Option<String> {
    let growth = against.growth?;
    let change = |ratio: f64| {
        let percent = 100.0 * (ratio - 1.0);
        format!("{} % {}", rounded(percent.abs(), 0), if percent < 0.0 { "less" } else { "more" })
    };
    let parts = growth.slower_percent().map_or_else(String::new, |slower| {
        format!(" {} % of that growth is slower instructions, the rest is more of them.", rounded(slower, 0))
    });
    Some(format!(
        "A transaction takes {} cycles on {} than on {}: CPI {}, path length {}.{}",
        change(growth.cycles),
        side.name,
        reference.name,
        change(growth.cycles_per_instruction),
        change(growth.instructions),
        if growth.cycles_per_instruction >= 1.0 && growth.instructions >= 1.0 {
            parts
        } else {
            String::new()
        }
    ))
}

fn mismatch(side: &ApplicationSide) -> Option<String> {
    let mismatch = side.mismatch?;
    Some(format!(
        "CPI times path length is {} cycles on {}, {} % off the {} that were counted: one of the three is wrong.",
        significant(mismatch.product),
        side.name,
        rounded(mismatch.off_percent(), 1),
        significant(mismatch.cycles)
    ))
}

fn span(ratio: &Ratio) -> String {
    ratio.interval.map_or_else(String::new, |span: Span| format!(" ({})", ratio_span(span)))
}

/// A row for each quantity that some side knows, with a column for each side and each ratio.
pub(crate) fn every_figure(analysis: &ApplicationAnalysis) -> Markup {
    let is_known = |quantity: &Quantity| analysis.sides.iter().any(|side| side.known.contains_key(quantity));
    let reference = analysis.sides.first().map_or("", |side| &side.name);
    html! {
        div.scroll tabindex="0" role="region" aria-label="Every figure" {
            table {
                thead { tr {
                    th scope="col" { "figure" }
                    @for side in &analysis.sides { th.number scope="col" { (side.name) } }
                    @for against in &analysis.ratios {
                        th.number scope="col" { (analysis.sides[against.side].name) " / " (reference) }
                    }
                } }
                tbody {
                    @for quantity in Quantity::ALL.into_iter().filter(is_known) {
                        tr {
                            th scope="row" { (quantity.name()) }
                            @for side in &analysis.sides {
                                td.number { @match side.known.get(&quantity) {
                                    Some(known) => { (significant(known.mean)) @if let Some(span) = known.span() {
                                        " " small { (significant(span.low)) " to " (significant(span.high)) } } }
                                    None => "–",
                                } }
                            }
                            @for against in &analysis.ratios {
                                td.number { @match against.ratios.get(&quantity) {
                                    Some(known) => { (ratio(known.value)) @if let Some(span) = known.interval {
                                        " " small { (ratio_span(span)) } } }
                                    None => "–",
                                } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Lines of a client's output that the page shows.
const LINES: usize = 30;

/// What it says, and its figures.
pub(crate) fn head(
    provenance: &Provenance,
    plan: &ApplicationPlan,
    records: &[ApplicationRecord],
    analysis: &ApplicationStudyAnalysis,
) -> Head<1> {
    let figures = application(plan, analysis, records);
    Head {
        title: format!("{} natively and in VMs", plan.load.appliance),
        place: crate::provenance::place(provenance),
        takeaway: of_application_study(provenance, plan, analysis),
        sections: [Section::new("metrics", "Metrics", "Nothing was measured yet.", figures)],
    }
}

/// One self-contained page.
pub(crate) fn page(provenance: &Provenance, plan: &ApplicationPlan, records: &[ApplicationRecord]) -> String {
    let analysis = analyse_application_study(plan, records);
    let head = head(provenance, plan, records, &analysis);
    let [metrics] = &head.sections;
    let content = html! {
        (head.plain_opening())
        (metrics.markup())
        section aria-labelledby="figures" {
            h2 id="figures" { "Every figure" }
            (figures_table(plan, &analysis))
        }
        section aria-labelledby="paths" {
            h2 id="paths" { "Paths, and processors of the host" }
            (paths(&analysis))
        }
        section aria-labelledby="output" {
            h2 id="output" { "What clients printed" }
            (outputs(plan, records))
        }
        section aria-labelledby="provenance" {
            h2 id="provenance" { "Provenance" }
            (crate::provenance::section(provenance, &provenance.notes, &|_| None))
        }
    };
    document(&head.title, &provenance.version, &content)
}

fn figures_table(plan: &ApplicationPlan, analysis: &ApplicationStudyAnalysis) -> Markup {
    let beside = plan.neighbours > 0;
    html! {
        div.scroll tabindex="0" role="region" aria-label="Every figure" {
            table {
                thead { tr {
                    th scope="col" { "metric" } th scope="col" { "side" }
                    th.number scope="col" { "alone" } th.number scope="col" { "VM / native" }
                    @if beside {
                        th.number scope="col" { "beside " (plan.neighbours) }
                        th.number scope="col" { "beside / alone" } th.number scope="col" { "deviation, %" }
                    }
                } }
                tbody {
                    @for (index, metric) in plan.metrics.iter().enumerate() {
                        @for side in &analysis.sides {
                            tr {
                                th scope="row" { (metric.name) ", " (scaled(&metric.unit).1) }
                                td { (side.side.name) }
                                (cells(&side.metrics[index], &metric.unit, beside))
                            }
                        }
                    }
                }
            }
        }
    }
}

fn cells(found: &MetricFound, unit: &str, beside: bool) -> Markup {
    let factor = scaled(unit).0;
    let deviation = found.deviation.map(|deviation| deviation.estimate);
    html! {
        (estimate(found.alone, factor))
        (times(found.against_native))
        @if beside {
            (estimate(found.beside, factor))
            (times(found.against_alone))
            (estimate(deviation, 1.0))
        }
    }
}

fn paths(analysis: &ApplicationStudyAnalysis) -> Markup {
    html! {
        dl.facts {
            @for side in &analysis.sides {
                (crate::provenance::fact(
                    &format!("Path to {}", side.side.name),
                    &side.path.as_ref().map_or_else(|| "not measured".to_owned(), path_cost)
                ))
                @for (name, cost) in &side.tier_paths {
                    (crate::provenance::fact(
                        &format!("Path from {} to its tier {name}", side.side.name),
                        &path_cost(cost)
                    ))
                }
                @if let Some(used) = side.host_cpu_percent {
                    (crate::provenance::fact(
                        &format!("Host's processors, {} alone", side.side.name),
                        &format!("{} % of one", rounded(used.mean, 0))
                    ))
                }
            }
        }
    }
}

/// The last output of each side, and that of what failed.
fn outputs(plan: &ApplicationPlan, records: &[ApplicationRecord]) -> Markup {
    let last = |name: &str| {
        records.iter().rev().filter(|record| record.key.side == name).find_map(ApplicationRecord::measured)
    };
    let failed = records.iter().filter_map(|record| {
        Some((record, record.failure()?, record.detail().and_then(|detail| detail.output.as_deref())))
    });
    html! {
        @for side in &plan.sides {
            @if let Some(measured) = last(&side.name) {
                h3 { (side.name) }
                pre tabindex="0" { code { (end(&measured.output)) } }
            }
        }
        @for (record, why, output) in failed {
            h3 { (record.key.side) ", repetition " (record.key.repetition + 1) ", failed" }
            p { (why) }
            @if let Some(output) = output { pre tabindex="0" { code { (end(output)) } } }
        }
    }
}

fn end(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

/// Each VM against its native side by the metrics, the first being the headline; then what neighbours do to each side.
pub(crate) fn of_application_study(
    provenance: &Provenance,
    plan: &ApplicationPlan,
    analysis: &ApplicationStudyAnalysis,
) -> Takeaway {
    let mut sentences: Vec<String> = Vec::new();
    for side in &analysis.sides {
        let native = analysis
            .sides
            .iter()
            .find(|other| side.side.vm && !other.side.vm && other.side.vcpus == side.side.vcpus);
        let Some(native) = native else { continue };
        for (index, metric) in plan.metrics.iter().enumerate() {
            sentences.extend(compared(metric, side, native, index));
        }
    }
    for side in &analysis.sides {
        for (metric, found) in plan.metrics.iter().zip(&side.metrics) {
            sentences.extend(disturbed(plan, metric, side, found));
        }
    }
    let mut cautions: Vec<String> = emulation(provenance).into_iter().collect();
    cautions.extend(analysis.sides.iter().filter_map(failed));
    if plan.sides.iter().any(|side| side.vcpus >= provenance.host.processors) {
        cautions
            .push("The client shares processors with the application where that has all of them.".to_owned());
    } else if plan.neighbours > 0
        && plan.sides.iter().any(|side| side.vcpus * (1 + plan.neighbours) > provenance.host.processors)
    {
        cautions.push(
            "Neighbours share processors with what is measured: there are not enough for each.".to_owned(),
        );
    }
    match plan.repetitions {
        0 | 1 => cautions.push("Each side has 1 value at most: there are intervals from two on.".to_owned()),
        2 => cautions.push("Each side has 2 values at most: intervals of two are wide.".to_owned()),
        _ => {}
    }
    let nothing = || "No two sides have been measured yet.".to_owned();
    let mut sentences = sentences.into_iter();
    Takeaway { headline: sentences.next().unwrap_or_else(nothing), details: sentences.collect(), cautions }
}

fn compared(
    metric: &ApplicationMetric,
    side: &ApplicationSideFound,
    native: &ApplicationSideFound,
    index: usize,
) -> Option<String> {
    let (found, reference) = (&side.metrics[index], &native.metrics[index]);
    let against = found.against_native?;
    let span = against.interval.map_or_else(String::new, |span| format!(" ({})", ratio_span(span)));
    Some(format!(
        "{}: {} in {}, {} times the {} of {}{span}; {}.",
        metric.name,
        with_unit(found.alone?.mean, &metric.unit),
        side.side.name,
        ratio(against.value),
        with_unit(reference.alone?.mean, &metric.unit),
        native.side.name,
        direction(metric.better)
    ))
}

fn direction(better: Better) -> &'static str {
    match better {
        Better::Higher => "more is better",
        Better::Lower => "less is better",
        Better::Neither => "neither more nor less is better",
    }
}

fn disturbed(
    plan: &ApplicationPlan,
    metric: &ApplicationMetric,
    side: &ApplicationSideFound,
    found: &MetricFound,
) -> Option<String> {
    let (deviation, beside) = (found.deviation?, found.beside?);
    let span = deviation.estimate.span().map_or_else(String::new, |span| {
        format!(" ({} to {} %)", rounded(span.low, 0), rounded(span.high, 0))
    });
    Some(format!(
        "Beside {}, {} of {} is {}: {} % from alone{span}.",
        count(plan.neighbours as usize, "neighbour"),
        metric.name,
        side.side.name,
        with_unit(beside.mean, &metric.unit),
        rounded(deviation.estimate.mean, 0),
    ))
}

fn failed(side: &ApplicationSideFound) -> Option<String> {
    let first = side.failures.first()?;
    Some(format!("{} of {} failed: {first}", count(side.failures.len(), "measurement"), side.side.name))
}

/// One row for each measurement, in their order; what failed has no figures, and says why.
pub(crate) fn application_study_csv(
    plan: &ApplicationPlan,
    records: &[ApplicationRecord],
) -> Result<String, CsvError> {
    let mut writer = Writer::from_writer(Vec::new());
    let columns =
        ["side", "neighbours", "repetition", "started_unix_ns", "failed", "elapsed_ns", "host_cpu_percent"];
    let metrics = plan.metrics.iter().map(|metric| {
        if metric.unit.is_empty() {
            metric.name.clone()
        } else {
            format!("{} [{}]", metric.name, metric.unit)
        }
    });
    writer.write_record(columns.into_iter().map(str::to_owned).chain(metrics))?;
    for record in records {
        let measured = record.measured();
        let own = [
            record.key.side.clone(),
            record.key.neighbours.to_string(),
            record.key.repetition.to_string(),
            record.started_unix_ns.to_string(),
            record.failure().unwrap_or_default().to_owned(),
            measured.map_or_else(String::new, |measured| measured.elapsed_ns.to_string()),
            measured.map_or_else(String::new, |measured| figure(measured.host.cpu_percent)),
        ];
        let value = |name: &String| measured.and_then(|measured| measured.values.get(name));
        let values = plan
            .metrics
            .iter()
            .map(|metric| value(&metric.name).map_or_else(String::new, |value| figure(*value)));
        writer.write_record(own.into_iter().chain(values))?;
    }
    text(writer)
}

/// A drawing for each metric. Nothing where nothing was measured.
pub(crate) fn application(
    plan: &ApplicationPlan,
    analysis: &ApplicationStudyAnalysis,
    records: &[ApplicationRecord],
) -> Vec<Figure> {
    if records.iter().all(|record| record.measured().is_none()) {
        return Vec::new();
    }
    let drawings = (0..plan.metrics.len()).map(|index| drawing(plan, analysis, records, index)).collect();
    vec![Figure {
        title: "Each metric on each side".into(),
        caption:
            "Bars are means with their 95 % intervals; each mark is a repetition, which had a boot and a copy of the data of its own."
                .into(),
        drawings,
        values: Values::Own,
    }]
}

fn drawing(
    plan: &ApplicationPlan,
    analysis: &ApplicationStudyAnalysis,
    records: &[ApplicationRecord],
    index: usize,
) -> Drawing {
    let metric = &plan.metrics[index];
    let (factor, unit) = scaled(&metric.unit);
    let company = plan.company();
    let named = |side: &str, neighbours: u32| match neighbours {
        0 if company.len() == 1 => side.to_owned(),
        0 => format!("{side}, alone"),
        neighbours => format!("{side}, beside {neighbours}"),
    };
    let of_side = |side: &ApplicationSideFound| -> Vec<String> {
        company.iter().map(|neighbours| named(&side.side.name, *neighbours)).collect()
    };
    let names: Vec<String> = analysis.sides.iter().flat_map(of_side).collect();
    let row = |side: &str, neighbours: u32| names.iter().position(|name| *name == named(side, neighbours));
    let mut series = Vec::new();
    for (number, neighbours) in company.iter().enumerate() {
        let bar = |side: &ApplicationSideFound| {
            let found = &side.metrics[index];
            let found = if *neighbours == 0 { found.alone } else { found.beside }?;
            let row = row(&side.side.name, *neighbours)?;
            let interval = found.span().map(|span| ends(span.map(|value| value * factor)));
            let hover = format!("{}: {}", names[row], with_unit(found.mean, &metric.unit));
            let point = Point::new(found.mean * factor, row as f64).between(interval);
            Some(point.hover(hover).label(significant(found.mean * factor)))
        };
        let name = if *neighbours == 0 { "alone".to_owned() } else { format!("beside {neighbours}") };
        let points = analysis.sides.iter().filter_map(bar).collect();
        series.push(Series { name, look: look(number), form: Form::Bars, points });
    }
    let repetition = |record: &ApplicationRecord| {
        let row = row(&record.key.side, record.key.neighbours)?;
        let value = record.measured()?.values.get(&metric.name)? * factor;
        let hover =
            format!("{}, repetition {}: {}", names[row], record.key.repetition + 1, significant(value));
        Some(Point::new(value, row as f64).hover(hover))
    };
    let look = Look::of_colour(INK).shaped(Shape::Diamond);
    let points = records.iter().filter_map(repetition).collect();
    series.push(Series { name: "a repetition".into(), look, form: Form::Marks, points });
    let title = if unit.is_empty() { metric.name.clone() } else { format!("{}, {unit}", metric.name) };
    let chart = Chart { series, ..Chart::new(Axis::from_zero(title), rows(&names)) };
    let label = format!("{} on each side; the table below holds the values.", metric.name);
    Drawing::only(&format!("metric-{index}"), label, Variant::chart(&metric.name, chart))
}
