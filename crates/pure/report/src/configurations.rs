//! Configurations compared with each other ([ESX Adapters 2006]): what is written of them, the sentences a reader takes away,
//! and their page.

use std::collections::BTreeSet;

use maud::{Markup, html};
use virtbench_model::pairwise::{Advice, Finding, Group, LEVEL, Metric, Tally, Use, recommend};
use virtbench_model::{Analysis, Margin, Measurements, Span, analyse, compare};
use virtbench_record::{
    GridPlan, GuestsState, Plan, PointRecord, ProcessRole, ProcessUse, Provenance, ResultTable, TableFacts,
    role_percent, unattributed_percent,
};

use super::page::document;
use super::takeaway::{Takeaway, cautions, group_name, listed, reach, reaches};
use crate::format::{count, significant, trimmed, whole};
use crate::page::{Head, Section};
use crate::rows::{self, CsvError};
use crate::run::Environments;
use crate::{figures, provenance, tables};

impl Analysed<'_> {
    /// One self-contained page.
    #[must_use]
    pub fn html(&self) -> String {
        page(self)
    }
}

/// What it says, and its figures.
pub(crate) fn head(analysed: &Analysed<'_>) -> Head<1> {
    let (title, place) = match &analysed.source {
        Source::Run { provenance, .. } => (
            match &provenance.plan {
                Plan::Compare(_) => "Storage of several machines".to_owned(),
                _ => "Virtual disk adapters and backings".to_owned(),
            },
            provenance::place(provenance),
        ),
        Source::Table(table) => (
            table.facts.get("title").unwrap_or("Configurations compared").to_owned(),
            table.facts.get("host").unwrap_or("a table of results").to_owned(),
        ),
    };
    let figures = figures::over_block_sizes(&analysed.analysis);
    Head {
        title,
        place,
        takeaway: analysed.takeaway(),
        sections: [Section::new("figures", "Over block sizes", "Nothing was measured.", figures)],
    }
}

fn page(analysed: &Analysed<'_>) -> String {
    let analysis = &analysed.analysis;
    let head = head(analysed);
    let [figures] = &head.sections;
    let version = match &analysed.source {
        Source::Run { provenance, .. } => provenance.version.as_str(),
        Source::Table(_) => env!("CARGO_PKG_VERSION"),
    };
    let content = html! {
        (head.plain_opening())
        section aria-labelledby="kinds" {
            h2 id="kinds" { "Which one for which kind of I/O" }
            (tables::kinds(analysis))
        }
        (figures.markup())
        section aria-labelledby="pairs" {
            h2 id="pairs" { "Each against each" }
            (tables::matrices(analysis))
            (tables::verdicts(analysis))
        }
        @if let Source::Run { provenance, records } = &analysed.source {
            (of_run(provenance, records, &analysis.measurements.configurations))
        }
        section aria-labelledby="points" {
            h2 id="points" { "Every point" }
            (tables::points(analysis))
            @if let Source::Run { records, .. } = &analysed.source { (tables::repetitions(records)) }
        }
        section aria-labelledby="provenance" {
            h2 id="provenance" { "Provenance" }
            @match &analysed.source {
                Source::Run { provenance, records } => (provenance::of_points(provenance, records)),
                Source::Table(table) => (facts(&table.facts)),
            }
        }
    };
    document(&head.title, version, &content)
}

/// What only a run knows: whose the CPU use was, and what its guests found.
fn of_run(provenance: &Provenance, records: &[PointRecord], configurations: &[String]) -> Markup {
    html! {
        section aria-labelledby="accounting" {
            h2 id="accounting" { "Whose the CPU use was" }
            @match tables::accounting(records, configurations) {
                Some(table) => (table),
                None => p { "No process was told apart in this run." },
            }
            @if provenance.idle.is_empty() {
                p { "What idle guests cost was not measured." }
            } @else {
                (tables::idle(&provenance.idle))
            }
        }
        @if !provenance.setups.is_empty() {
            section aria-labelledby="settings" {
                h2 id="settings" { "Settings as the guests found them" }
                (tables::settings(&provenance.setups))
            }
        }
    }
}

