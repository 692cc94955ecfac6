//! Values as bars, lines and marks.

use std::collections::BTreeMap;

use crate::chart::{Chart, Form, Look, Point, Series, Shape};
use crate::layout::Plot;
use crate::ticks::sane;
use crate::xml::{Percent, Px, Svg};

/// Width of the inner plot through which lines go, which is stretched to that of the outer one.
const ACROSS: f64 = 1000.0;

/// A bar is at most so high.
const BAR_PX: f64 = 16.0;

/// Everything that has a value, from the back to the front.
pub(crate) fn series(svg: &mut Svg, chart: &Chart, plot: &Plot) {
    let of_form = |forms: &'static [Form]| chart.series.iter().filter(|one| forms.contains(&one.form));
    for one in of_form(&[Form::Spans]) {
        svg.group("spans", |svg| spans(svg, one, plot));
    }
    bars(svg, chart, plot);
    stacks(svg, chart, plot);
    lines(svg, &of_form(&[Form::Line, Form::Marked]).collect::<Vec<_>>(), plot);
    for one in of_form(&[Form::Line, Form::Marked, Form::Marks]) {
        svg.group(&format!("whiskers {}", one.look.classes()), |svg| whiskers(svg, one, plot));
    }
    for one in of_form(&[Form::Line, Form::Marked, Form::Marks]) {
        marks(svg, one, plot);
    }
}

/// Shares of width and pixels from the top.
fn place(point: &Point, plot: &Plot) -> Option<(f64, f64)> {
    Some((plot.x.at(point.x)?, plot.down(point.y)?))
}

fn spans(svg: &mut Svg, series: &Series, plot: &Plot) {
    for point in &series.points {
        let ends = point.interval.and_then(|[low, high]| Some([plot.x.at(low)?, plot.x.at(high)?]));
        if let (Some([low, high]), Some(down)) = (ends, plot.down(point.y)) {
            let (low, high) = (low.min(high), low.max(high));
            horizontal(svg, [low, high], down);
        }
    }
}

fn horizontal(svg: &mut Svg, [low, high]: [f64; 2], down: f64) {
    svg.shape(
        "line",
        format_args!(
            "x1=\"{}\" x2=\"{}\" y1=\"{down}\" y2=\"{down}\"",
            Percent(low),
            Percent(high),
            down = Px(down)
        ),
        "",
    );
}

/// Bars with their intervals and labels; in each row those that have a value there share its height.
fn bars(svg: &mut Svg, chart: &Chart, plot: &Plot) {
    let all: Vec<&Series> = chart.series.iter().filter(|series| series.form == Form::Bars).collect();
    // Which of them have a value in each row.
    let mut rows: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, series) in all.iter().enumerate() {
        for row in series.points.iter().filter_map(|point| plot.y.category(point.y)) {
            let known = rows.entry(row).or_default();
            if known.last() != Some(&index) {
                known.push(index);
            }
        }
    }
    for (index, series) in all.iter().enumerate() {
        let placed = series.points.iter().filter_map(|point| {
            let known = rows.get(&plot.y.category(point.y)?)?;
            let slot = known.iter().position(|one| *one == index)?;
            let (top, height) = slot_px(plot, point.y, slot, known.len())?;
            Some(Bar { point, to: plot.x.at(point.x)?, top, height })
        });
        let placed: Vec<Bar<'_>> = placed.collect();
        drawn(svg, &series.look.classes(), &placed, plot);
    }
}

/// A bar that has its place.
struct Bar<'a> {
    point: &'a Point,
    /// Where it ends, as a share of the width.
    to: f64,
    top: f64,
    height: f64,
}

