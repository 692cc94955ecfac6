//! Throughput over reads and seeks ([ESX Disk 2003], Figures 2 to 7): native, VMs and their ratios, a row of maps for each block size.

use std::collections::BTreeSet;

use virtbench_chart::{Axis, Cell, Chart, Colours, Form, HeatMap, Point, Series};
use virtbench_units::format_bytes;

use super::style::{ends, look_of, rows};
use super::{Drawing, Figure, Picture, Values, Variant};
use crate::format::{MEGABYTE, ratio, ratio_span, significant};
use crate::run::{Run, RunPoint, RunSide};

/// Ratios up to this and down to one over it are not drawn in the strongest colours.
const RATIO_LEAST: f64 = 1.25;

/// The figures of all block sizes, those of one size side by side on one scale. A grid with a single
/// value on an axis spans no surface; its points are drawn along what does vary.
pub(crate) fn surfaces(run: &Run<'_>) -> Vec<Figure> {
    let points: Vec<&RunPoint> =
        run.points.iter().filter(|point| point.has(|side| side.throughput)).collect();
    let blocks: BTreeSet<u64> = points.iter().map(|point| point.key.block_bytes).collect();
    let of_point = |point: &&RunPoint| -> Vec<f64> {
        run.sides.iter().filter_map(|side| ratio_of(point, side)).collect()
    };
    let ratios = points.iter().flat_map(of_point).map(|value| value.max(1.0 / value));
    let ratio_most = ratios.fold(RATIO_LEAST, f64::max);
    let grids = blocks.into_iter().map(|block| Grid::new(run, block, &points, ratio_most));
    let grids: Vec<Grid<'_>> = grids.collect();
    if !grids.is_empty() && grids.iter().all(|grid| grid.reads.len() < 2 && grid.randoms.len() < 2) {
        return vec![profile("throughput-by-block", run, &points, Varying::Block)];
    }
    grids.iter().map(Grid::figure).collect()
}

/// The points of one block size.
struct Grid<'a> {
    run: &'a Run<'a>,
    block_bytes: u64,
    reads: Vec<u8>,
    /// From the greatest share of random seeks to the least, as rows stand.
    randoms: Vec<u8>,
    points: Vec<&'a RunPoint>,
    /// Highest throughput of either side, in MB/s: the end of the scale.
    most: f64,
    /// The ratio at the end of its scale, that of all block sizes.
    ratio_most: f64,
}

impl<'a> Grid<'a> {
    fn new(run: &'a Run<'a>, block_bytes: u64, points: &[&'a RunPoint], ratio_most: f64) -> Self {
        let points: Vec<_> =
            points.iter().filter(|point| point.key.block_bytes == block_bytes).copied().collect();
        let distinct = |value: fn(&RunPoint) -> u8| -> Vec<u8> {
            points.iter().map(|point| value(point)).collect::<BTreeSet<u8>>().into_iter().collect()
        };
        let reads = distinct(|point| point.key.read_percent);
        let mut randoms = distinct(|point| point.key.random_percent);
        randoms.reverse();
        let most = points
            .iter()
            .flat_map(|point| run.sides.iter().filter_map(|side| megabytes(point, side)))
            .fold(f64::MIN_POSITIVE, f64::max);
        Self { run, block_bytes, reads, randoms, points, most, ratio_most }
    }

    fn figure(&self) -> Figure {
        let id = format!("throughput-{}", self.block_bytes);
        if self.reads.len() < 2 {
            return profile(&id, self.run, &self.points, Varying::Random);
        }
        if self.randoms.len() < 2 {
            return profile(&id, self.run, &self.points, Varying::Read);
        }
        let size = format_bytes(self.block_bytes);
        let sides = self.run.sides.iter().filter_map(|side| self.throughput(&id, side));
        let ratios = self.run.guests.iter().filter_map(|guest| self.ratios(&id, &guest.side));
        let divided = if self.run.only_guest().is_some() {
            "the VM's divided by the native one"
        } else {
            "each VM's divided by the native one"
        };
        Figure {
            title: format!("Throughput, {size} blocks"),
            caption: format!(
                "Throughput in MB/s of {size} operations over the share of reads and the share of random \
                 seeks, {} on the same scale, and {divided}. Higher is faster.",
                places(self.run)
            ),
            drawings: sides.chain(ratios).collect(),
            values: Values::Under("Every point"),
        }
    }

    /// The map of a side, if anything was measured there.
    fn throughput(&self, id: &str, side: &RunSide) -> Option<Drawing> {
        let values: Vec<f64> = self.points.iter().filter_map(|point| megabytes(point, side)).collect();
        let least = values.iter().copied().reduce(f64::min)?;
        let most = values.iter().copied().fold(0.0, f64::max);
        let cell = |point: &RunPoint| {
            let value = megabytes(point, side);
            let text = value.map_or_else(|| "not measured".into(), |mb| format!("{} MB/s", significant(mb)));
            Cell {
                value,
                text: value.map_or_else(|| "–".into(), significant),
                hover: format!("{}\n{}: {text}", point.key, side.name),
            }
        };
        let scale = vec!["0".into(), format!("{} MB/s", significant(self.most))];
        let label = format!(
            "Throughput measured {} with {} blocks: {} to {} MB/s over {} points. The table under Every point holds the values.",
            side.place,
            format_bytes(self.block_bytes),
            significant(least),
            significant(most),
            values.len()
        );
        let id = format!("{id}-{}", side.name.to_lowercase());
        Some(Drawing::only(&id, label, self.map(&side.name, Colours::Amount(self.most), scale, &cell)))
    }

    /// The map of a guest's ratios, if any point was measured on both sides.
    fn ratios(&self, id: &str, side: &RunSide) -> Option<Drawing> {
        let values: Vec<f64> = self.points.iter().filter_map(|point| ratio_of(point, side)).collect();
        let least = values.iter().copied().reduce(f64::min)?;
        let most = values.iter().copied().fold(0.0, f64::max);
        let cell = |point: &RunPoint| {
            let value = ratio_of(point, side);
            let interval = point.ratio(side).and_then(|found| found.interval);
            let interval = interval.map_or_else(String::new, |span| format!("\n95 %: {}", ratio_span(span)));
            let text = value.map_or_else(|| "not measured on both sides".into(), ratio);
            Cell {
                value,
                text: value.map_or_else(|| "–".into(), ratio),
                hover: format!("{}\n{}: {text}{interval}", point.key, side.over_native()),
            }
        };
        let scale = vec![ratio(1.0 / self.ratio_most), "1".into(), ratio(self.ratio_most)];
        let label = format!(
            "{} throughput divided by native with {} blocks: {} to {} over {} points. The table under Every point holds the values.",
            side.name,
            format_bytes(self.block_bytes),
            ratio(least),
            ratio(most),
            values.len()
        );
        let variant = self.map(&side.over_native(), Colours::Ratio(self.ratio_most), scale, &cell);
        let only = self.run.only_guest().is_some();
        let own = if only { String::new() } else { format!("-{}", side.name.to_lowercase()) };
        Some(Drawing::only(&format!("{id}-ratio{own}"), label, variant))
    }

    /// A row for each share of random seeks, a column for each share of reads.
    fn map(
        &self,
        name: &str,
        colours: Colours,
        scale: Vec<String>,
        cell: &dyn Fn(&RunPoint) -> Cell,
    ) -> Variant {
        let at = |read: u8, random: u8| {
            let is_here =
                |point: &&&RunPoint| (point.key.read_percent, point.key.random_percent) == (read, random);
            self.points.iter().find(is_here).map(|point| cell(point)).unwrap_or_default()
        };
        let cells =
            self.randoms.iter().map(|random| self.reads.iter().map(|read| at(*read, *random)).collect());
        let texts = |values: &[u8]| values.iter().map(u8::to_string).collect();
        let map = HeatMap {
            x_title: "% read".into(),
            y_title: "% random".into(),
            columns: texts(&self.reads),
            rows: texts(&self.randoms),
            cells: cells.collect(),
            colours,
            scale,
        };
        Variant { name: name.into(), picture: Picture::Heat(map) }
    }
}

/// Mean throughput of a side, in MB/s.
fn megabytes(point: &RunPoint, side: &RunSide) -> Option<f64> {
    point.side(side)?.throughput.map(|estimate| estimate.mean / MEGABYTE).filter(|value| value.is_finite())
}

fn ratio_of(point: &RunPoint, side: &RunSide) -> Option<f64> {
    point.ratio(side).map(|found| found.value).filter(|value| value.is_finite() && *value > 0.0)
}

/// What varies from bar to bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Varying {
    Block,
    Read,
    Random,
}

