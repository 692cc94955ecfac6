//! Configurations over block sizes, a drawing for each kind of I/O ([ESX Adapters 2006], Figures 2 to 9).

use std::collections::BTreeSet;

use virtbench_chart::{Axis, Chart, Form, Point, Series, look};
use virtbench_model::pairwise::Kind;
use virtbench_model::{Analysis, Side, Span};
use virtbench_record::PointKey;
use virtbench_units::format_bytes;

use super::style::ends;
use super::{Drawing, Figure, Values, Variant};
use crate::format::{KILOBYTE, MEGABYTE, MILLISECOND_NS, significant};

/// Drawings side by side; of more kinds one is large.
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
        let count = analysis.measurements.configurations.len();
        let label = |kind: &str| {
            format!(
                "{} of {count} configurations, {kind}. The table under Every point holds the values.",
                self.title
            )
        };
        let variants = kinds.iter().map(|kind| Variant::chart(kind.to_string(), self.chart(analysis, *kind)));
        let drawings = if kinds.len() > DRAWINGS_MOST {
            vec![Drawing {
                id: self.id.into(),
                label: label("one kind of I/O at a time"),
                choice: "kind of I/O",
                variants: variants.collect(),
                first: 0,
            }]
        } else {
            let placed = variants.zip(&kinds).enumerate();
            let drawing = |(number, (variant, kind)): (usize, (Variant, &Kind))| {
                Drawing::only(&format!("{}-{number}", self.id), label(&kind.to_string()), variant)
            };
            placed.map(drawing).collect()
        };
        Some(Figure {
            title: self.title.into(),
            caption: self.caption.into(),
            drawings,
            values: Values::Under("Every point"),
        })
    }

    fn chart(&self, analysis: &Analysis, kind: Kind) -> Chart {
        let points = &analysis.measurements.points;
        let of_kind = points.iter().filter(|(key, _)| Kind::from(**key) == kind);
        // In order of size, whichever configuration was measured where.
        let sizes: BTreeSet<u64> = of_kind.map(|(key, _)| key.block_bytes).collect();
        let sizes: Vec<u64> = sizes.into_iter().collect();
        let lines = 0..analysis.measurements.configurations.len();
        let names = sizes.iter().map(|size| format_bytes(*size)).collect();
        Chart {
            series: lines.map(|index| self.line(analysis, kind, index, &sizes)).collect(),
            ..Chart::new(Axis::categories("block size", names), Axis::from_zero(self.unit))
        }
    }

    fn line(&self, analysis: &Analysis, kind: Kind, index: usize, sizes: &[u64]) -> Series {
        let name = analysis.name(index);
        let point = |(place, size): (usize, &u64)| {
            let mut points = analysis.measurements.points.iter();
            let (key, cells) =
                points.find(|(key, _)| Kind::from(**key) == kind && key.block_bytes == *size)?;
            let side = &cells.get(index)?.side;
            let value = (self.of)(side).filter(|value| value.is_finite())?;
            let hover = format!(
                "{}, {kind}\n{name}: {} {}",
                format_bytes(key.block_bytes),
                significant(value),
                self.unit
            );
            Some(Point::new(place as f64, value).between((self.interval)(side).map(ends)).hover(hover))
        };
        let points = sizes.iter().enumerate().filter_map(point).collect();
        Series { name: name.into(), look: look(index), form: Form::Marked, points }
    }
}
