//! A study of tiles: its page, the sentences a reader takes away, and its figures.

use maud::{Markup, html};
use virtbench_chart::{Axis, Chart, Dash, Form, Look, Point, Rule, Series, look};
use virtbench_model::tiles_study::{NO_MEMBER, TilesStudyAnalysis, analyse_tiles_study};
use virtbench_record::{
    INFRASTRUCTURE, OperationsMeasured, Provenance, TileBreach, TileDone, TileHostSecond, TileLevels,
    TileMemberMeasured, TileMemberPlan, TilesMeasured, TilesPlan, TilesRecord,
};
use virtbench_units::format_duration_ns;

use super::figures::style::INK;
use super::figures::{Drawing, Figure, Values, Variant};
use super::page::document;
use super::takeaway::Takeaway;
use super::takeaway::cautions::emulation;
use crate::figures::kind_name;
use crate::format::{MILLISECOND_NS, SECOND_NS, count, rounded, significant};
use crate::page::{Head, Section};
use crate::tiles::{of_tiles, tiles_table};
use crate::tiles_predicted;

/// What it says, and its figures.
pub(crate) fn head(
    provenance: &Provenance,
    plan: &TilesPlan,
    records: &[TilesRecord],
    analysis: &TilesStudyAnalysis,
) -> Head<3> {
    let host = if plan.is_elsewhere() { "The generators' host" } else { "The host" };
    let members = tiles_members(plan, records);
    Head {
        title: format!("How many tiles fit: {}", plan.tile),
        place: crate::provenance::place(provenance),
        takeaway: of_tiles_study(provenance, plan, analysis),
        sections: [
            Section::new(
                "score",
                "Score over tiles",
                "No run has a score.",
                crate::tiles::tiles_figure(&analysis.scored),
            ),
            Section::new(
                "members",
                "Members against their service levels",
                "No member has a series.",
                members,
            ),
            Section::new("host", host, "The host was not sampled.", tiles_host(records)),
        ],
    }
}

/// One self-contained page.
pub(crate) fn page(provenance: &Provenance, plan: &TilesPlan, records: &[TilesRecord]) -> String {
    let analysis = analyse_tiles_study(plan, records);
    let head = head(provenance, plan, records, &analysis);
    let [score, members, host] = &head.sections;
    let content = html! {
        (head.plain_opening())
        (score.markup())
        section aria-labelledby="counts" {
            h2 id="counts" { "Every number of tiles" }
            (tiles_table(&analysis.scored))
        }
        (members.markup())
        @for (tiles, measured) in firsts(records) { (members_table(plan, tiles, measured)) }
        (infrastructure(plan, records))
        (tiles_predicted::section(&analysis))
        (breaches(&analysis))
        (host.markup())
        (host_table(&analysis))
        section aria-labelledby="provenance" {
            h2 id="provenance" { "Provenance" }
            (crate::provenance::section(provenance, &provenance.notes, &|_| None))
        }
    };
    document(&head.title, &provenance.version, &content)
}

fn members_table(plan: &TilesPlan, tiles: u32, measured: &TilesMeasured) -> Markup {
    let id = format!("members-{tiles}");
    html! {
        section aria-labelledby=(id) {
            h2 id=(id) { "Tile by tile with " (count(tiles as usize, "tile")) }
            div.scroll tabindex="0" role="region" aria-label="Tile by tile" {
                table {
                    thead { tr {
                        th.number scope="col" { "tile" } th scope="col" { "member" } th.number scope="col" { "ready, s" }
                        th.number scope="col" { "operations/s" } th.number scope="col" { "median, s" }
                        th.number scope="col" { "percentile, s" } th.number scope="col" { "failed" }
                        th scope="col" { "service levels" } th.number scope="col" { "generator busy, %" }
                    } }
                    tbody { @for one in &measured.members { (member_row(plan, one)) } }
                }
            }
        }
    }
}