impl Varying {
    fn title(self) -> &'static str {
        match self {
            Self::Block => "block size",
            Self::Read => "% read",
            Self::Random => "% random",
        }
    }

    fn value(self, point: &RunPoint) -> String {
        match self {
            Self::Block => format_bytes(point.key.block_bytes),
            Self::Read => format!("{} % read", point.key.read_percent),
            Self::Random => format!("{} % random", point.key.random_percent),
        }
    }

    /// What all the bars have in common.
    fn constant(self, point: &RunPoint) -> String {
        let key = point.key;
        match self {
            Self::Block => format!("{} % read, {} % random", key.read_percent, key.random_percent),
            Self::Read => format!("{}, {} % random", format_bytes(key.block_bytes), key.random_percent),
            Self::Random => format!("{}, {} % read", format_bytes(key.block_bytes), key.read_percent),
        }
    }
}

/// Bars of all sides below each other along what varies.
pub(super) fn profile(id: &str, run: &Run<'_>, points: &[&RunPoint], varying: Varying) -> Figure {
    let names: Vec<String> = points.iter().map(|point| varying.value(point)).collect();
    let chart = Chart {
        series: run.sides.iter().map(|side| bars(points, side)).collect(),
        ..Chart::new(Axis::from_zero("MB/s"), rows(&names))
    };
    let constant = points.first().map_or_else(String::new, |point| varying.constant(point));
    let caption = format!(
        "Throughput in MB/s by {}, {}, at {constant}. Whiskers are 95 % intervals of the \
         mean, where there are repetitions.",
        varying.title(),
        places(run)
    );
    Figure {
        title: format!("Throughput by {}, {constant}", varying.title()),
        drawings: vec![Drawing::only(id, caption.clone(), Variant::chart("", chart))],
        caption,
        values: Values::Under("Every point"),
    }
}

/// Where all sides measured, within a sentence: `native and in the VM`.
pub(super) fn places(run: &Run<'_>) -> String {
    match run.only_guest() {
        Some(guest) => format!("native and {}", guest.side.place),
        None => format!("native and in VMs under {}", run.guests_in_words()),
    }
}

fn bars(points: &[&RunPoint], side: &RunSide) -> Series {
    let bar = |(row, point): (usize, &&RunPoint)| {
        let found = point.side(side)?.throughput?;
        let mean = found.mean / MEGABYTE;
        let hover = format!("{}\n{}: {} MB/s", point.key, side.name, significant(mean));
        let interval = found.span().map(|span| ends(span.map(|bytes| bytes / MEGABYTE)));
        Some(Point::new(mean, row as f64).between(interval).hover(hover).label(significant(mean)))
    };
    Series {
        name: side.name.clone(),
        look: look_of(side),
        form: Form::Bars,
        points: points.iter().enumerate().filter_map(bar).collect(),
    }
}