/// What the head of a table says.
pub(crate) fn facts(facts: &TableFacts) -> Markup {
    html! { dl.facts { @for (name, value) in &facts.0 { (provenance::fact(name, value)) } } }
}

/// Where the figures come from.
#[derive(Debug)]
pub(crate) enum Source<'a> {
    /// A run of this program.
    Run { provenance: &'a Provenance, records: &'a [PointRecord] },
    /// Somebody's table.
    Table(&'a ResultTable),
}

/// Configurations compared with each other: what `virtbench analyse` prints and the page of a study of
/// adapters shows.
#[derive(Debug)]
pub struct Analysed<'a> {
    pub(crate) source: Source<'a>,
    /// Everything that follows from the figures.
    pub analysis: Analysis,
}

/// Seed of a table's bootstraps: the same table always comes to the same conclusions.
const TABLE_SEED: u64 = 2_006;

impl<'a> Analysed<'a> {
    /// The environments of a run.
    #[must_use]
    pub fn run(provenance: &'a Provenance, records: &'a [PointRecord], margin: Margin) -> Self {
        let seed = provenance.plan.seed();
        let measurements = Measurements::from_records(records, provenance.plan.environments(), seed);
        Self { source: Source::Run { provenance, records }, analysis: analyse(measurements, margin, seed) }
    }

    /// The configurations of a table.
    #[must_use]
    pub fn table(table: &'a ResultTable, margin: Margin) -> Self {
        let measurements = Measurements::from_rows(&table.rows, TABLE_SEED);
        Self { source: Source::Table(table), analysis: analyse(measurements, margin, TABLE_SEED) }
    }

    /// Every verdict as CSV, a row for each pair, point and quantity; a ratio is that of the first to the
    /// second, and its interval one of 90 %.
    ///
    /// # Errors
    /// The writer failed, which only an exhausted memory can cause.
    pub fn verdicts_csv(&self) -> Result<String, CsvError> {
        rows::verdicts_csv(&self.analysis)
    }
}

/// Configurations that a sentence names one by one.
const NAMED_MOST: usize = 3;

impl Analysed<'_> {
    /// What a reader takes away.
    #[must_use]
    pub fn takeaway(&self) -> Takeaway {
        let details = [
            verdicts(self, Metric::Rate, "throughput"),
            verdicts(self, Metric::Efficiency, "I/O per %CPU"),
            confidence(self),
            cheaper(self),
            doubts(self),
        ];
        let mut details: Vec<String> = details.into_iter().flatten().collect();
        let cautions = match &self.source {
            Source::Run { provenance, records } => {
                details.extend(idle(provenance));
                let environments =
                    Environments::of_configurations(provenance, records, &self.analysis.measurements);
                [
                    cautions::all(&environments),
                    busy(provenance).into_iter().collect(),
                    not_honoured(provenance),
                ]
                .concat()
            }
            Source::Table(table) => of_table(table),
        };
        Takeaway { headline: headline(self), details, cautions }
    }
}

fn headline(analysed: &Analysed<'_>) -> String {
    if let Source::Run { provenance, records } = &analysed.source
        && let Plan::Compare(plan) = &provenance.plan
        && let Some(sentence) = against_first(&plan.grid, records)
    {
        return sentence;
    }
    recommended(analysed)
}

