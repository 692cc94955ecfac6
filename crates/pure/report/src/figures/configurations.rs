//! Configurations over block sizes, a drawing for each kind of I/O ([ESX Adapters 2006], Figures 2 to 9).

use std::collections::BTreeSet;

use plotly::common::{Font, Line, Marker, Mode, Title};
use plotly::layout::{AxisType, CategoryOrder, RangeMode};
use plotly::{Scatter, Traces};
use virtbench_model::pairwise::Kind;
use virtbench_model::{Analysis, Side, Span};
use virtbench_record::PointKey;
use virtbench_units::format_bytes;

use super::profile::whiskers;
use super::style::{HOVER, axis, layout, palette};
use super::{Choice, Drawing, Figure, KeyEntry, Variant};
use crate::format::{KILOBYTE, MEGABYTE, MILLISECOND_NS, significant};

/// Drawings side by side; more kinds are selected from a list.
const DRAWINGS_MOST: usize = 4;

/// A figure of each configuration at each point.
struct Quantity {
    id: &'static str,
    title: &'static str,
    unit: &'static str,
    caption: &'static str,
    of: fn(&Side) -> Option<f64>,
    interval: fn(&Side) -> Option<Span>,
}

const QUANTITIES: [Quantity; 4] = [
    Quantity {
        id: "throughput",
        title: "Throughput",
        unit: "MB/s",
        caption: "Throughput over the size of each operation. Whiskers are 95 % intervals of the mean, where \
                  there are repetitions. Higher is faster.",
        of: |side| side.throughput.map(|estimate| estimate.mean / MEGABYTE),
        interval: |side| side.throughput?.span().map(|span| span.map(|bytes| bytes / MEGABYTE)),
    },
    Quantity {
        id: "response",
        title: "Response time",
        unit: "ms",
        caption: "Mean time from handing an operation over to its completion. Lower is faster.",
        of: |side| side.latency_ns.map(|ns| ns / MILLISECOND_NS),
        interval: |_| None,
    },
    Quantity {
        id: "io-per-cpu",
        title: "I/O rate for each percent of host CPU",
        unit: "IOPS per % CPU",
        caption: "What a percent of one processor of the host pays for, the use of all processors summed: \
                  hypervisor, kernel and load together. Higher is cheaper.",
        of: Side::iops_per_cpu_percent,
        interval: |_| None,
    },
    Quantity {
        id: "kb-per-cpu",
        title: "Throughput for each percent of host CPU",
        unit: "KB/s per % CPU",
        caption: "The same in bytes. Higher is cheaper.",
        of: |side| side.bytes_per_second_per_cpu_percent().map(|bytes| bytes / KILOBYTE),
        interval: |_| None,
    },
];

/// The figures of which there is anything to draw.
pub(crate) fn over_block_sizes(analysis: &Analysis) -> Vec<Figure> {
    QUANTITIES.iter().filter_map(|quantity| quantity.figure(analysis)).collect()
}

impl Quantity {
    fn figure(&self, analysis: &Analysis) -> Option<Figure> {
        let points = &analysis.measurements.points;
        let known = |key: &&PointKey| points[*key].iter().any(|cell| (self.of)(&cell.side).is_some());
        let kinds: BTreeSet<Kind> = points.keys().filter(known).map(|key| Kind::from(*key)).collect();
        if kinds.is_empty() {
            return None;
        }
        let names = &analysis.measurements.configurations;
        let label = |kind: &str| {
            format!(
                "{} of {} configurations, {kind}; the table below holds the values.",
                self.title,
                names.len()
            )
        };
        let variants = kinds.iter().map(|kind| self.variant(analysis, *kind));
        let drawings = if kinds.len() > DRAWINGS_MOST {
            vec![Drawing {
                id: self.id.into(),
                label: label("one kind of I/O at a time"),
                choice: Choice::Select("Kind of I/O"),
                variants: variants.collect(),
                first: 0,
            }]
        } else {
            variants
                .zip(&kinds)
                .enumerate()
                .map(|(number, (variant, kind))| {
                    Drawing::only(&format!("{}-{number}", self.id), label(&kind.to_string()), variant)
                })
                .collect()
        };
        let key = names.iter().enumerate().map(|(index, name)| {
            let (colour, line, _) = palette(index);
            KeyEntry { name: name.clone(), colour, line }
        });
        Some(Figure { title: self.title.into(), caption: self.caption.into(), key: key.collect(), drawings })
    }

    fn variant(&self, analysis: &Analysis, kind: Kind) -> Variant {
        let mut traces = Traces::new();
        for index in 0..analysis.measurements.configurations.len() {
            traces.push(self.line(analysis, kind, index));
        }
        // In order of size, whichever configuration was measured where.
        let sizes: BTreeSet<u64> = analysis
            .measurements
            .points
            .keys()
            .filter(|key| Kind::from(**key) == kind)
            .map(|key| key.block_bytes)
            .collect();
        let sizes: Vec<String> = sizes.into_iter().map(format_bytes).collect();
        let layout = layout()
            .title(Title::with_text(kind.to_string()).font(Font::new().size(14)))
            .show_legend(false)
            .x_axis(
                axis("block size")
                    .type_(AxisType::Category)
                    .category_order(CategoryOrder::Array)
                    .category_array(sizes),
            )
            .y_axis(axis(self.unit).range_mode(RangeMode::ToZero));
        Variant::new(kind.to_string(), &traces, &layout)
    }

    fn line(&self, analysis: &Analysis, kind: Kind, index: usize) -> Box<Scatter<String, f64>> {
        let name = analysis.name(index);
        let (mut sizes, mut values, mut spans, mut hover) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (key, cells) in analysis.measurements.points.iter().filter(|(key, _)| Kind::from(**key) == kind) {
            let Some(side) = cells.get(index).map(|cell| &cell.side) else { continue };
            let Some(value) = (self.of)(side).filter(|value| value.is_finite()) else { continue };
            sizes.push(format_bytes(key.block_bytes));
            values.push(value);
            spans.push((self.interval)(side));
            let text = format!(
                "{}, {kind}<br>{}: <b>{} {}</b>",
                format_bytes(key.block_bytes),
                escaped(name),
                significant(value),
                self.unit
            );
            hover.push(text);
        }
        let (colour, _, dash) = palette(index);
        let line = Scatter::new(sizes, values.clone())
            .name(escaped(name))
            .mode(Mode::LinesMarkers)
            .line(Line::new().color(colour).width(2.0).dash(dash))
            .marker(Marker::new().color(colour).size(7))
            .hover_text_array(hover)
            .hover_info(HOVER);
        if spans.iter().any(Option::is_some) { line.error_y(whiskers(&values, &spans)) } else { line }
    }
}

/// plotly.js reads a few tags in its texts; a name is only a name.
fn escaped(name: &str) -> String {
    name.replace('&', "&amp;").replace('<', "&lt;")
}
