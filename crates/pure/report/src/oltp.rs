//! A study of a database: its page, the sentences a reader takes away, its figures and its rows of CSV.

use csv::Writer;
use maud::{Markup, html};
use virtbench_chart::{Axis, Chart, Form, Look, Point, Series, Shape, look};
use virtbench_model::oltp::{OltpAnalysis, OltpCurvePoint, OltpSideAnalysis, UsersEnd, analyse_oltp, marks};
use virtbench_record::{
    ApplianceSide, OltpCause, OltpKind, OltpMeasured, OltpRecord, OltpStep, OltpStudyPlan, Provenance,
    Quantity,
};

use super::figures::style::INK;
use super::figures::{Drawing, Figure, Values, Variant};
use super::page::document;
use super::takeaway::Takeaway;
use super::takeaway::cautions::emulation;
use crate::application::{every_figure, of_application};
use crate::figures;
use crate::format::{MILLISECOND_NS, SECOND_NS, count, path_cost, rounded, significant, trimmed};
use crate::page::{Head, Section};
use crate::rows::{CsvError, figure, text};

/// What it says, and its figures.
pub(crate) fn head(
    provenance: &Provenance,
    plan: &OltpStudyPlan,
    records: &[OltpRecord],
    analysis: &OltpAnalysis,
) -> Head<2> {
    let users = self::users(analysis).into_iter().chain(figures::growth(&analysis.saturated));
    let timeline = self::timeline(&plan.sides, records);
    Head {
        title: "A database natively and in VMs".into(),
        place: crate::provenance::place(provenance),
        takeaway: of_oltp(provenance, plan, analysis),
        sections: [
            Section::new("users", "Users", "Nothing was measured yet.", users),
            Section::new("timeline", "Where the spread comes from", "There is no timeline.", timeline),
        ],
    }
}

/// One self-contained page.
pub(crate) fn page(provenance: &Provenance, plan: &OltpStudyPlan, records: &[OltpRecord]) -> String {
    let analysis = analyse_oltp(plan, records);
    let head = head(provenance, plan, records, &analysis);
    let [users, timeline] = &head.sections;
    let content = html! {
        (head.plain_opening())
        (users.markup())
        section aria-labelledby="saturated" {
            h2 id="saturated" { "Each side at its saturation" }
            @if analysis.saturated.sides.is_empty() { p { "Nothing was measured there yet." } } @else { (every_figure(&analysis.saturated)) }
        }
        @if !analysis.equal.sides.is_empty() {
            section aria-labelledby="equal" {
                h2 id="equal" { "With equal users" }
                (every_figure(&analysis.equal))
            }
        }
        (timeline.markup())
        (causes(&analysis))
        section aria-labelledby="curve" {
            h2 id="curve" { "Every number of users" }
            (curve(&analysis))
        }
        section aria-labelledby="unavailable" {
            h2 id="unavailable" { "Paths, and what is not known" }
            (paths(plan, records))
        }
        section aria-labelledby="provenance" {
            h2 id="provenance" { "Provenance" }
            (crate::provenance::section(provenance, &provenance.notes, &|_| None))
        }
    };
    document(&head.title, &provenance.version, &content)
}

/// Seconds by what else happened in them.
fn causes(analysis: &OltpAnalysis) -> Markup {
    let known = || analysis.sides.iter().filter_map(|side| Some((side, side.causes.as_ref()?)));
    html! {
        @if known().next().is_some() {
            div.scroll tabindex="0" role="region" aria-label="Seconds by what else happened in them" {
                table {
                    thead { tr {
                        th scope="col" { "side" } th scope="col" { "seconds with" } th.number scope="col" { "seconds" }
                        th.number scope="col" { "of the variance, %" } th.number scope="col" { "throughput / mean" }
                    } }
                    tbody {
                        @for (side, causes) in known() {
                            @for (name, marked) in causes.by_cause.iter().map(|(cause, marked)| (cause.name(), marked)).chain([("any of these", &causes.marked)]) {
                                tr {
                                    th scope="row" { (side.side.name) } td { (name) }
                                    td.number { (marked.seconds) " of " (causes.seconds) }
                                    td.number { (rounded(100.0 * marked.variance_share, 0)) }
                                    td.number { (rounded(marked.throughput_ratio, 2)) }
                                }
                            }
                        }
                    }
                }
            }
            @for (side, causes) in known() {
                @for why in &causes.unavailable { p.hint { (side.side.name) ": unavailable: " (why) } }
            }
        }
    }
}