fn drawn(svg: &mut Svg, classes: &str, bars: &[Bar<'_>], plot: &Plot) {
    svg.group(&format!("bars {classes}"), |svg| {
        for Bar { point, to, top, height } in bars {
            rectangle(svg, [plot.x.base(), *to], *top, *height, &point.hover);
        }
    });
    svg.group("whiskers", |svg| {
        for bar in bars {
            if let Some(ends) = interval(bar.point, plot) {
                horizontal(svg, ends, bar.top + bar.height / 2.0);
            }
        }
    });
    svg.group("beside", |svg| {
        for bar in bars.iter().filter(|bar| !bar.point.label.is_empty()) {
            let end = interval(bar.point, plot).map_or(bar.to, |[_, high]| bar.to.max(high));
            beside(svg, end, bar.top + bar.height / 2.0, &bar.point.label);
        }
    });
}

/// Top and height of one of several bars in a row.
fn slot_px(plot: &Plot, row: f64, slot: usize, slots: usize) -> Option<(f64, f64)> {
    let [begin, end] = plot.y.extent(row)?.map(|share| share * plot.height);
    let height = ((end - begin) * 0.8 / slots as f64).min(BAR_PX);
    let first = (begin + end - height * slots as f64) / 2.0;
    Some((first + height * slot as f64, (height - 1.0).max(1.0)))
}

fn rectangle(svg: &mut Svg, [from, to]: [f64; 2], top: f64, height: f64, hover: &str) {
    let (from, to) = (from.min(to), from.max(to));
    svg.shape(
        "rect",
        format_args!(
            "x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
            Percent(from),
            Px(top),
            Percent(to - from),
            Px(height)
        ),
        hover,
    );
}

fn beside(svg: &mut Svg, end: f64, down: f64, label: &str) {
    svg.leaf("text", format_args!("x=\"{}\" y=\"{}\" dx=\"6\" dy=\".35em\"", Percent(end), Px(down)), label);
}

/// Both ends of a point's interval as shares of the width, in rows.
fn interval(point: &Point, plot: &Plot) -> Option<[f64; 2]> {
    let [low, high] = point.interval?;
    let (low, high) = (plot.x.at(low)?, plot.x.at(high)?);
    (low < high).then_some([low, high])
}

fn stacks(svg: &mut Svg, chart: &Chart, plot: &Plot) {
    let mut ends: BTreeMap<usize, f64> = BTreeMap::new();
    for series in chart.series.iter().filter(|series| series.form == Form::Stack) {
        svg.group(&format!("bars stack {}", series.look.classes()), |svg| {
            for point in &series.points {
                let (Some(row), Some((top, height))) =
                    (plot.y.category(point.y), slot_px(plot, point.y, 0, 1))
                else {
                    continue;
                };
                let from = ends.entry(row).or_insert(0.0);
                let Some(part) = sane(point.x).filter(|part| *part > 0.0) else { continue };
                if let (Some(begin), Some(end)) = (plot.x.at(*from), plot.x.at(*from + part)) {
                    rectangle(svg, [begin, end], top, height, &point.hover);
                }
                *from += part;
            }
        });
    }
}

/// All lines within one `svg` that is stretched over the plot.
fn lines(svg: &mut Svg, series: &[&Series], plot: &Plot) {
    if series.is_empty() {
        return;
    }
    let height = Px(plot.height);
    svg.open(
        "svg",
        format_args!(
            "class=\"lines\" width=\"100%\" height=\"{height}\" viewBox=\"0 0 {ACROSS} {height}\" preserveAspectRatio=\"none\""
        ),
    );
    for one in series {
        svg.group(&one.look.classes(), |svg| {
            let places: Vec<Option<(f64, f64)>> = one.points.iter().map(|point| place(point, plot)).collect();
            for part in places.split(Option::is_none) {
                let part: Vec<(f64, f64)> =
                    part.iter().flatten().map(|(share, down)| (share * ACROSS, *down)).collect();
                let part = simplified(&part);
                if part.len() > 1 {
                    let points: Vec<String> =
                        part.iter().map(|(x, y)| format!("{},{}", Px(*x), Px(*y))).collect();
                    svg.shape("polyline", format_args!("points=\"{}\"", points.join(" ")), "");
                }
            }
        });
    }
    svg.close("svg");
}

fn whiskers(svg: &mut Svg, series: &Series, plot: &Plot) {
    for point in &series.points {
        let Some((share, down)) = place(point, plot) else { continue };
        if plot.has_rows {
            if let Some(ends) = interval(point, plot) {
                horizontal(svg, ends, down);
            }
        } else if let Some([low, high]) =
            point.interval.and_then(|[low, high]| Some([plot.down(low)?, plot.down(high)?]))
            && high < low
        {
            svg.shape(
                "line",
                format_args!(
                    "x1=\"{x}\" x2=\"{x}\" y1=\"{}\" y2=\"{}\"",
                    Px(high),
                    Px(low),
                    x = Percent(share)
                ),
                "",
            );
        }
    }
}

/// A mark at each value. Of a line without marks those are there, and unseen, that a pointer can read.
fn marks(svg: &mut Svg, series: &Series, plot: &Plot) {
    let class = if series.form == Form::Line { "unseen" } else { "marks" };
    svg.group(&format!("{class} {}", series.look.classes()), |svg| {
        let (named, plain): (Vec<&Point>, Vec<&Point>) =
            series.points.iter().partition(|point| !point.hover.is_empty());
        if series.form != Form::Line {
            dots(svg, series.look, &plain, plot);
        }
        for point in named {
            if let Some((share, down)) = place(point, plot) {
                mark(svg, series.look, share, down, &point.hover);
            }
        }
    });
    svg.group("beside", |svg| {
        for point in series.points.iter().filter(|point| plot.has_rows && !point.label.is_empty()) {
            if let Some((share, down)) = place(point, plot) {
                beside(
                    svg,
                    interval(point, plot).map_or(share, |[_, high]| share.max(high)),
                    down,
                    &point.label,
                );
            }
        }
    });
}

/// Marks of which nothing is to be read: round ones in one path, for there may be thousands.
fn dots(svg: &mut Svg, look: Look, points: &[&Point], plot: &Plot) {
    let places = || points.iter().filter_map(|point| place(point, plot));
    if look.shape != Shape::Circle {
        return places().for_each(|(share, down)| mark(svg, look, share, down, ""));
    }
    let strokes: String =
        places().map(|(share, down)| format!("M{} {}h0", Px(share * ACROSS), Px(down))).collect();
    if !strokes.is_empty() {
        let height = Px(plot.height);
        svg.open(
            "svg",
            format_args!(
                "class=\"dots\" width=\"100%\" height=\"{height}\" viewBox=\"0 0 {ACROSS} {height}\" \
                 preserveAspectRatio=\"none\""
            ),
        );
        svg.shape("path", format_args!("d=\"{strokes}\""), "");
        svg.close("svg");
    }
}

fn mark(svg: &mut Svg, look: Look, share: f64, down: f64, hover: &str) {
    let (x, y) = (Percent(share), Px(down));
    let path = match look.shape {
        Shape::Circle => {
            return svg.shape("circle", format_args!("cx=\"{x}\" cy=\"{y}\" r=\"4\""), hover);
        }
        Shape::Square => {
            let corner = "transform=\"translate(-3.5 -3.5)\"";
            let attributes = format_args!("x=\"{x}\" y=\"{y}\" width=\"7\" height=\"7\" {corner}");
            return svg.shape("rect", attributes, hover);
        }
        shape => outline(shape),
    };
    svg.open("svg", format_args!("x=\"{x}\" y=\"{y}\""));
    svg.shape("path", format_args!("d=\"{path}\""), hover);
    svg.close("svg");
}

/// A shape around the origin.
pub(crate) fn outline(shape: Shape) -> &'static str {
    match shape {
        Shape::Circle => "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
        Shape::Square => "M-3.5-3.5h7v7h-7z",
        Shape::Diamond => "M0-5 5 0 0 5-5 0z",
        Shape::Triangle => "M0-4.5 4.5 3.5h-9z",
        Shape::Cross => "M-5-3.5-3.5-5 0-1.5 3.5-5 5-3.5 1.5 0 5 3.5 3.5 5 0 1.5-3.5 5-5 3.5-1.5 0z",
    }
}