fn member_row(plan: &TilesPlan, one: &TileMemberMeasured) -> Markup {
    let levels = plan.member(&one.member).map(|member| member.levels).unwrap_or_default();
    let done = one.done.as_ref();
    let seconds = |ns: Option<u64>| ns.map_or_else(|| "–".into(), |ns| significant(ns as f64 / SECOND_NS));
    html! {
        tr {
            td.number { (one.tile) }
            th scope="row" { (one.member) }
            td.number { (significant(one.ready_ns as f64 / SECOND_NS)) }
            td.number { (done.map_or_else(|| "–".into(), |done| significant(done.per_second))) }
            td.number { (seconds(done.and_then(|done| Some(done.latency_ns?.p50)))) }
            td.number { (seconds(done.and_then(|done| done.response_ns(levels.percentile)))) }
            td.number { (done.map_or_else(|| "–".into(), failed)) }
            td { (if done.is_some() { in_words(&levels) } else { "to stay up".into() }) }
            td.number { (done.and_then(|done| done.busiest_thread_percent).map_or_else(|| "–".into(), |percent| rounded(percent, 0))) }
        }
    }
}

fn failed(done: &TileDone) -> String {
    let kinds: Vec<String> =
        done.error_kinds.iter().map(|(kind, times)| format!("{times} x {kind}")).collect();
    if kinds.is_empty() { done.failed.to_string() } else { kinds.join("; ") }
}

