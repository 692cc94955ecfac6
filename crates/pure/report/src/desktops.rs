//! A study of desktops: its page, the sentences a reader takes away, its figures and its rows of CSV.

use csv::Writer;
use maud::{Markup, html};
use virtbench_chart::{Axis, Chart, Dash, Form, Point, Rule, Series, look};
use virtbench_model::desktops::{DesktopsAnalysis, analyse_desktops};
use virtbench_record::{
    DesktopGroup, DesktopPicture, DesktopsNumbers, DesktopsPlan, DesktopsRecord, Provenance,
};

use super::figures::{Drawing, Figure, Values, Variant};
use super::page::document;
use super::takeaway::Takeaway;
use super::takeaway::cautions::{emulation, uml_guest};
use crate::format::{MILLISECOND_NS, SECOND_NS, count, rounded, significant};
use crate::page::{Head, Section};
use crate::rows::{CsvError, text};

/// Pictures that a page shows at most: each may have a third of a megabyte.
const PICTURES: usize = 3;

/// What it says, and its figures.
pub(crate) fn head(
    provenance: &Provenance,
    plan: &DesktopsPlan,
    records: &[DesktopsRecord],
    analysis: &DesktopsAnalysis,
) -> Head<1> {
    let drawn = self::desktops(plan, analysis).into_iter().chain(desktops_timeline(plan, records));
    Head {
        title: "How many desktops fit".into(),
        place: crate::provenance::place(provenance),
        takeaway: of_desktops(provenance, plan, analysis),
        sections: [Section::new("quality", "What users wait", "Nothing was measured yet.", drawn)],
    }
}

/// One self-contained page.
pub(crate) fn page(provenance: &Provenance, plan: &DesktopsPlan, records: &[DesktopsRecord]) -> String {
    let analysis = analyse_desktops(plan, records);
    let head = head(provenance, plan, records, &analysis);
    let [quality] = &head.sections;
    let content = html! {
        (head.plain_opening())
        (quality.markup())
        section aria-labelledby="numbers" {
            h2 id="numbers" { "Every number of desktops" }
            (numbers(plan, &analysis))
        }
        @for at in &analysis.numbers { (operations(at)) }
        (videos_table(&analysis))
        (pictures(records, &analysis))
        section aria-labelledby="provenance" {
            h2 id="provenance" { "Provenance" }
            (crate::provenance::section(provenance, &provenance.notes, &|_| None))
        }
    };
    document(&head.title, &provenance.version, &content)
}

fn seconds(ns: Option<u64>) -> String {
    ns.map_or_else(|| "–".into(), |ns| significant(ns as f64 / SECOND_NS))
}

fn numbers(plan: &DesktopsPlan, analysis: &DesktopsAnalysis) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Every number of desktops" {
            table {
                thead { tr {
                    th.number scope="col" { "desktops" } th.number scope="col" { "a processor" } th scope="col" { "quality" }
                    th.number scope="col" { "group A, s" } th.number scope="col" { "group B, s" }
                    th.number scope="col" { "A, last change" } th.number scope="col" { "B, last change" }
                    th.number scope="col" { "A, all at once" } th.number scope="col" { "B, all at once" }
                    th.number scope="col" { "failed, %" } th.number scope="col" { "lost" }
                    th.number scope="col" { "between users, %" } th.number scope="col" { "echo of a key, ms" }
                    th.number scope="col" { "host busy, %" }
                } }
                tbody {
                    @for at in &analysis.numbers {
                        tr {
                            th.number scope="row" { (at.desktops) }
                            td.number { @if plan.are_existing() { "–" } @else { (significant(at.per_processor)) } }
                            td { (at.quality) }
                            @for group in &at.groups { td.number { (seconds(group.percentile.map(|found| found.ns))) } }
                            @for group in &at.groups { td.number { (seconds(group.last_change.map(|found| found.ns))) } }
                            @for group in &at.groups { td.number { (seconds(group.storm.map(|found| found.ns))) } }
                            td.number { (rounded(at.errors * 100.0, 1)) }
                            td.number { (at.lost.len()) }
                            td.number { (at.between_users_percent.map_or_else(|| "–".into(), |percent| rounded(percent, 0))) }
                            td.number { (at.echo_median_ns.map_or_else(|| "–".into(), |ns| significant(ns as f64 / MILLISECOND_NS))) }
                            td.number { (at.host_busy_percent.map_or_else(|| "–".into(), |percent| rounded(percent, 0))) }
                        }
                    }
                }
            }
        }
        @for (desktops, why) in &analysis.failures { p { (desktops) " desktops did not stand: " (why) } }
    }
}