/// What nobody sees, in pixels.
const TOLERANCE_PX: f64 = 0.4;

/// With more points, those of one place are first reduced to four.
const POINTS_MOST: usize = 2_000;

/// The points without which the line would look different; `x` must not decrease, else all.
pub(crate) fn simplified(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if !points.is_sorted_by(|one, next| one.0 <= next.0) {
        return points.to_vec();
    }
    let reduced = if points.len() > POINTS_MOST { extremes(points) } else { points.to_vec() };
    let mut kept = vec![false; reduced.len()];
    let mut open = Vec::new();
    if let Some(last) = reduced.len().checked_sub(1) {
        (kept[0], kept[last]) = (true, true);
        open.push((0, last));
    }
    while let Some((first, last)) = open.pop() {
        let between = first + 1..last;
        let farthest = between
            .map(|place| (place, distance(reduced[place], reduced[first], reduced[last])))
            .max_by(|one, other| one.1.total_cmp(&other.1));
        if let Some((place, _)) = farthest.filter(|(_, distance)| *distance > TOLERANCE_PX) {
            kept[place] = true;
            open.extend([(first, place), (place, last)]);
        }
    }
    reduced.into_iter().zip(kept).filter_map(|(point, kept)| kept.then_some(point)).collect()
}

/// How far above or below the straight line between two others a point lies.
fn distance(point: (f64, f64), first: (f64, f64), last: (f64, f64)) -> f64 {
    let width = last.0 - first.0;
    if width <= 0.0 {
        return (point.1 - point.1.clamp(first.1.min(last.1), first.1.max(last.1))).abs();
    }
    (first.1 + (last.1 - first.1) * (point.0 - first.0) / width - point.1).abs()
}

