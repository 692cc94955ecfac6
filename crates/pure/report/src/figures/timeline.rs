//! A database's runs second by second, with what else happened then.

use virtbench_chart::{Axis, Chart, Form, Look, Point, Series, look};
use virtbench_model::oltp::marks;
use virtbench_record::{ApplianceSide, OltpCause, OltpRecord, OltpStep};

use super::{Drawing, Figure, Values, Variant};
use crate::format::{SECOND_NS, rounded};

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