/// What to use for which kind of I/O.
fn recommended(analysed: &Analysed<'_>) -> String {
    let analysis = &analysed.analysis;
    let names = &analysis.measurements.configurations;
    let measured: Vec<&String> = names
        .iter()
        .enumerate()
        .filter(|(index, _)| {
            analysis.measurements.points.values().any(|cells| cells[*index].side.repetitions > 0)
        })
        .map(|(_, name)| name)
        .collect();
    let place = match &analysed.source {
        Source::Run { provenance, .. } => place(provenance),
        Source::Table(_) => String::new(),
    };
    match measured.as_slice() {
        [] => return "Nothing has been measured.".into(),
        [only] => return format!("Only {only} has been measured, so there is nothing to compare it with."),
        _ => {}
    }
    if analysis.groups.iter().all(|group| group.standings.is_empty()) {
        return "No point was measured in more than one configuration, so there is nothing to compare."
            .into();
    }
    let whole = analysis.groups.iter().all(|group| group.standings.len() == measured.len());
    let alike = |group: &Group| group.standings.iter().skip(1).all(|other| other.is(Finding::Equivalent));
    let margin = percent(analysis.margin.share());
    // Where one of equals is the cheapest throughout, that is the one to use.
    let open = analysis.groups.iter().any(|group| analysis.advice(group).choices().len() > 1);
    if whole && open && analysis.groups.iter().all(alike) {
        let tally = analysis.tally(Metric::Rate);
        let all: Vec<usize> = (0..names.len()).filter(|index| measured.contains(&&names[*index])).collect();
        let sentence = format!(
            "{place}{} are equivalent for every kind of I/O measured: their throughput is within {margin} {} of {}",
            listed(measured.iter().map(|name| name.as_str())),
            if measured.len() == 2 {
                format!("at {}", tally.equivalent)
            } else {
                format!("in {}", tally.equivalent)
            },
            count(tally.points(), if measured.len() == 2 { "point" } else { "comparison" }),
        );
        return format!(
            "{sentence}{}.",
            costs(analysed, &all.iter().map(|index| (*index, None)).collect::<Vec<_>>())
        );
    }
    let uses = recommend(analysis);
    if uses.is_empty() {
        let names = listed(measured.iter().map(|name| name.as_str()));
        return format!(
            "{place}{} repetitions do not tell which of {names} is best for any kind of I/O: repeat more often, \
             or on a quieter host.",
            if place.is_empty() { "These" } else { "these" }
        );
    }
    let advice: Vec<String> = uses
        .iter()
        .map(|item| {
            format!("{} for {}", analysis.name(item.configuration), reach(&analysis.groups, &item.groups))
        })
        .collect();
    let advice = listed(advice.iter().map(String::as_str));
    let covered: Vec<(usize, Option<&Use>)> =
        uses.iter().map(|item| (item.configuration, Some(item))).collect();
    let doubtful =
        analysis.groups.iter().any(|group| matches!(analysis.advice(group), Advice::NotTold { .. }));
    let advice =
        if doubtful { format!("{advice}; for the rest, these repetitions do not tell") } else { advice };
    let verb = if place.is_empty() { "Use" } else { "use" };
    format!("{place}{verb} {advice}{}.", costs(analysed, &covered))
}