/// First, least, greatest and last of those at each whole place.
fn extremes(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut kept = Vec::new();
    for column in points.chunk_by(|one, next| one.0.floor() == next.0.floor()) {
        let order = |one: &usize, other: &usize| column[*one].1.total_cmp(&column[*other].1);
        let (least, greatest) = ((0..column.len()).min_by(order), (0..column.len()).max_by(order));
        let mut places = vec![0, least.unwrap_or(0), greatest.unwrap_or(0), column.len() - 1];
        places.sort_unstable();
        places.dedup();
        kept.extend(places.into_iter().map(|place| column[place]));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_line_needs_two_points_and_a_peak_is_kept() {
        let straight: Vec<(f64, f64)> = (0..100).map(|x| (f64::from(x), 2.0 * f64::from(x))).collect();
        assert_eq!(simplified(&straight), [(0.0, 0.0), (99.0, 198.0)]);
        let mut peak = straight.clone();
        peak[50].1 = 300.0;
        assert_eq!(simplified(&peak).len(), 5);
        assert_eq!((simplified(&[]), simplified(&[(1.0, 2.0)])), (vec![], vec![(1.0, 2.0)]));
    }

    #[test]
    fn thousands_become_a_few_at_each_place_with_the_extremes() {
        let noise = |x: u32| f64::from(x.wrapping_mul(2_654_435_761) >> 24);
        let many: Vec<(f64, f64)> = (0..10_000).map(|x| (f64::from(x) / 10.0, noise(x))).collect();
        let few = simplified(&many);
        assert!(few.len() <= 4_000, "{}", few.len());
        let greatest = |points: &[(f64, f64)]| points.iter().map(|point| point.1).fold(0.0, f64::max);
        assert_eq!(greatest(&few), greatest(&many));
    }
}
