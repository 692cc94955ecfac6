//! A study of sides: its page, the sentences a reader takes away, its figures and its rows of CSV.

use csv::Writer;
use maud::{Markup, html};
use virtbench_chart::{Axis, Chart, Form, Look, Point, Series, Shape, look};
use virtbench_model::samples::{SampleFound, SamplesAnalysis, SamplesSide, analyse_samples};
use virtbench_record::{Provenance, SamplesRecord, SidesPlan};

use super::figures::style::{INK, ends, rows};
use super::figures::{Drawing, Figure, Values, Variant};
use super::page::document;
use super::tables::{estimate, times};
use super::takeaway::Takeaway;
use super::takeaway::cautions::emulation;
use crate::format::{count, ratio, ratio_span, rounded, scaled, significant, with_unit};
use crate::page::{Head, Section};
use crate::rows::{CsvError, figure, text};

/// What it says, and its figures.
pub(crate) fn head(provenance: &Provenance, plan: &SidesPlan, analysis: &SamplesAnalysis) -> Head<1> {
    Head {
        title: plan.title.into(),
        place: crate::provenance::place(provenance),
        takeaway: of_samples(provenance, plan, analysis),
        sections: [Section::new("sides", "Side by side", "Nothing was measured yet.", samples(analysis))],
    }
}

/// One self-contained page.
pub(crate) fn page(provenance: &Provenance, plan: &SidesPlan, records: &[SamplesRecord]) -> String {
    let analysis = analyse_samples(plan, records);
    let head = head(provenance, plan, &analysis);
    let [side_by_side] = &head.sections;
    let notes: Vec<String> = notes(provenance, records);
    let content = html! {
        (head.plain_opening())
        (side_by_side.markup())
        section aria-labelledby="figures" {
            h2 id="figures" { "Every figure" }
            (table(plan, &analysis))
        }
        section aria-labelledby="provenance" {
            h2 id="provenance" { "Provenance" }
            (crate::provenance::section(provenance, &notes, &|_| None))
        }
    };
    document(plan.title, &provenance.version, &content)
}

/// Those of the run, then those of measurements, each once.
fn notes(provenance: &Provenance, records: &[SamplesRecord]) -> Vec<String> {
    let mut notes = provenance.notes.clone();
    for note in records.iter().filter_map(SamplesRecord::measured).flat_map(|measured| &measured.notes) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    notes
}

fn table(plan: &SidesPlan, analysis: &SamplesAnalysis) -> Markup {
    let first = plan.sides.first().map_or("", |first| first);
    let mut names: Vec<&SampleFound> = Vec::new();
    for found in analysis.sides.iter().flat_map(|side| &side.samples) {
        if names.iter().all(|other| other.name != found.name) {
            names.push(found);
        }
    }
    html! {
        div.scroll tabindex="0" role="region" aria-label="Every figure" {
            table {
                thead { tr {
                    th scope="col" { "measured" } th scope="col" { "side" }
                    th.number scope="col" { "value" } th.number scope="col" { "times " (first) }
                } }
                tbody {
                    @for name in names {
                        @for side in &analysis.sides {
                            @if let Some(found) = side.sample(&name.name) { (row(side, found)) }
                        }
                    }
                }
            }
        }
    }
}

fn row(side: &SamplesSide, found: &SampleFound) -> Markup {
    let (factor, unit) = scaled(&found.unit);
    html! {
        tr {
            th scope="row" { (found.name) @if !unit.is_empty() { ", " (unit) } }
            td { (side.name) }
            (estimate(found.estimate, factor))
            (times(found.against_first))
        }
    }
}

/// Nanoseconds in a microsecond.
const MICROSECOND_NS: f64 = 1e3;

