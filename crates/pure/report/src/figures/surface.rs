//! Throughput surfaces ([ESX Disk 2003], Figures 2 to 7): native beside VM, a pair for each block size.

use std::collections::BTreeSet;

use plotly::common::{ColorBar, ColorScale, ColorScalePalette, Title};
use plotly::layout::{AspectMode, AspectRatio, Axis, Camera, CameraCenter, Eye, LayoutScene, Margin};
use plotly::surface::{PlaneContours, SurfaceContours};
use plotly::{HeatMap, Layout, Surface, Traces};
use virtbench_model::ComparedPoint;
use virtbench_units::format_bytes;

use super::profile::{Varying, profile};
use super::style::{FAINT, HOVER, axis, layout, note};
use super::{Choice, Drawing, Figure, Variant};
use crate::format::{MEGABYTE, significant};
use crate::run::{Run, Which};

/// The figures of all block sizes, those of one size side by side on one scale. A grid with a single
/// value on an axis spans no surface; its points are drawn along what does vary.
pub(crate) fn surfaces(run: &Run<'_>) -> Vec<Figure> {
    let points: Vec<&ComparedPoint> = run
        .comparison
        .points
        .iter()
        .filter(|point| Which::BOTH.into_iter().any(|which| which.side(point).throughput.is_some()))
        .collect();
    let blocks: BTreeSet<u64> = points.iter().map(|point| point.key.block_bytes).collect();
    let grids: Vec<Grid<'_>> = blocks.into_iter().map(|block| Grid::new(block, &points)).collect();
    if !grids.is_empty() && grids.iter().all(|grid| grid.reads.len() < 2 && grid.randoms.len() < 2) {
        return vec![profile("throughput-by-block", &points, Varying::Block)];
    }
    grids.iter().map(Grid::figure).collect()
}

/// The points of one block size.
struct Grid<'a> {
    block_bytes: u64,
    reads: Vec<u8>,
    randoms: Vec<u8>,
    points: Vec<&'a ComparedPoint>,
    /// Highest throughput of either side, in MB/s: the end of the scale.
    most: f64,
}

