//! A database's runs second by second, with what else happened then.

use plotly::common::{Line, Marker, Mode};
use plotly::layout::RangeMode;
use plotly::{Scatter, Traces};
use virtbench_model::oltp::marks;
use virtbench_record::{ApplianceSide, OltpCause, OltpRecord, OltpStep};

use super::style::{HOVER, axis, layout, palette};
use super::{Choice, Drawing, Figure, Variant};

/// Transactions of each second of each run at saturation, one run at a time; nothing without a timeline.
pub(crate) fn timeline(sides: &[ApplianceSide], records: &[OltpRecord]) -> Option<Figure> {
    let mut variants = Vec::new();
    for side in sides {
        let of_side =
            records.iter().filter(|record| record.side == side.name && record.step == OltpStep::Saturation);
        variants.extend(of_side.filter_map(variant));
    }
    if variants.is_empty() {
        return None;
    }
    Some(Figure {
        title: "Second by second".into(),
        caption: "Transactions of each second at saturation. A mark is a second in which something else happened too.".into(),
        key: Vec::new(),
        drawings: vec![Drawing {
            id: "timeline".into(),
            label: "Transactions a second over time, with marks where something else happened.".into(),
            choice: Choice::Select("run"),
            variants,
            first: 0,
        }],
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
            let at = second.start_ns as f64 / 1e9;
            let rate = second.transactions as f64 * 1e9 / second.length_ns.max(1) as f64;
            (at, rate, marks(second, timeline).into_iter().collect())
        })
        .collect();
    let mut traces = Traces::new();
    traces.push(
        Scatter::new(
            seconds.iter().map(|(at, _, _)| *at).collect::<Vec<_>>(),
            seconds.iter().map(|(_, rate, _)| *rate).collect::<Vec<_>>(),
        )
        .name("transactions/s")
        .mode(Mode::Lines)
        .line(Line::new().color(palette(0).0)),
    );
    for (index, cause) in (1..).zip(OltpCause::ALL) {
        let marked: Vec<(f64, f64)> = seconds
            .iter()
            .filter(|(_, _, marks)| marks.contains(&cause))
            .map(|(at, rate, _)| (*at, *rate))
            .collect();
        if marked.is_empty() {
            continue;
        }
        let hover =
            marked.iter().map(|(at, rate)| format!("{}<br>second {at:.0}: <b>{rate:.0}</b>", cause.name()));
        traces.push(
            Scatter::new(
                marked.iter().map(|(at, _)| *at).collect::<Vec<_>>(),
                marked.iter().map(|(_, rate)| *rate).collect::<Vec<_>>(),
            )
            .name(cause.name())
            .mode(Mode::Markers)
            .marker(Marker::new().color(palette(index).0).size(9))
            .hover_text_array(hover.collect())
            .hover_info(HOVER),
        );
    }
    let layout = layout()
        .x_axis(axis("seconds since measuring began").range_mode(RangeMode::ToZero))
        .y_axis(axis("transactions/s").range_mode(RangeMode::ToZero))
        .height(300);
    let name = format!("{}, repetition {}", record.side, record.repetition + 1);
    Some(Variant::new(&name, &traces, &layout))
}