/// How each environment does against the first; nothing where no point was measured in both.
fn against_first(plan: &GridPlan, records: &[PointRecord]) -> Option<String> {
    let (first, others) = plan.environments.split_first()?;
    let sentences = others.iter().filter_map(|other| {
        let comparison = compare(records, first, other, plan.seed);
        let summary = comparison.summary.as_ref()?;
        Some(reaches(other, &format!("{first}'s throughput"), summary, comparison.curve.len()))
    });
    let sentences: Vec<String> = sentences.collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// `On this host under TCG, `.
fn place(provenance: &Provenance) -> String {
    let accelerator = provenance.guest.as_ref().map(|guest| guest.accelerator.name.to_uppercase());
    accelerator.map_or_else(|| "On this host, ".into(), |name| format!("On this host under {name}, "))
}

/// What each does for a percent of the host's CPU, where it is to be used.
fn costs(analysed: &Analysed<'_>, uses: &[(usize, Option<&Use>)]) -> String {
    let analysis = &analysed.analysis;
    let cost = |(configuration, item): &(usize, Option<&Use>)| {
        let points: Option<BTreeSet<_>> = item.map(|item| {
            item.groups.iter().flat_map(|index| analysis.groups[*index].points.iter().copied()).collect()
        });
        let range = analysis.efficiency_range(*configuration, |key| {
            points.as_ref().is_none_or(|points| points.contains(&key))
        })?;
        Some((range, analysis.name(*configuration)))
    };
    let costs: Vec<_> = uses.iter().filter_map(cost).collect();
    let Some(((range, name), others)) = costs.split_first() else { return String::new() };
    if costs.len() > NAMED_MOST {
        let low = costs.iter().map(|(range, _)| range.low).fold(f64::INFINITY, f64::min);
        let high = costs.iter().map(|(range, _)| range.high).fold(0.0, f64::max);
        let all = range_text(Span { low, high });
        return format!("; each percent of host CPU carries {all} I/Os a second, whichever is used");
    }
    let there = if uses.iter().any(|(_, item)| item.is_some()) && uses.len() > 1 { " there" } else { "" };
    let first = format!("{} I/Os a second through {name}", range_text(*range));
    let others = others.iter().map(|(range, name)| format!("{} through {name}", range_text(*range)));
    let all: Vec<String> = std::iter::once(first).chain(others).collect();
    format!("; each percent of host CPU carries{there} {}", listed(all.iter().map(String::as_str)))
}

fn range_text(range: Span) -> String {
    let (low, high) = (significant(range.low), significant(range.high));
    if low == high { low } else { format!("{low} to {high}") }
}

/// How the points of all pairs came out.
fn verdicts(analysed: &Analysed<'_>, metric: Metric, quantity: &str) -> Option<String> {
    let analysis = &analysed.analysis;
    let tally = analysis.tally(metric);
    let pairs = analysis.pairs.iter().filter(|pair| pair.tally(metric).points() > 0).count();
    let over = match (tally.points(), pairs) {
        (0, _) => return None,
        (points, 1) => format!("At {}", count(points, "point")),
        (points, pairs) => format!("In {} ({})", count(points, "comparison"), count(pairs, "pair")),
    };
    let Tally { equivalent, undecided, .. } = tally;
    let differ = tally.higher + tally.lower;
    let margin = percent(analysis.margin.share());
    let parts = [
        (equivalent, format!("equivalent within {margin} at {equivalent}")),
        (differ, format!("different by more than {margin} at {differ}")),
        (undecided, format!("undecided at {undecided}")),
    ];
    let parts: Vec<&str> =
        parts.iter().filter(|(number, _)| *number > 0).map(|(_, text)| text.as_str()).collect();
    Some(format!("{over}, {quantity} is {}.", listed(parts.into_iter())))
}

/// What verdicts are worth.
fn confidence(analysed: &Analysed<'_>) -> Option<String> {
    let tally = analysed.analysis.tally(Metric::Rate);
    let level = percent(LEVEL);
    match tally.points() {
        0 => None,
        points if tally.without_spread == points => {
            Some("No spread is given, so verdicts compare single values and carry no confidence.".into())
        }
        points => {
            let told = points - tally.without_spread - tally.undecided;
            let single = match tally.without_spread {
                0 => String::new(),
                some => format!("; {some} compare single values and carry no confidence"),
            };
            if told == 0 {
                return Some(format!("No verdict on throughput is given with confidence{single}."));
            }
            let doubtful = (told as f64 * LEVEL).ceil();
            Some(format!(
                "Each verdict is by itself wrong with a probability of at most {level}: of {told} on throughput, \
                 up to about {} may be{single}.",
                whole(doubtful)
            ))
        }
    }
}

/// Where CPU decides between configurations of equivalent throughput.
fn cheaper(analysed: &Analysed<'_>) -> Option<String> {
    let analysis = &analysed.analysis;
    let decided = |group: &Group| {
        let choices = analysis.advice(group).choices();
        let equals = group.standings.iter().skip(1).filter(|other| other.is(Finding::Equivalent)).count() + 1;
        (!choices.is_empty() && choices.len() < equals).then(|| {
            let names = listed(choices.iter().map(|standing| analysis.name(standing.configuration)));
            format!("{names} for {}", group_name(group, has_sizes(analysed, group)))
        })
    };
    let decided: Vec<String> = analysis.groups.iter().filter_map(decided).collect();
    (!decided.is_empty()).then(|| {
        format!(
            "Of equals in throughput, these cost less CPU: {}.",
            listed(decided.iter().map(String::as_str))
        )
    })
}

/// Whether a group's kind was measured with small and with large blocks.
fn has_sizes(analysed: &Analysed<'_>, group: &Group) -> bool {
    analysed.analysis.groups.iter().filter(|other| other.kind == group.kind).count() > 1
}

/// Where the best is not shown to be better than another.
fn doubts(analysed: &Analysed<'_>) -> Option<String> {
    let analysis = &analysed.analysis;
    let doubtful = |group: &Group| {
        let Advice::NotTold { others, .. } = analysis.advice(group) else { return None };
        let others = match others.len() {
            many if many > NAMED_MOST => format!("{many} others"),
            _ => listed(others.iter().map(|standing| analysis.name(standing.configuration))),
        };
        Some(format!("{} ({others})", group_name(group, has_sizes(analysed, group))))
    };
    let doubts: Vec<String> = analysis.groups.iter().filter_map(doubtful).collect();
    (!doubts.is_empty()).then(|| {
        format!(
            "Repetitions do not tell the best from others in {}.",
            listed(doubts.iter().map(String::as_str))
        )
    })
}

/// What guests cost that do nothing.
fn idle(provenance: &Provenance) -> Option<String> {
    let guests = |processes: &[ProcessUse]| {
        role_percent(processes, ProcessRole::IdleGuest) + role_percent(processes, ProcessRole::IdleBacking)
    };
    let mean = |state: GuestsState| {
        let percents: Vec<f64> = provenance
            .idle
            .iter()
            .filter(|baseline| baseline.guests == state)
            .map(|baseline| guests(&baseline.processes))
            .collect();
        (!percents.is_empty()).then(|| percents.iter().sum::<f64>() / percents.len() as f64)
    };
    let number = provenance.idle.iter().map(|baseline| baseline.environments.len()).max()?;
    let states = [(GuestsState::Running, "running"), (GuestsState::Stopped, "stopped")];
    let parts: Vec<String> = states
        .into_iter()
        .filter_map(|(state, name)| Some(format!("{} % of a processor {name}", significant(mean(state)?))))
        .collect();
    Some(format!(
        "Without a load, {} with their servers used {}.",
        count(number, "booted guest"),
        listed(parts.iter().map(String::as_str))
    ))
}

/// How much of a processor other work may take before it is worth a caution, in percent.
const BUSY_PERCENT: f64 = 20.0;

/// Other work on the host, seen while the guests were stopped.
fn busy(provenance: &Provenance) -> Option<String> {
    let stopped = provenance.idle.iter().filter(|baseline| baseline.guests == GuestsState::Stopped);
    let rest = stopped.map(|baseline| unattributed_percent(&baseline.host, &baseline.processes));
    let most = rest.fold(0.0, f64::max);
    (most > BUSY_PERCENT).then(|| {
        format!(
            "Other work took {} % of a processor while the guests were stopped: CPU figures include such work.",
            significant(most)
        )
    })
}

fn not_honoured(provenance: &Provenance) -> Vec<String> {
    let mut sentences = Vec::new();
    for setup in &provenance.setups {
        for item in &setup.not_honoured {
            let found = item.found.trim_end_matches('.');
            sentences
                .push(format!("{}: asked for {} {}, found {found}.", setup.name, item.setting, item.asked));
        }
    }
    sentences
}

fn of_table(table: &ResultTable) -> Vec<String> {
    table
        .latency_derived
        .then(|| {
            "Response times are worked out from the I/Os outstanding and the I/O rate (Little's law), not measured."
                .into()
        })
        .into_iter()
        .collect()
}

/// `5 %`.
fn percent(share: f64) -> String {
    format!("{} %", trimmed(100.0 * share, 2))
}