/// Each side against the first by what sums it up; then times with several peaks.
pub(crate) fn of_samples(provenance: &Provenance, plan: &SidesPlan, analysis: &SamplesAnalysis) -> Takeaway {
    let (first, others) = match analysis.sides.split_first() {
        Some((first, others)) => (Some(first), others),
        None => (None, &[][..]),
    };
    let compared = others.iter().filter_map(|side| compared(plan, first?, side));
    let alone = first.filter(|_| others.is_empty()).and_then(|side| described(plan, side));
    let mut sentences = compared.chain(alone).chain(analysis.sides.iter().filter_map(several_peaks));
    let nothing = || "No two sides have been measured yet.".to_owned();
    let headline = sentences.next().unwrap_or_else(nothing);
    let details = sentences.collect();
    let mut cautions: Vec<String> = emulation(provenance).into_iter().collect();
    cautions.extend(analysis.sides.iter().filter_map(failed));
    let unavailable =
        |side: &SamplesSide| Some(format!("{} is unavailable: {}.", side.name, side.unavailable.as_ref()?));
    cautions.extend(analysis.sides.iter().filter_map(unavailable));
    if plan.repetitions < 3 {
        let values = count(plan.repetitions as usize, "value");
        cautions.push(format!("Each side has {values} at most: intervals need three."));
    }
    Takeaway { headline, details, cautions }
}

/// `tap against native: TCP to, 1 stream 0.10 times (120 MB/s; 0.09 to 0.11), ...`
fn compared(plan: &SidesPlan, first: &SamplesSide, side: &SamplesSide) -> Option<String> {
    let parts: Vec<String> = plan.headlines.iter().filter_map(|name| part(side.sample(name)?)).collect();
    (!parts.is_empty()).then(|| format!("{} against {}: {}.", side.name, first.name, parts.join("; ")))
}

fn part(found: &SampleFound) -> Option<String> {
    let against = found.against_first?;
    let span = against.interval.map_or_else(String::new, |span| format!(", {}", ratio_span(span)));
    let value = with_unit(found.estimate?.mean, &found.unit);
    Some(format!("{} {} times ({value}{span})", found.name, ratio(against.value)))
}

/// The only side.
fn described(plan: &SidesPlan, side: &SamplesSide) -> Option<String> {
    let part = |name: &&str| {
        let found = side.sample(name)?;
        Some(format!("{} {}", found.name, with_unit(found.estimate?.mean, &found.unit)))
    };
    let parts: Vec<String> = plan.headlines.iter().filter_map(part).collect();
    (!parts.is_empty()).then(|| format!("{}: {}.", side.name, parts.join("; ")))
}

/// Requests that are answered at once and others that wait, which is how interrupts that are coalesced show.
fn several_peaks(side: &SamplesSide) -> Option<String> {
    let (times, [quick, slow, ..]) = (side.times.first()?, &side.peaks[..]) else { return None };
    let us = |ns: u64| significant(ns as f64 / MICROSECOND_NS);
    let percent = |share: f64| rounded(share * 100.0, 0);
    Some(format!(
        "{}: a {} takes about {} us in {} % of cases and {} us in {} %: two groups, as where interrupts are coalesced or a \
         processor has to be woken.",
        side.name,
        times.name,
        us(quick.at_ns),
        percent(quick.share),
        us(slow.at_ns),
        percent(slow.share)
    ))
}

fn failed(side: &SamplesSide) -> Option<String> {
    let why = side.failures.first()?;
    Some(format!("{} of {} failed: {why}", count(side.failures.len(), "measurement"), side.name))
}

/// A drawing for each sample, then one for each kind of time. Nothing where nothing was measured.
pub(crate) fn samples(analysis: &SamplesAnalysis) -> Vec<Figure> {
    let measured: Vec<&SamplesSide> = analysis.sides.iter().filter(|side| !side.samples.is_empty()).collect();
    let mut names: Vec<&str> = Vec::new();
    for sample in measured.iter().flat_map(|side| &side.samples) {
        if !names.contains(&sample.name.as_str()) {
            names.push(&sample.name);
        }
    }
    if names.is_empty() {
        return Vec::new();
    }
    let drawings = names.iter().enumerate().map(|(index, name)| bars(&measured, name, index)).collect();
    let bars = Figure {
        title: "Each side".into(),
        caption: "Bars are means with their 95 % intervals; each mark is a repetition, between machines of its own.".into(),
        drawings,
        values: Values::Own,
    };
    [Some(bars), distributions(&measured)].into_iter().flatten().collect()
}