fn operations(at: &DesktopsNumbers) -> Markup {
    let id = format!("operations-{}", at.desktops);
    html! {
        section aria-labelledby=(id) {
            h2 id=(id) { "Operations with " (crate::format::count(at.desktops as usize, "desktop")) }
            div.scroll tabindex="0" role="region" aria-label="Operations" {
                table {
                    thead { tr {
                        th scope="col" { "application" } th scope="col" { "operation" } th scope="col" { "group" }
                        th.number scope="col" { "done" } th.number scope="col" { "median, s" } th.number scope="col" { "percentile, s" }
                        th.number scope="col" { "interval, s" } th.number scope="col" { "last change, median, s" } th.number scope="col" { "inside, median, s" }
                        th.number scope="col" { "failed" }
                    } }
                    tbody {
                        @for one in &at.operations {
                            tr {
                                th scope="row" { (one.operation.application) }
                                td { (one.operation.operation) }
                                td { (one.operation.group.name()) }
                                td.number { (one.percentile.map_or(0, |found| found.operations)) }
                                td.number { (seconds(one.median_ns)) }
                                td.number { (seconds(one.percentile.map(|found| found.ns))) }
                                td.number { (one.percentile.map_or_else(|| "–".into(), |found| format!("{} to {}", seconds(Some(found.low_ns)), seconds(found.high_ns)))) }
                                td.number { (seconds(one.last_change_median_ns)) }
                                td.number { (seconds(one.inside_median_ns)) }
                                td.number { (one.failed) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Videos with every number of desktops, if any were played.
fn videos_table(analysis: &DesktopsAnalysis) -> Markup {
    let rows = analysis
        .numbers
        .iter()
        .flat_map(|at| at.operations.iter().filter_map(move |one| Some((at.desktops, one, one.video?))));
    let rows: Vec<_> = rows.collect();
    html! {
        @if !rows.is_empty() {
            section aria-labelledby="videos" {
                h2 id="videos" { "Videos" }
                p {
                    "Every frame carries its number in the picture. Users count which frames reach them; frames that do not are dropped, "
                    "whether by the player, the VNC server or the link."
                }
                div.scroll tabindex="0" role="region" aria-label="Videos" {
                    table {
                        thead { tr {
                            th.number scope="col" { "desktops" } th scope="col" { "application" } th scope="col" { "operation" }
                            th.number scope="col" { "played" } th.number scope="col" { "frames a second" }
                            th.number scope="col" { "seen a second" } th.number scope="col" { "dropped, %" }
                            th.number scope="col" { "longest freeze, ms" }
                        } }
                        tbody {
                            @for (desktops, one, video) in &rows {
                                tr {
                                    th.number scope="row" { (desktops) }
                                    td { (one.operation.application) }
                                    td { (one.operation.operation) }
                                    td.number { (video.played) }
                                    td.number { (video.rate) }
                                    td.number { (rounded(video.seen_rate, 1)) }
                                    td.number { (rounded(video.dropped_percent, 1)) }
                                    td.number { (significant(video.longest_freeze_ns as f64 / MILLISECOND_NS)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// First those of the least number with which users are not content, then those of the greatest with which they are.
fn pictures(records: &[DesktopsRecord], analysis: &DesktopsAnalysis) -> Markup {
    let broken =
        analysis.numbers.iter().map(|at| at.desktops).find(|desktops| Some(*desktops) > analysis.most);
    let rank = |desktops: u32| match Some(desktops) {
        some if some == broken => 0,
        some if some == analysis.most => 1,
        _ => 2,
    };
    let mut shown: Vec<(u32, &DesktopPicture)> = records
        .iter()
        .filter_map(|record| Some((record.key.desktops, record.measured()?)))
        .flat_map(|(desktops, measured)| measured.pictures.iter().map(move |picture| (desktops, picture)))
        .collect();
    shown.sort_by_key(|(desktops, _)| (rank(*desktops), std::cmp::Reverse(*desktops)));
    let base64 = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "+/=".contains(c));
    html! {
        @if !shown.is_empty() {
            section aria-labelledby="pictures" {
                h2 id="pictures" { "What users saw at the worst moments" }
                @for (desktops, picture) in shown.iter().filter(|(_, picture)| base64(&picture.png)).take(PICTURES) {
                    figure {
                        img src=(format!("data:image/png;base64,{}", picture.png)) alt=(picture.what) style="max-width:100%";
                        figcaption { (desktops) " desktops, user " (picture.user + 1) ": " (picture.what) }
                    }
                }
            }
        }
    }
}

/// Beyond this the processors are what limits, in percent of all of them.
const BUSY_PERCENT: f64 = 90.0;

/// How many fit, what breaks beyond, and what is behind it.
pub(crate) fn of_desktops(
    provenance: &Provenance,
    plan: &DesktopsPlan,
    analysis: &DesktopsAnalysis,
) -> Takeaway {
    let broken = analysis.numbers.iter().find(|at| Some(at.desktops) > analysis.most);
    let headline = match (analysis.most, analysis.numbers.last()) {
        (_, None) => "Nothing was measured of any number of desktops yet.".to_owned(),
        (None, Some(_)) if analysis.numbers.iter().all(|at| at.quality == "unknown") => {
            "No user got beyond the first application: have them work longer.".to_owned()
        }
        (None, Some(_)) => {
            let least = analysis.numbers.first().map_or(0, |at| at.desktops);
            format!("Users are not content even with {}.", count(least as usize, "desktop"))
        }
        (Some(most), Some(last)) => {
            let processors = f64::from(provenance.host.processors.max(1));
            let fit = if plan.are_existing() {
                format!("Users are content with {} where they are", count(most as usize, "desktop"))
            } else {
                let each = significant(f64::from(most) / processors);
                let verb = if most == 1 { "fits" } else { "fit" };
                format!("{} {verb} on this host, {each} a processor", count(most as usize, "desktop"))
            };
            let fit = format!("{fit}{}", by_the_picture(plan, analysis, most));
            match broken {
                Some(next) => format!("{fit}: with {} users are no longer content.", next.desktops),
                None if last.desktops == most => format!("{fit}; more were not tried."),
                None => format!("{fit}."),
            }
        }
    };
    let mut details = Vec::new();
    let at_most = analysis.numbers.iter().find(|at| Some(at.desktops) == analysis.most);
    details.extend(at_most.map(|at| quality(plan, at)));
    details
        .extend(at_most.filter(|at| at.quality != "passed").map(|at| surely(&analysis.numbers, at.desktops)));
    details.extend(at_most.and_then(|at| agreement(plan, at)));
    if let Some(at) = broken {
        details.extend(why_broken(plan, analysis, at));
    }
    details.extend(at_most.into_iter().flat_map(videos));
    details.extend(broken.into_iter().flat_map(videos));
    details.extend(at_most.and_then(echo));
    Takeaway { headline, details, cautions: cautions(provenance, plan, analysis) }
}

/// How many fit where the intervals keep to the limits as well, of up to `most`.
fn surely(numbers: &[DesktopsNumbers], most: u32) -> String {
    let sure = numbers.iter().take_while(|at| at.desktops <= most).filter(|at| at.quality == "passed").last();
    match sure {
        Some(at) => format!(
            "Sure by 95 % intervals: {}. Beyond that, up to {most}, a limit lies within the interval.",
            count(at.desktops as usize, "desktop")
        ),
        None => "By 95 % intervals no number is sure.".to_owned(),
    }
}

/// How many fit by the last change of the picture, where that is another number.
fn by_the_picture(plan: &DesktopsPlan, analysis: &DesktopsAnalysis, most: u32) -> String {
    match analysis.most_by_last_change {
        _ if plan.are_existing() => String::new(),
        Some(other) if other == most => String::new(),
        Some(other) => format!(" ({other} by the last change of the picture)"),
        None => " (none by the last change of the picture)".into(),
    }
}

/// How far the marker of an end and the last change of the picture are apart.
fn agreement(plan: &DesktopsPlan, at: &DesktopsNumbers) -> Option<String> {
    let found = at.agreement?;
    let seconds = |ns: u64| significant(ns as f64 / SECOND_NS);
    Some(format!(
        "The marker of an operation's end and the last change of the picture, which needs no help from inside, are at most {} s apart in \
         half of the operations and {} s in {} %; a cursor that blinks and a bar that fades are such changes.",
        seconds(found.median_ns),
        seconds(found.percentile_ns),
        significant(plan.share * 100.0)
    ))
}

fn quality(plan: &DesktopsPlan, at: &DesktopsNumbers) -> String {
    let groups = at.groups.iter().filter_map(|group| {
        let found = group.percentile?;
        Some(format!(
            "group {} {} s (limit {} s)",
            group.group.name(),
            significant(found.ns as f64 / SECOND_NS),
            significant(group.limit_ns as f64 / SECOND_NS)
        ))
    });
    let groups = groups.collect::<Vec<_>>().join(", ");
    format!(
        "With {}, {} % of the operations took at most: {groups}; {} % failed.",
        count(at.desktops as usize, "desktop"),
        significant(plan.share * 100.0),
        rounded(at.errors * 100.0, 1)
    )
}

fn videos(at: &DesktopsNumbers) -> impl Iterator<Item = String> {
    at.operations.iter().filter_map(|one| {
        let video = one.video?;
        Some(format!(
            "With {} users saw {} of {} frames a second in {} {}; {} % of the frames were dropped, and the picture stood still for {} ms at \
             most.",
            count(at.desktops as usize, "desktop"),
            rounded(video.seen_rate, 1),
            video.rate,
            one.operation.application,
            one.operation.operation,
            rounded(video.dropped_percent, 1),
            significant(video.longest_freeze_ns as f64 / MILLISECOND_NS)
        ))
    })
}

/// What made users discontent: desktops that were lost, operations that failed, or those that took too long, for which alone the
/// host's processors may be to blame.
fn why_broken(plan: &DesktopsPlan, analysis: &DesktopsAnalysis, at: &DesktopsNumbers) -> Vec<String> {
    let with = count(at.desktops as usize, "desktop");
    let mut details = Vec::new();
    if let Some(first) = at.lost.first() {
        let more = match at.lost.len() - 1 {
            0 => String::new(),
            more => format!(" {} more were lost.", count(more, "desktop")),
        };
        details.push(format!(
            "With {with} desktop {} could not be used: {}.{more}",
            first.user + 1,
            first.why
        ));
    }
    if let Some((why, times)) = at.error_kinds.iter().max_by_key(|(_, times)| **times) {
        details.push(format!(
            "With {with} {} % of the operations failed; most often, {}: {why}.",
            rounded(at.errors * 100.0, 1),
            match times {
                1 => "once".to_owned(),
                times => format!("{times} times"),
            }
        ));
    }
    if let Some(first) = &analysis.broke_first {
        let is_slow =
            at.groups.iter().any(|group| group.percentile.is_some_and(|found| found.ns > group.limit_ns));
        let behind = if is_slow && !plan.are_existing() { behind(at) } else { String::new() };
        details.push(format!("With {with} {} {} broke first.{behind}", first.application, first.operation));
    }
    if at.groups.iter().any(|group| group.percentile.is_some()) {
        details.push(quality(plan, at));
    }
    details
}

fn behind(at: &DesktopsNumbers) -> String {
    at.host_busy_percent.map_or_else(String::new, |busy| {
        // Ticks are counted coarsely, and may come out a little above all that there is.
        let busy = busy.min(100.0);
        let busy_text = rounded(busy, 0);
        if busy >= BUSY_PERCENT {
            format!(" The processors were {busy_text} % busy: they are what limits.")
        } else {
            format!(" The processors were {busy_text} % busy: something else limits, or bursts do.")
        }
    })
}

fn echo(at: &DesktopsNumbers) -> Option<String> {
    let ms = significant(at.echo_median_ns? as f64 / MILLISECOND_NS);
    Some(format!(
        "The first key of a text changed the picture within {ms} ms, in half of the cases: the floor of everything interactive."
    ))
}

fn cautions(provenance: &Provenance, plan: &DesktopsPlan, analysis: &DesktopsAnalysis) -> Vec<String> {
    let mut cautions: Vec<String> = emulation(provenance).into_iter().collect();
    if plan.are_existing() {
        cautions.push(
            "Desktops were there already: what they cost is not in the use of this host. Nobody inside draws a marker, so operations end \
             with the last change of the picture, a cursor that blinks left out."
                .to_owned(),
        );
    } else if !plan.vm {
        cautions
            .push("Desktops are sessions on the host itself: no hypervisor is in these figures.".to_owned());
    } else if uml_guest(provenance).is_some() {
        cautions.push(
            "User Mode Linux has no screen: each desktop serves VNC itself over its network, as natively. Of a screen that a hypervisor \
             shows nothing is in these figures."
                .to_owned(),
        );
    }
    if let Some(link) = plan.link {
        cautions.push(format!(
            "Between users and desktops this process holds back what comes too early: {}. Nothing is lost there, and TCP's own control of \
             a slow link is not in these figures.",
            crate::provenance::link(link)
        ));
    }
    cautions.push("The users share the host with their desktops; what they cost is in its use.".to_owned());
    let open = analysis.numbers.iter().filter(|at| at.quality == "open").map(|at| at.desktops.to_string());
    let open: Vec<String> = open.collect();
    if !open.is_empty() {
        cautions.push(format!(
            "With {} {} the limit lies within the interval, or operations are too few for one: measure longer.",
            open.join(", "),
            if open == ["1"] { "desktop" } else { "desktops" }
        ));
    }
    cautions.extend(analysis.others.clone());
    let outside: u64 = analysis.numbers.iter().map(|at| at.outside).sum();
    if outside > 0 {
        cautions.push(format!(
            "Of {} the session's own clock tells more time than passed for its user: it runs fast, and times inside are not to be \
             trusted.",
            count(usize::try_from(outside).unwrap_or(usize::MAX), "operation")
        ));
    }
    for (desktops, why) in &analysis.failures {
        cautions.push(format!("{desktops} desktops did not stand: {why}"));
    }
    cautions
}

/// Operations that a pointer can read, at most: a page with more would be large.
const READABLE_MOST: usize = 1_000;

/// Both groups' percentile, with its interval, each with its limit. Nothing without a measurement.
pub(crate) fn desktops(plan: &DesktopsPlan, analysis: &DesktopsAnalysis) -> Option<Figure> {
    let mut numbers = analysis.numbers.iter().flat_map(|at| &at.groups);
    numbers.any(|group| group.percentile.is_some()).then_some(())?;
    let seconds = |ns: u64| ns as f64 / SECOND_NS;
    let (mut series, mut rules) = (Vec::new(), Vec::new());
    for (index, group) in DesktopGroup::ALL.into_iter().enumerate() {
        let points = analysis.numbers.iter().filter_map(|at| {
            let found = at.groups.iter().find(|one| one.group == group)?.percentile?;
            let (value, high) = (seconds(found.ns), seconds(found.high_ns.unwrap_or(found.ns)));
            let name = group.name();
            let hover = format!("group {name}, {} desktops: {} s", at.desktops, significant(value));
            let interval = Some([seconds(found.low_ns), high]);
            Some(Point::new(at.per_processor, value).between(interval).hover(hover))
        });
        let name = format!("group {}", group.name());
        series.push(Series { name, look: look(index), form: Form::Marked, points: points.collect() });
        let label = format!("limit of {}", group.name());
        rules.push(Rule { at: seconds(plan.limit_ns(group)), label, look: look(index).dashed(Dash::Dotted) });
    }
    let across = if plan.are_existing() { "desktops" } else { "desktops a processor" };
    let chart = Chart { series, rules, ..Chart::new(Axis::from_zero(across), Axis::from_zero("seconds")) };
    let label =
        format!("What users wait against {across}, a line for each group; the table below holds the values.");
    Some(Figure {
        title: format!("What users wait against {across}"),
        caption: format!(
            "{} % of the operations of a group took no longer, those left out with which all users begin at once. \
             Whiskers are 95 % intervals; dotted lines are the limits.",
            significant(plan.share * 100.0)
        ),
        drawings: vec![Drawing::only("desktops", label, Variant::chart("seconds", chart))],
        values: Values::Own,
    })
}

/// Every operation of the greatest number of desktops, when it began and how long it took.
pub(crate) fn desktops_timeline(plan: &DesktopsPlan, records: &[DesktopsRecord]) -> Option<Figure> {
    let record = records
        .iter()
        .filter(|record| record.measured().is_some_and(|measured| !measured.operations.is_empty()))
        .max_by_key(|record| record.key.desktops)?;
    let measured = record.measured()?;
    let is_readable = measured.operations.len() <= READABLE_MOST;
    let series = DesktopGroup::ALL.into_iter().enumerate().map(|(index, group)| {
        let points = measured.operations.iter().filter_map(|done| {
            let operation = plan.operations.get(done.operation as usize)?;
            let times = (operation.group == group).then_some(done.times?)?;
            let (begun, latency) = (done.begun_ns as f64 / SECOND_NS, times.latency_ns as f64 / SECOND_NS);
            let name = format!("{} {}", operation.application, operation.operation);
            let hover = format!("user {}, {name}: {} s", done.user + 1, significant(latency));
            Some(Point::new(begun, latency).hover(if is_readable { hover } else { String::new() }))
        });
        let name = format!("group {}", group.name());
        Series { name, look: look(index), form: Form::Marks, points: points.collect() }
    });
    let chart = Chart {
        series: series.collect(),
        ..Chart::new(Axis::from_zero("seconds since users began"), Axis::from_zero("seconds"))
    };
    let label = format!(
        "Every operation of {} desktops over time. The tables of operations hold their percentiles.",
        record.key.desktops
    );
    Some(Figure {
        title: format!("Every operation of {} desktops", record.key.desktops),
        caption: "At the left all users begin at once.".into(),
        drawings: vec![Drawing::only("desktops-time", label, Variant::chart("seconds", chart))],
        values: Values::Under("Operations"),
    })
}

/// One row for each operation, in the order of their ends.
pub(crate) fn desktops_csv(plan: &DesktopsPlan, records: &[DesktopsRecord]) -> Result<String, CsvError> {
    let mut writer = Writer::from_writer(Vec::new());
    writer.write_record([
        "desktops",
        "repetition",
        "user",
        "application",
        "operation",
        "group",
        "storm",
        "begun_ns",
        "latency_ns",
        "first_change_ns",
        "last_change_ns",
        "inside_ns",
        "around_ns",
        "failed",
        "video_frames",
        "video_seen",
        "video_elapsed_ns",
        "video_freeze_ns",
    ])?;
    let number = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
    for record in records {
        for done in record.measured().into_iter().flat_map(|measured| &measured.operations) {
            let Some(operation) = plan.operations.get(done.operation as usize) else { continue };
            let times = done.times;
            let video = times.and_then(|times| times.video);
            writer.write_record([
                record.key.desktops.to_string(),
                record.key.repetition.to_string(),
                done.user.to_string(),
                operation.application.clone(),
                operation.operation.clone(),
                operation.group.name().to_owned(),
                done.storm.to_string(),
                done.begun_ns.to_string(),
                number(times.map(|times| times.latency_ns)),
                number(times.and_then(|times| times.first_change_ns)),
                number(times.and_then(|times| times.last_change_ns)),
                number(times.and_then(|times| times.inside_ns)),
                number(times.and_then(|times| times.around_ns)),
                done.failed.clone().unwrap_or_default(),
                number(video.map(|video| video.frames.into())),
                number(video.map(|video| video.seen.into())),
                number(video.map(|video| video.elapsed_ns)),
                number(video.map(|video| video.freeze_ns)),
            ])?;
        }
    }
    text(writer)
}