fn in_words(levels: &TileLevels) -> String {
    let response =
        levels.response_ns.map(|ns| format!("{} % within {}", levels.percentile, format_duration_ns(ns)));
    let least = levels.least_per_second.map(|least| format!("{least}/s at least"));
    let errors = Some(format!("{} % failed at most", levels.errors_percent));
    [response, least, errors].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn breaches(analysis: &TilesStudyAnalysis) -> Markup {
    html! {
        section aria-labelledby="breaches" {
            h2 id="breaches" { "Broken service levels" }
            @if analysis.breaches.is_empty() { p { "Every member kept its service levels in every run that counts." } }
            @else {
                div.scroll tabindex="0" role="region" aria-label="Broken service levels" {
                    table {
                        thead { tr {
                            th.number scope="col" { "tiles" } th.number scope="col" { "run" } th.number scope="col" { "tile" }
                            th scope="col" { "member" } th scope="col" { "level" } th.number scope="col" { "beyond, times" }
                            th.number scope="col" { "since, s" }
                        } }
                        tbody {
                            @for breach in &analysis.breaches {
                                tr {
                                    td.number { (breach.tiles) }
                                    td.number { (breach.repetition + 1) }
                                    td.number { (if breach.tile == INFRASTRUCTURE { "–".into() } else { breach.tile.to_string() }) }
                                    th scope="row" { (breach.member) }
                                    td { (breach.level) }
                                    td.number { (breach.beyond.map_or_else(|| "–".into(), significant)) }
                                    td.number { (breach.since_ns.map_or_else(|| "–".into(), |ns| rounded(ns as f64 / SECOND_NS, 0))) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn host_table(analysis: &TilesStudyAnalysis) -> Markup {
    let percent = |value: Option<f64>| value.map_or_else(|| "–".into(), |value| rounded(value, 0));
    html! {
        div.scroll tabindex="0" role="region" aria-label="The host" {
            table {
                thead { tr {
                    th.number scope="col" { "tiles" } th.number scope="col" { "processors busy, %" }
                    th.number scope="col" { "the busiest, %" } th.number scope="col" { "taken away, %" }
                    th.number scope="col" { "memory left, MiB" } th.number scope="col" { "disk busy, %" }
                    th.number scope="col" { "network interface, %" } th.number scope="col" { "network of a VM, %" }
                    th scope="col" { "exhausted" } th.number scope="col" { "power, W" } th.number scope="col" { "score a kilowatt" }
                } }
                tbody {
                    @for at in &analysis.host {
                        tr {
                            th.number scope="row" { (at.tiles) }
                            td.number { (rounded(at.busy_percent, 0)) }
                            td.number { (percent(at.busiest_processor_percent)) }
                            td.number { (rounded(at.steal_percent, 1)) }
                            td.number { (at.least_available_bytes.map_or_else(|| "–".into(), |bytes| (bytes >> 20).to_string())) }
                            td.number { (percent(at.disk_percent)) }
                            td.number { (percent(at.network_percent)) }
                            td.number { (percent(at.network_thread_percent)) }
                            td { (if at.exhausted.is_empty() { "nothing".into() } else { at.exhausted.join("; ") }) }
                            td.number { (at.watts.map_or_else(|| "–".into(), significant)) }
                            td.number { (at.score_per_kilowatt.map_or_else(|| "–".into(), significant)) }
                        }
                    }
                }
            }
        }
        @if let Some(why) = &analysis.energy_unavailable { p { "Power unavailable: " (why) "." } }
    }
}

/// Breaches beyond the first that are named.
const MORE: usize = 3;

/// How many fit with which score, who broke first and on what, and what the score does not cover.
pub(crate) fn of_tiles_study(
    provenance: &Provenance,
    plan: &TilesPlan,
    analysis: &TilesStudyAnalysis,
) -> Takeaway {
    let mut takeaway = of_tiles(&analysis.scored);
    if analysis.configuration().is_none() {
        takeaway.headline = format!("Nothing that counts was measured of {} yet.", plan.tile);
    }
    if let Some(unjudged) = unjudged(analysis) {
        let open = "; more were not tried.";
        takeaway.headline = takeaway.headline.replace(open, &format!("; {unjudged}."));
    }
    let mut details = Vec::new();
    if let Some(first) = &analysis.broke_first {
        details.push(broke(first));
        if first.member != NO_MEMBER {
            details.extend(first_in_time(analysis, first));
            details.push(behind(plan, analysis, first.tiles));
            details.extend(others(analysis, first));
        }
    }
    details.extend(tiles_predicted::in_words(analysis));
    details.extend(energy(analysis));
    details.push(covers(plan, analysis));
    takeaway.details.splice(0..0, details);
    takeaway.cautions.extend(cautions(provenance, plan, analysis));
    takeaway
}

/// The number of tiles beyond those that fit of which no run counts, and why.
fn unjudged(analysis: &TilesStudyAnalysis) -> Option<String> {
    let void = analysis.void.iter().max_by_key(|void| void.tiles)?;
    let judged = analysis.scored.configurations.iter().flat_map(|one| &one.steps);
    if judged.map(|step| step.tiles).max().is_some_and(|judged| judged >= void.tiles) {
        return None;
    }
    let why = void.why.first().map_or("", String::as_str);
    Some(format!("{} could not be judged: {why}", count(void.tiles as usize, "tile")))
}

fn broke(first: &TileBreach) -> String {
    let with = count(first.tiles as usize, "tile");
    if first.member == NO_MEMBER {
        return format!("Why {with} could not start: {}.", first.level);
    }
    format!("With {with}, {} was farthest from its service level: {}.", whose(first), first.level)
}

/// A member of a tile, or the infrastructure load.
fn whose(breach: &TileBreach) -> String {
    match breach.tile {
        INFRASTRUCTURE => format!("the {} load", breach.member),
        tile => format!("{} of tile {tile}", breach.member),
    }
}

fn first_in_time(analysis: &TilesStudyAnalysis, farthest: &TileBreach) -> Option<String> {
    let first = analysis.first_in_time.as_ref()?;
    let since = format_duration_ns(first.since_ns?);
    Some(if (first.tile, &first.member) == (farthest.tile, &farthest.member) {
        format!("It was also the first in time, {since} after measuring began.")
    } else {
        format!("First in time was {}, {since} after measuring began: {}.", whose(first), first.level)
    })
}

/// What is in the score, and of the infrastructure load how well it kept its pace.
fn covers(plan: &TilesPlan, analysis: &TilesStudyAnalysis) -> String {
    let Some(load) = &plan.infrastructure else {
        return "The score covers applications only: no infrastructure load ran beside them.".into();
    };
    let most = analysis.configuration().and_then(|one| one.most().or_else(|| one.too_many()));
    let parts = most.and_then(|step| Some((step.sum?.mean, step.infrastructure?.mean)));
    let parts = parts.map_or_else(String::new, |(sum, infrastructure)| {
        format!(": {} and {} there", significant(sum), significant(infrastructure))
    });
    format!("The score covers {}{parts}. Operations ran on {}.", analysis.covers, load.platform)
}

fn behind(plan: &TilesPlan, analysis: &TilesStudyAnalysis, tiles: u32) -> String {
    if plan.is_elsewhere() {
        return "What limits it is not known: its machine is elsewhere.".into();
    }
    let Some(host) = analysis.host.iter().find(|host| host.tiles == tiles) else {
        return "Nothing was measured of the host there.".into();
    };
    match host.exhausted.as_slice() {
        [] => format!(
            "Neither processors ({} % busy), memory, disk nor network of the host were exhausted: a member's own processors limit, or \
             bursts do.",
            rounded(host.busy_percent, 0)
        ),
        exhausted => format!("Exhausted were {}.", exhausted.join("; ")),
    }
}

fn others(analysis: &TilesStudyAnalysis, first: &TileBreach) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    for breach in analysis.breaches.iter().filter(|breach| breach.tiles == first.tiles) {
        if breach.member != first.member && !names.contains(&breach.member) {
            names.push(breach.member.clone());
        }
    }
    let more = names.len().saturating_sub(MORE);
    names.truncate(MORE);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty()).then(|| format!("Other members that broke theirs: {}{rest}.", names.join(", ")))
}

fn energy(analysis: &TilesStudyAnalysis) -> Option<String> {
    let most = analysis.configuration()?.most()?;
    let host = analysis.host.iter().find(|host| host.tiles == most.tiles)?;
    match (host.watts, host.score_per_kilowatt, &analysis.energy_unavailable) {
        (Some(watts), Some(score), _) => Some(format!(
            "With {} the host took {} W: a score of {} for each kilowatt.",
            count(most.tiles as usize, "tile"),
            significant(watts),
            significant(score)
        )),
        (_, _, Some(why)) => Some(format!("Score for each kilowatt unavailable: {why}.")),
        _ => None,
    }
}

fn cautions(provenance: &Provenance, plan: &TilesPlan, analysis: &TilesStudyAnalysis) -> Vec<String> {
    let mut cautions: Vec<String> = emulation(provenance).into_iter().collect();
    if plan.existing {
        cautions.push(
            "Members were there already, on machines of their own: the use of this host is that of the generators, and what their \
             machines lacked is not known."
                .into(),
        );
    } else if let Some(host) = plan.host.as_ref().filter(|host| host.elsewhere) {
        let what = if plan.vm { "were VMs of" } else { "ran natively on" };
        cautions.push(format!(
            "Members {what} {}, by the {} there: the use of this host is that of the generators, and what that machine lacked is not \
             known.",
            host.address, host.network
        ));
    } else if !plan.vm {
        cautions
            .push("Members ran on the host itself, in namespaces: no hypervisor is in these figures.".into());
    }
    if plan.members.iter().any(|member| member.reference.is_none() && member.load.kind.name() != "idle") {
        cautions.push(
            "Members without a reference value are held against what they did with the fewest tiles: the score is no measure of \
             this host against others."
                .into(),
        );
    }
    if !plan.is_elsewhere() {
        cautions.push("The generators share the host with the tiles; what they cost is in its use.".into());
    }
    cautions.extend(analysis.few.iter().cloned());
    cautions.extend(analysis.others.clone());
    for void in &analysis.void {
        cautions.push(format!(
            "Run {} with {} does not count: {}.",
            void.repetition + 1,
            count(void.tiles as usize, "tile"),
            void.why.join("; ")
        ));
    }
    cautions
}

/// A row for each operation of each run that counts, against the pace. Nothing where no infrastructure load was asked for.
pub(crate) fn infrastructure(plan: &TilesPlan, records: &[TilesRecord]) -> Markup {
    let Some(load) = &plan.infrastructure else { return html! {} };
    let counts = records.iter().filter(|record| record.is_together() && record.void().is_none());
    let runs: Vec<(&TilesRecord, &OperationsMeasured)> =
        counts.filter_map(|record| Some((record, record.measured()?.infrastructure.as_ref()?))).collect();
    let rounds = load.pace().map_or(0, |(rounds, _)| rounds);
    let milliseconds = |ns: u64| significant(ns as f64 / MILLISECOND_NS);
    html! {
        section aria-labelledby="infrastructure" {
            h2 id="infrastructure" { "Management operations beside the tiles" }
            div.scroll tabindex="0" role="region" aria-label="Management operations beside the tiles" {
                table {
                    thead { tr {
                        th.number scope="col" { "tiles" } th.number scope="col" { "run" } th scope="col" { "operation" }
                        th.number scope="col" { "asked for" } th.number scope="col" { "done" } th.number scope="col" { "failed" }
                        th.number scope="col" { "median, ms" } th.number scope="col" { "95th percentile, ms" }
                    } }
                    tbody {
                        @for (record, measured) in &runs { @for (kind, share) in &load.mix {
                            @let one = measured.operations.get(kind);
                            tr {
                                td.number { (record.key.tiles) }
                                td.number { (record.key.repetition + 1) }
                                th scope="row" { (kind_name(*kind)) }
                                td.number { (rounds * u64::from(*share)) }
                                td.number { (one.map_or(0, |one| one.done)) }
                                td.number { (one.map_or(0, |one| one.failed.values().sum::<u64>())) }
                                @let latency = one.and_then(|one| one.latency_ns);
                                td.number { (latency.map_or_else(|| "–".into(), |latency| milliseconds(latency.p50))) }
                                td.number { (latency.map_or_else(|| "–".into(), |latency| milliseconds(latency.p95))) }
                            }
                        } }
                    }
                }
            }
            @for why in runs.iter().flat_map(|(_, measured)| &measured.first_failures).take(5) { p { (why) } }
        }
    }
}

/// Seconds since measuring began, and what was found there.
type Curve = Vec<(f64, f64)>;

/// A member's curve as shares of what its service level asks for.
type Of<'a> = &'a dyn Fn(&TileMemberPlan, &TileDone) -> Option<Curve>;

/// Two drawings, with a variant for each number of tiles: response times, and operations done, as shares of what the service
/// level asks for. Nothing without a series.
pub(crate) fn tiles_members(plan: &TilesPlan, records: &[TilesRecord]) -> Option<Figure> {
    let runs = firsts(records);
    let quantities: [(&str, &str, Of<'_>); 2] = [
        ("tiles-response", "response time, of what is allowed", &responses),
        ("tiles-rate", "operations, of the least asked for", &rates),
    ];
    let drawings =
        quantities.into_iter().filter_map(|(id, quantity, of)| drawing(plan, &runs, id, quantity, of));
    let drawings: Vec<Drawing> = drawings.collect();
    (!drawings.is_empty()).then(|| Figure {
        title: "Each member against its service levels".into(),
        caption: "One is what the service level asks for. Response times are a percentile of each second (the 95th, of a database \
                  the 90th), and stay below one; operations are those of a second on average since measuring began, and stay \
                  above it. The level itself holds for the whole measuring time."
            .into(),
        drawings,
        values: Values::Own,
    })
}

/// The first run that counts of each number of tiles, ascending.
fn firsts(records: &[TilesRecord]) -> Vec<(u32, &TilesMeasured)> {
    let mut runs: Vec<(u32, &TilesMeasured)> = Vec::new();
    for record in records.iter().filter(|record| record.is_together() && record.void().is_none()) {
        if let Some(measured) = record.measured()
            && runs.iter().all(|(tiles, _)| *tiles != record.key.tiles)
        {
            runs.push((record.key.tiles, measured));
        }
    }
    runs.sort_by_key(|(tiles, _)| *tiles);
    runs
}

fn responses(member: &TileMemberPlan, done: &TileDone) -> Option<Curve> {
    let limit_ns = member.levels.response_ns? as f64;
    let known = done.series.iter().filter_map(|second| {
        Some((second.start_ns as f64 / SECOND_NS, second.response_ns? as f64 / limit_ns))
    });
    Some(known.collect()).filter(|curve: &Curve| !curve.is_empty())
}

fn rates(member: &TileMemberPlan, done: &TileDone) -> Option<Curve> {
    let least = member.levels.least_per_second.filter(|least| *least > 0.0)?;
    let mut sum = 0.0;
    let known = (1u32..).zip(&done.series).map(|(number, second)| {
        sum += second.completed as f64;
        (second.start_ns as f64 / SECOND_NS, sum / f64::from(number) / least)
    });
    Some(known.collect()).filter(|curve: &Curve| !curve.is_empty())
}

fn line(name: String, look: Look, curve: Curve) -> Series {
    let points = curve.into_iter().map(|(at, value)| Point::new(at, value)).collect();
    Series { name, look, form: Form::Line, points }
}

fn drawing(
    plan: &TilesPlan,
    runs: &[(u32, &TilesMeasured)],
    id: &str,
    quantity: &str,
    of: Of<'_>,
) -> Option<Drawing> {
    let mut variants = Vec::new();
    for (tiles, run) in runs {
        let lines = run.members.iter().filter_map(|one| {
            let (index, curve) = found(plan, one, of)?;
            let name = format!("{} {}", one.member, one.tile);
            let dashes = [Dash::Solid, Dash::Dashed, Dash::Dotted, Dash::Mixed];
            Some(line(name, look(index).dashed(dashes[(one.tile as usize - 1) % 4]), curve))
        });
        let series: Vec<Series> = lines.collect();
        if series.is_empty() {
            continue;
        }
        let level =
            Rule { at: 1.0, label: "service level".into(), look: Look::of_colour(INK).dashed(Dash::Dotted) };
        let across = Axis::from_zero("seconds since measuring began");
        let chart = Chart { series, rules: vec![level], ..Chart::new(across, Axis::from_zero(quantity)) };
        variants.push(Variant::chart(format!("{quantity}, {}", count(*tiles as usize, "tile")), chart));
    }
    let label = format!(
        "{quantity}, over time, a line for each member of each tile; the table below holds the values."
    );
    members_of_tiles(id, label, variants)
}

/// The member's place in the plan, and its curve.
fn found(plan: &TilesPlan, one: &TileMemberMeasured, of: Of<'_>) -> Option<(usize, Curve)> {
    let index = plan.members.iter().position(|member| member.name == one.member)?;
    Some((index, of(&plan.members[index], one.done.as_ref()?)?))
}

/// The last variant, of the most tiles, is shown first.
fn members_of_tiles(id: &str, label: String, variants: Vec<Variant>) -> Option<Drawing> {
    let first = variants.len().checked_sub(1)?;
    Some(Drawing { id: id.into(), label, choice: "number of tiles", variants, first })
}

/// The host second by second, with a variant for each number of tiles. Nothing where it was not sampled.
pub(crate) fn tiles_host(records: &[TilesRecord]) -> Option<Figure> {
    let mut variants = Vec::new();
    for (tiles, run) in firsts(records).into_iter().filter(|(_, run)| !run.seconds.is_empty()) {
        let all = f64::from(run.host.processors.max(1));
        let memory = |available: u64| Some(100.0 - 100.0 * available as f64 / run.memory_bytes? as f64);
        let lines: [(&str, Curve); 5] = [
            ("processors busy", host_curve(run, &|second| Some((second.cpu_percent / all).min(100.0)))),
            ("taken away by a hypervisor below", host_curve(run, &|second| Some(second.steal_percent / all))),
            ("memory used", host_curve(run, &|second| memory(second.available_bytes?))),
            ("disk of the data busy", host_curve(run, &|second| second.disk_percent)),
            ("network interface, of its speed", host_curve(run, &|second| second.network_percent)),
        ];
        let drawn = lines.into_iter().enumerate().filter(|(_, (_, curve))| !curve.is_empty());
        let chart = Chart {
            series: drawn.map(|(index, (name, curve))| line(name.into(), look(index), curve)).collect(),
            ..Chart::new(
                Axis::from_zero("seconds since measuring began"),
                Axis::from_zero("% of all").within(0.0, 100.0),
            )
        };
        variants.push(Variant::chart(count(tiles as usize, "tile"), chart));
    }
    let label =
        "Processors, memory, disk and network of the host over time; the table below holds the values.";
    Some(Figure {
        title: "The host while tiles are measured".into(),
        caption: "The generators run on this host too, and are in its use.".into(),
        drawings: vec![members_of_tiles("tiles-host", label.into(), variants)?],
        values: Values::Own,
    })
}

fn host_curve(run: &TilesMeasured, value: &dyn Fn(&TileHostSecond) -> Option<f64>) -> Curve {
    let point = |second: &TileHostSecond| Some((second.start_ns as f64 / SECOND_NS, value(second)?));
    run.seconds.iter().filter_map(point).collect()
}