fn bars(sides: &[&SamplesSide], name: &str, index: usize) -> Drawing {
    let with: Vec<(&SamplesSide, &SampleFound)> =
        sides.iter().filter_map(|side| Some((*side, side.sample(name)?))).collect();
    let unit = with.first().map_or("", |(_, found)| found.unit.as_str());
    let (factor, shown) = scaled(unit);
    let names: Vec<String> = with.iter().map(|(side, _)| side.name.clone()).collect();
    let bar = |(row, (side, found)): (usize, &(&SamplesSide, &SampleFound))| {
        let estimate = found.estimate?;
        let interval = estimate.span().map(|span| ends(span.map(|value| value * factor)));
        let point = Point::new(estimate.mean * factor, row as f64).between(interval);
        let hover = format!("{}: {}", side.name, with_unit(estimate.mean, unit));
        Some(point.hover(hover).label(significant(estimate.mean * factor)))
    };
    let points = with.iter().enumerate().filter_map(bar).collect();
    let bars = Series { name: "mean".into(), look: look(0), form: Form::Bars, points };
    let marks = with.iter().enumerate().flat_map(|(row, (side, found))| {
        found.values.iter().map(move |(repetition, value)| {
            let hover =
                format!("{}, repetition {}: {}", side.name, repetition + 1, significant(value * factor));
            Point::new(value * factor, row as f64).hover(hover)
        })
    });
    let marks = Series {
        name: "a repetition".into(),
        look: Look::of_colour(INK).shaped(Shape::Diamond),
        form: Form::Marks,
        points: marks.collect(),
    };
    let title = if shown.is_empty() { name.to_owned() } else { format!("{name}, {shown}") };
    let chart = Chart { series: vec![bars, marks], ..Chart::new(Axis::from_zero(title), rows(&names)) };
    let label = format!("{name} of each side; the table below holds the values.");
    Drawing::only(&format!("sample-{index}"), label, Variant::chart(name, chart))
}

/// The part of all times that is shorter, over the time.
fn distributions(sides: &[&SamplesSide]) -> Option<Figure> {
    let mut names: Vec<&str> = Vec::new();
    for times in sides.iter().flat_map(|side| &side.times) {
        if !names.contains(&times.name.as_str()) {
            names.push(&times.name);
        }
    }
    let drawing = |(index, name): (usize, &&str)| {
        let series = sides.iter().enumerate().filter_map(|(number, side)| {
            let times = side.times.iter().find(|times| times.name == **name)?;
            let total: u64 = times.counts.iter().map(|(_, count)| count).sum();
            let mut below = 0;
            let point = |(end, count): &(u64, u64)| {
                below += count;
                Point::new(*end as f64 / 1e3, 100.0 * below as f64 / total.max(1) as f64)
            };
            let points = times.counts.iter().map(point).collect();
            Some(Series { name: side.name.clone(), look: look(number), form: Form::Line, points })
        });
        let series = series.collect();
        let axes =
            Chart::new(Axis::logarithmic(format!("{name}, us")), Axis::from_zero("% that are quicker"));
        let chart = Chart { series, ..axes };
        let label = format!("How long a {name} takes on each side: the part of them that is quicker.");
        Drawing::only(&format!("times-{index}"), label, Variant::chart(*name, chart))
    };
    let drawings: Vec<Drawing> = names.iter().enumerate().map(drawing).collect();
    (!drawings.is_empty()).then(|| Figure {
        title: "How long it takes".into(),
        caption:
            "Of all repetitions together. A step means that many take as long; two steps mean two groups."
                .into(),
        drawings,
        values: Values::Own,
    })
}

/// One row for each sample, in the order in which they were measured; what failed or is not to be had here has one row, which says why.
pub(crate) fn samples_csv(records: &[SamplesRecord]) -> Result<String, CsvError> {
    let mut writer = Writer::from_writer(Vec::new());
    writer.write_record([
        "side",
        "repetition",
        "started_unix_ns",
        "sample",
        "unit",
        "value",
        "failed",
        "unavailable",
    ])?;
    for record in records {
        let own =
            [record.key.side.clone(), record.key.repetition.to_string(), record.started_unix_ns.to_string()];
        let Some(measured) = record.measured() else {
            let why = |why: Option<&str>| why.unwrap_or_default().to_owned();
            let rest = [
                String::new(),
                String::new(),
                String::new(),
                why(record.failure()),
                why(record.unavailable()),
            ];
            writer.write_record(own.iter().chain(&rest))?;
            continue;
        };
        for sample in &measured.samples {
            let of_sample = [sample.name.clone(), sample.unit.clone(), figure(sample.value)];
            writer.write_record(own.iter().chain(&of_sample).chain(&[String::new(), String::new()]))?;
        }
    }
    text(writer)
}