impl<'a> Grid<'a> {
    fn new(block_bytes: u64, points: &[&'a ComparedPoint]) -> Self {
        let points: Vec<_> =
            points.iter().filter(|point| point.key.block_bytes == block_bytes).copied().collect();
        let distinct = |value: fn(&ComparedPoint) -> u8| -> Vec<u8> {
            points.iter().map(|point| value(point)).collect::<BTreeSet<u8>>().into_iter().collect()
        };
        let reads = distinct(|point| point.key.read_percent);
        let randoms = distinct(|point| point.key.random_percent);
        let most = points
            .iter()
            .flat_map(|point| Which::BOTH.map(|which| megabytes(point, which)))
            .flatten()
            .fold(f64::MIN_POSITIVE, f64::max);
        Self { block_bytes, reads, randoms, points, most }
    }

    fn figure(&self) -> Figure {
        let id = format!("throughput-{}", self.block_bytes);
        if self.reads.len() < 2 {
            return profile(&id, &self.points, Varying::Random);
        }
        if self.randoms.len() < 2 {
            return profile(&id, &self.points, Varying::Read);
        }
        let size = format_bytes(self.block_bytes);
        Figure {
            title: format!("Throughput, {size} blocks"),
            caption: format!(
                "Throughput in MB/s of {size} operations over the share of reads and the share of random \
                 seeks, native and in the VM on the same scale. Higher is faster."
            ),
            key: Vec::new(),
            drawings: Which::BOTH.into_iter().map(|which| self.drawing(&id, which)).collect(),
        }
    }

    fn drawing(&self, id: &str, which: Which) -> Drawing {
        let place = which.place();
        let values: Vec<f64> = self.points.iter().filter_map(|point| megabytes(point, which)).collect();
        let range = if values.is_empty() {
            "nothing measured".into()
        } else {
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(0.0, f64::max);
            format!("{} to {} MB/s", significant(least), significant(most))
        };
        Drawing {
            id: format!("{id}-{}", which.name().to_lowercase()),
            label: format!(
                "Throughput surface measured {place} with {} blocks: {range} over {} points.",
                format_bytes(self.block_bytes),
                values.len()
            ),
            choice: if self.spans_a_surface(which) { Choice::Depth } else { Choice::Only },
            variants: self
                .spans_a_surface(which)
                .then(|| self.solid(which))
                .into_iter()
                .chain([self.flat(which)])
                .collect(),
            first: 0,
        }
    }

    /// Whether four neighbours were measured: with fewer there is nothing to draw in 3-D, and plotly.js
    /// fails on it.
    fn spans_a_surface(&self, which: Which) -> bool {
        let rows = self.rows(which, |value, _| value.is_some(), &false);
        rows.windows(2).any(|pair| {
            let both: Vec<bool> = pair[0].iter().zip(&pair[1]).map(|(a, b)| *a && *b).collect();
            both.windows(2).any(|neighbours| neighbours[0] && neighbours[1])
        })
    }

    /// Throughput in MB/s: a row for each share of random seeks, a column for each share of reads.
    fn rows<T>(&self, which: Which, cell: impl Fn(Option<f64>, &ComparedPoint) -> T, empty: &T) -> Vec<Vec<T>>
    where
        T: Clone,
    {
        let row = |random: &u8| {
            let at = |read: &u8| {
                self.points
                    .iter()
                    .find(|point| point.key.read_percent == *read && point.key.random_percent == *random)
                    .map_or_else(|| empty.clone(), |point| cell(megabytes(point, which), point))
            };
            self.reads.iter().map(at).collect()
        };
        self.randoms.iter().map(row).collect()
    }

    fn hover(&self, which: Which) -> Vec<Vec<String>> {
        let cell = |value: Option<f64>, point: &ComparedPoint| {
            let value = value.map_or_else(|| "not measured".into(), |mb| format!("{} MB/s", significant(mb)));
            format!("{}<br>{}: <b>{value}</b>", point.key, which.name())
        };
        self.rows(which, cell, &String::new())
    }

    fn solid(&self, which: Which) -> Variant {
        let surface = Surface::new(self.rows(which, |value, _| value, &None))
            .x(self.reads.clone())
            .y(self.randoms.clone())
            .name(which.name())
            .color_scale(scale())
            .cmin(0.0)
            .cmax(self.most)
            .hover_template(format!(
                "%{{x}} % read, %{{y}} % random<br>{}: <b>%{{z:.3s}} MB/s</b><extra></extra>",
                which.name()
            ))
            .contours(SurfaceContours::new().x(grid_lines()).y(grid_lines()))
            .show_scale(false);
        let ticks = |values: &[u8]| values.iter().map(|value| f64::from(*value)).collect::<Vec<f64>>();
        let plain =
            |title: &str| Axis::new().title(Title::with_text(title)).grid_color(FAINT).show_spikes(false);
        let scene = LayoutScene::new()
            .x_axis(plain("% read").tick_values(ticks(&self.reads)))
            .y_axis(plain("% random").tick_values(ticks(&self.randoms)))
            .z_axis(plain("MB/s").range(vec![0.0, self.most * 1.05]))
            .aspect_mode(AspectMode::Manual)
            .aspect_ratio(AspectRatio::new().x(1.15).y(1.15).z(0.85))
            // From the side of random I/O, which is seldom the fastest: peaks stand behind what is low, and with
            // three points a side every one is seen. From the other side a peak points at the reader, and
            // its slope is drawn edge-on. The centre is lowered to leave room for the labels.
            .camera(
                Camera::new().eye(Eye::from((1.3, 1.7, 1.0))).center(CameraCenter::from((0.0, 0.05, -0.2))),
            );
        let mut traces = Traces::new();
        traces.push(surface);
        let layout = titled(which).scene(scene).margin(Margin::new().left(0).right(0).top(36).bottom(0));
        Variant::new("3-D", &traces, &layout)
    }

    fn flat(&self, which: Which) -> Variant {
        let rows = self.rows(which, |value, _| value, &None);
        let mut labels = Vec::new();
        for (y, row) in rows.iter().enumerate() {
            for (x, value) in row.iter().enumerate() {
                // Cividis is dark in its lower half.
                let ink = if value.is_some_and(|mb| mb < 0.55 * self.most) { "#ffffff" } else { "#1a1a1a" };
                labels.push(note(value.map_or_else(|| "–".into(), significant), 12, ink).x(x).y(y));
            }
        }
        let heat = HeatMap::new(places(&self.reads), places(&self.randoms), rows)
            .name(which.name())
            .color_scale(scale())
            .zmin(0.0)
            .zmax(self.most)
            .color_bar(ColorBar::new().thickness(10).outline_width(0).title(Title::with_text("MB/s")))
            .text_matrix(self.hover(which))
            .hover_info(HOVER);
        let mut traces = Traces::new();
        traces.push(heat);
        let layout = titled(which)
            .x_axis(even_steps("% read", &self.reads))
            .y_axis(even_steps("% random", &self.randoms))
            .annotations(labels)
            .margin(Margin::new().left(56).right(8).top(36).bottom(48));
        Variant::new("flat", &traces, &layout)
    }
}

fn titled(which: Which) -> Layout {
    let font = plotly::common::Font::new().size(14).color(super::style::colour(which));
    layout().title(Title::with_text(format!("<b>{}</b>", which.name())).font(font).x(0.02))
}

/// The places of the cells of a flat grid, which are all of one size whatever their percentages.
fn places(values: &[u8]) -> Vec<f64> {
    (0..values.len()).map(|place| place as f64).collect()
}

/// An axis with a label at each of these places.
fn even_steps(title: &str, values: &[u8]) -> Axis {
    let texts = values.iter().map(u8::to_string).collect();
    axis(title).show_grid(false).tick_values(places(values)).tick_text(texts)
}

/// Lines on the surface at every quarter of an axis of percentages.
fn grid_lines() -> PlaneContours {
    PlaneContours::new().show(true).start(0.0).end(100.0).size(25).color("rgba(255,255,255,0.55)").width(1)
}

/// Cividis: even steps of lightness, the same for readers with any colour vision.
fn scale() -> ColorScale {
    ColorScalePalette::Cividis.into()
}

/// Mean throughput of a side, in MB/s.
pub(super) fn megabytes(point: &ComparedPoint, which: Which) -> Option<f64> {
    which.side(point).throughput.map(|estimate| estimate.mean / MEGABYTE).filter(|value| value.is_finite())
}