fn curve(analysis: &OltpAnalysis) -> Markup {
    let shown = |value: Option<f64>| value.map_or_else(|| "–".into(), significant);
    html! {
        div.scroll tabindex="0" role="region" aria-label="Every number of users" {
            table {
                thead { tr {
                    th scope="col" { "side" } th.number scope="col" { "users" } th.number scope="col" { "transactions/s" }
                    th.number scope="col" { "New-Order, 90th percentile, ms" } th.number scope="col" { "idle, %" }
                } }
                tbody {
                    @for side in &analysis.sides {
                        @for at in &side.curve {
                            tr {
                                th scope="row" { (side.side.name) }
                                td.number { (at.point.users) }
                                td.number { (significant(at.point.per_second)) }
                                td.number { (shown(at.p90_ns.map(|ns| ns / MILLISECOND_NS))) }
                                td.number { (at.point.idle_percent.map_or_else(|| "–".into(), |idle| rounded(idle, 1))) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What the way to each side costs by itself, and which figures it lacks.
fn paths(plan: &OltpStudyPlan, records: &[OltpRecord]) -> Markup {
    let last = |name: &str| -> Option<&OltpMeasured> {
        records.iter().rev().filter(|record| record.key.side == name).find_map(OltpRecord::measured)
    };
    html! {
        dl.facts {
            @for side in &plan.sides {
                @if let Some(measured) = last(&side.name) {
                    (crate::provenance::fact(
                        &format!("{}, over {}", side.name, measured.appliance.network),
                        &measured.appliance.path.as_ref().map_or_else(|| "not measured".to_owned(), path_cost)
                    ))
                    @for (name, number) in &measured.kvm_exits {
                        (crate::provenance::fact(&format!("{}, KVM's {name} a transaction", side.name), &significant(*number)))
                    }
                    @if let Some(why) = &measured.no_kvm_exits {
                        (crate::provenance::fact(&format!("{}, exits to KVM", side.name), &format!("unavailable: {why}")))
                    }
                    @for (quantity, why) in &measured.unavailable {
                        (crate::provenance::fact(&format!("{}, {}", side.name, quantity.name()), &format!("unavailable: {why}")))
                    }
                }
            }
        }
    }
}

/// Runs of one side should be no further apart than this, in percent.
const WANTED_SPREAD_PERCENT: f64 = 5.0;

/// The sides at their saturation; then at equal users, what limits each, and how far its runs are apart.
pub(crate) fn of_oltp(provenance: &Provenance, plan: &OltpStudyPlan, analysis: &OltpAnalysis) -> Takeaway {
    let saturated = of_application(&analysis.saturated);
    let mut details = saturated.details;
    let headline = if analysis.saturated.ratios.is_empty() {
        "No two sides have been measured at their saturation yet.".to_owned()
    } else {
        saturated.headline
    };
    for against in &analysis.equal.ratios {
        if let Some(done) = against.ratios.get(&Quantity::TransactionsPerSecond) {
            let users = analysis.equal.sides[0].known.get(&Quantity::Users);
            details.push(format!(
                "With {} users on both, {} does {} of {}'s transactions.",
                users.map_or_else(String::new, |users| trimmed(users.mean, 1)),
                analysis.equal.sides[against.side].name,
                crate::format::ratio(done.value),
                analysis.equal.sides[0].name
            ));
        }
    }
    details.extend(analysis.sides.iter().filter_map(limit));
    details.extend(analysis.sides.iter().filter_map(repeats));
    details.extend(analysis.sides.iter().filter_map(spread_causes));
    let mut cautions: Vec<String> = emulation(provenance).into_iter().chain(saturated.cautions).collect();
    cautions.extend(analysis.sides.iter().flat_map(doubts));
    if plan.sides.iter().any(|side| side.vcpus >= provenance.host.processors) {
        cautions
            .push("The driver shares processors with the database where that has all of them.".to_owned());
    }
    cautions.push(
        "Transactions after TPC-C's specification; not comparable with published TPC results.".to_owned(),
    );
    Takeaway { headline, details, cautions }
}

fn limit(one: &OltpSideAnalysis) -> Option<String> {
    let found = one.found?;
    let name = &one.side.name;
    let users = count(found.point.users as usize, "user");
    Some(match found.end {
        UsersEnd::Saturated => format!("{users} saturate the processors of {name}."),
        UsersEnd::NoGrowth => {
            let idle = found.point.idle_percent;
            let idle = idle.map_or_else(String::new, |idle| {
                format!(", with {} % of its processors idle", rounded(idle, 0))
            });
            format!(
                "More than {users} do not do more on {name}{idle}: something other than processors is its limit."
            )
        }
        UsersEnd::MostUsers => {
            format!("{name} does more with every user up to {users}, the most that were tried.")
        }
    })
}

fn repeats(one: &OltpSideAnalysis) -> Option<String> {
    let between = one.spread.between_percent?;
    let within = one
        .spread
        .within_percent
        .map_or_else(String::new, |within| format!(", parts of a run by {} %", rounded(within, 1)));
    let p90 = one.p90_ns.map_or_else(String::new, |p90| {
        format!(" 90 % of its New-Orders take at most {} ms.", significant(p90.mean / MILLISECOND_NS))
    });
    Some(format!(
        "Runs of {} at saturation, each after a boot of its own, differ by {} % (standard deviation of {}){within}.{p90}",
        one.side.name,
        rounded(between, 1),
        count(one.spread.runs, "run")
    ))
}

/// Where the variance of a side's seconds lies.
fn spread_causes(one: &OltpSideAnalysis) -> Option<String> {
    let causes = one.causes.as_ref().filter(|causes| causes.marked.seconds > 0)?;
    let percent = |share: f64| rounded(100.0 * share, 0);
    let each = causes.by_cause.iter().map(|(cause, marked)| {
        format!("{} {} % in {}", cause.name(), percent(marked.variance_share), marked.seconds)
    });
    Some(format!(
        "Of the variance between the seconds of {}, {} % lies in {} of {} seconds in which something else happened too: {}.",
        one.side.name,
        percent(causes.marked.variance_share),
        causes.marked.seconds,
        causes.seconds,
        each.collect::<Vec<_>>().join(", ")
    ))
}

fn doubts(one: &OltpSideAnalysis) -> Vec<String> {
    let name = &one.side.name;
    let mut doubts = Vec::new();
    if one.spread.between_percent.is_some_and(|percent| percent > WANTED_SPREAD_PERCENT) {
        doubts.push(format!(
            "Runs of {name} are further apart than {WANTED_SPREAD_PERCENT} %: more repetitions narrow the intervals."
        ));
    }
    if one.driver_is_limit {
        doubts.push(format!(
            "The driver was the limit in a run of {name}: its threads were busy for more than 90 % of the time, so the database can do more."
        ));
    }
    if let Some(first) = one.failures.first() {
        doubts.push(format!("{} of {name} failed: {first}", count(one.failures.len(), "measurement")));
    }
    doubts
}

/// Two drawings: transactions a second, and the 90th percentile of New-Order's response time. Nothing without a curve.
pub(crate) fn users(analysis: &OltpAnalysis) -> Option<Figure> {
    let per_second = |point: &OltpCurvePoint| Some(point.point.per_second);
    let p90 = |point: &OltpCurvePoint| Some(point.p90_ns? / MILLISECOND_NS);
    let drawings = [
        drawing(analysis, "users-throughput", "transactions/s", &per_second),
        drawing(analysis, "users-response", "New-Order, 90th percentile, ms", &p90),
    ];
    let drawings: Vec<Drawing> = drawings.into_iter().flatten().collect();
    (!drawings.is_empty()).then(|| Figure {
        title: "Users against throughput and response time".into(),
        caption:
            "Each number of users was measured once while saturation was searched. A cross is the least \
                  number that does as much as any."
                .into(),
        drawings,
        values: Values::Under("Every number of users"),
    })
}

fn drawing(
    analysis: &OltpAnalysis,
    id: &str,
    quantity: &str,
    value: &dyn Fn(&OltpCurvePoint) -> Option<f64>,
) -> Option<Drawing> {
    let mut series: Vec<Series> = Vec::new();
    let mut saturated = Vec::new();
    for (index, side) in analysis.sides.iter().enumerate() {
        let known = side.curve.iter().filter_map(|point| Some((point, value(point)?)));
        let points = known.map(|(point, value)| {
            let idle = point.point.idle_percent;
            let idle = idle.map_or_else(String::new, |idle| format!("\n{} % idle", rounded(idle, 1)));
            let users = point.point.users;
            let hover = format!("{}\n{users} users: {}{idle}", side.side.name, significant(value));
            if side.found.is_some_and(|found| found.point.users == users) {
                saturated.push(Point::new(f64::from(users), value).hover(format!("saturated\n{hover}")));
            }
            Point::new(f64::from(users), value).hover(hover)
        });
        let points = points.collect();
        series.push(Series { name: side.side.name.clone(), look: look(index), form: Form::Marked, points });
    }
    series.iter().any(|side| !side.points.is_empty()).then_some(())?;
    let look = Look::of_colour(INK).shaped(Shape::Cross);
    series.push(Series { name: "saturated".into(), look, form: Form::Marks, points: saturated });
    let chart = Chart { series, ..Chart::new(Axis::from_zero("users"), Axis::from_zero(quantity)) };
    let label = format!(
        "{quantity} against users, a line for each side; the table under Every number of users holds the values."
    );
    Some(Drawing::only(id, label, Variant::chart(quantity, chart)))
}

/// The colour of each cause, none of them that of the line.
const CAUSE_COLOURS: [u8; OltpCause::ALL.len()] = [1, 2, 3, 4, 7];

/// Transactions of each second of each run at saturation, a variant for each run; nothing without a timeline.
pub(crate) fn timeline(sides: &[ApplianceSide], records: &[OltpRecord]) -> Option<Figure> {
    let mut variants = Vec::new();
    for side in sides {
        let of_side = records
            .iter()
            .filter(|record| record.key.side == side.name && record.key.step == OltpStep::Saturation);
        variants.extend(of_side.filter_map(variant));
    }
    if variants.is_empty() {
        return None;
    }
    Some(Figure {
        title: "Second by second".into(),
        caption: "Transactions of each second at saturation. A mark is a second in which something else happened too.".into(),
        drawings: vec![Drawing {
            id: "second-by-second".into(),
            label: "Transactions a second over time, with marks where something else happened; the table below holds the values."
                .into(),
            choice: "run",
            variants,
            first: 0,
        }],
        values: Values::Own,
    })
}

fn variant(record: &OltpRecord) -> Option<Variant> {
    let measured = record.measured()?;
    let timeline = measured.timeline.as_ref()?;
    let seconds: Vec<(f64, f64, Vec<OltpCause>)> = measured
        .outcome
        .series
        .iter()
        .map(|second| {
            let at = second.start_ns as f64 / SECOND_NS;
            let rate = second.transactions as f64 * SECOND_NS / second.length_ns.max(1) as f64;
            (at, rate, marks(second, timeline).into_iter().collect())
        })
        .collect();
    let line = seconds.iter().map(|(at, rate, _)| Point::new(*at, *rate)).collect();
    let mut series =
        vec![Series { name: "transactions/s".into(), look: look(0), form: Form::Line, points: line }];
    // What is rarest comes last, and is not hidden by what holds for many seconds.
    for (index, (cause, colour)) in OltpCause::ALL.into_iter().zip(CAUSE_COLOURS).enumerate().rev() {
        let marked = seconds.iter().filter(|(_, _, marks)| marks.contains(&cause)).map(|(at, rate, _)| {
            let hover = format!("{}\nsecond {}: {}", cause.name(), rounded(*at, 0), rounded(*rate, 0));
            Point::new(*at, *rate).hover(hover)
        });
        series.push(Series {
            name: cause.name().into(),
            look: Look { colour, ..look(index + 1) },
            form: Form::Marks,
            points: marked.collect(),
        });
    }
    let chart = Chart {
        series,
        ..Chart::new(Axis::from_zero("seconds since measuring began"), Axis::from_zero("transactions/s"))
    };
    Some(Variant::chart(format!("{}, repetition {}", record.key.side, record.key.repetition + 1), chart))
}

/// One row for each measurement, in their order; what was not measured has no row.
pub(crate) fn oltp_csv(records: &[OltpRecord]) -> Result<String, CsvError> {
    let mut writer = Writer::from_writer(Vec::new());
    let known = Quantity::ALL.into_iter().filter(|quantity| !OWN.contains(quantity));
    let columns =
        ["side", "step", "users", "repetition", "started_unix_ns", "transactions_per_second", "failed"];
    let latencies = OltpKind::ALL.map(|kind| format!("{}_p90_ns", kind.name()));
    let heads = columns.into_iter().map(str::to_owned).chain(latencies);
    writer.write_record(heads.chain(known.clone().map(|quantity| quantity.column().to_owned())))?;
    for record in records {
        let Some(measured) = record.measured() else { continue };
        let outcome = &measured.outcome;
        let own = [
            record.key.side.clone(),
            record.key.step.name().to_owned(),
            record.key.users.to_string(),
            record.key.repetition.to_string(),
            record.started_unix_ns.to_string(),
            virtbench_units::rounded(outcome.transactions_per_second).to_string(),
            outcome.failed().to_string(),
        ];
        let p90 = |kind: OltpKind| {
            let latency = outcome.transactions.get(kind.name()).and_then(|one| one.latency_ns);
            latency.map_or_else(String::new, |latency| figure(latency.p90 as f64))
        };
        let latencies = OltpKind::ALL.map(p90);
        let known = known
            .clone()
            .map(|quantity| measured.known.get(&quantity).map_or_else(String::new, |value| figure(*value)));
        writer.write_record(own.into_iter().chain(latencies).chain(known))?;
    }
    text(writer)
}

/// What has a column of its own.
const OWN: [Quantity; 2] = [Quantity::Users, Quantity::TransactionsPerSecond];
