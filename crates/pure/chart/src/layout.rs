//! Where the plot lies and how much room texts around it have.

use crate::axis::{Placed, Scale};
use crate::chart::{Chart, Form};
use crate::ticks::{Tick, sane};

/// Heights that are drawn.
const LEAST_PX: f64 = 20.0;

const MOST_PX: f64 = 10_000.0;

/// Of a text.
pub(crate) const LINE_PX: f64 = 15.0;

/// Names of rows get no more of the width.
pub(crate) const NAME_PX: f64 = 168.0;

/// Between a text and what it stands beside.
const GAP_PX: f64 = 8.0;

/// Ticks have room in a window so many times as wide as a narrow one, which leaves some of them out.
const MIDDLE: f64 = 1.6;

/// A plot that is higher has its ticks above, too.
const TALL_PX: f64 = 640.0;

/// A chart whose axes are placed.
pub(crate) struct Plot {
    pub(crate) x: Placed,
    pub(crate) y: Placed,
    /// Whether the vertical axis has categories.
    pub(crate) has_rows: bool,
    pub(crate) height: f64,
    /// Pixels above, right of, below and left of the plot.
    pub(crate) padding: [f64; 4],
    /// Of the plot in a narrow window, in pixels.
    pub(crate) narrow: f64,
    /// Whether ticks are written above, too.
    pub(crate) is_tall: bool,
    /// On which line above the plot, or how far down its right side, the label of each rule stands.
    pub(crate) rule_labels: Vec<f64>,
}

impl Plot {
    pub(crate) fn new(chart: &Chart) -> Self {
        let has_rows = matches!(chart.y.scale, Scale::Categories(_));
        let rows = rows_px(chart);
        let height = if has_rows { rows.iter().sum() } else { chart.height_px };
        let height = sane(height).unwrap_or(LEAST_PX).clamp(LEAST_PX, MOST_PX);
        let [across, upwards] = values(chart, has_rows);
        let y = Placed::new(&chart.y, &upwards, &rows, &|ticks| ticks.len() as f64 * 34.0 <= height + 34.0);
        let named = y.ticks.iter().map(|tick| width_px(&shortened(&tick.text, NAME_PX)));
        let left = (named.fold(16.0, f64::max) + GAP_PX).ceil();
        let right = right_px(chart, has_rows);
        let narrow = NARROW_PX - left - right;
        let x = Placed::new(&chart.x, &across, &[], &|ticks| fit(ticks, MIDDLE * narrow));
        let is_tall = has_rows && height > TALL_PX;
        let rule_labels = if has_rows {
            on_lines(chart, &x, narrow)
        } else {
            apart(
                chart.rules.iter().map(|rule| height * (1.0 - y.at(rule.at).unwrap_or(0.0))).collect(),
                height,
            )
        };
        let lines = rule_labels.iter().filter(|_| has_rows).fold(0.0, |most: f64, line| most.max(line + 1.0));
        let titled = |title: &str| if title.is_empty() { 0.0 } else { LINE_PX };
        let top = 10.0 + titled(&chart.y.title) + LINE_PX * (lines + if is_tall { 1.0 } else { 0.0 });
        let bottom = 22.0 + titled(&chart.x.title) * 1.2;
        Self { x, y, has_rows, height, padding: [top, right, bottom, left], narrow, is_tall, rule_labels }
    }

    /// The place of a value on the vertical axis, in pixels from the top.
    pub(crate) fn down(&self, value: f64) -> Option<f64> {
        let share = self.y.at(value)?;
        Some(self.height * if self.has_rows { share } else { 1.0 - share })
    }
}

/// All values on the horizontal and on the vertical axis, ends of intervals and sums of stacks included.
fn values(chart: &Chart, has_rows: bool) -> [Vec<f64>; 2] {
    let points = || chart.series.iter().flat_map(|series| &series.points);
    let mut across: Vec<f64> = points().map(|point| point.x).collect();
    let mut upwards: Vec<f64> = points().map(|point| point.y).collect();
    let along = if has_rows { &mut across } else { &mut upwards };
    along.extend(points().filter_map(|point| point.interval).flatten());
    along.extend(chart.rules.iter().map(|rule| rule.at));
    along.extend(chart.bands.iter().flatten());
    if let Scale::Categories(names) = &chart.y.scale {
        let stacked = || chart.series.iter().filter(|series| series.form == Form::Stack);
        let parts =
            |row: f64| stacked().flat_map(|series| &series.points).filter(move |point| point.y == row);
        let sum =
            |row: usize| parts(row as f64).map(|point| point.x).filter(|x| x.is_finite() && *x > 0.0).sum();
        across.extend((0..names.len()).map(sum).collect::<Vec<f64>>());
    }
    [across, upwards]
}

/// Height of each row: room for its bars, or for a mark.
fn rows_px(chart: &Chart) -> Vec<f64> {
    let Scale::Categories(names) = &chart.y.scale else { return Vec::new() };
    let of_form = |form: Form| chart.series.iter().filter(move |series| series.form == form);
    if of_form(Form::Bars).chain(of_form(Form::Stack)).next().is_none() {
        return vec![if names.len() > 40 { 16.0 } else { 22.0 }; names.len()];
    }
    let row = |place: usize| {
        let is_here = |point: &crate::chart::Point| point.y == place as f64;
        let bars = of_form(Form::Bars).filter(|series| series.points.iter().any(is_here)).count();
        12.0 + 14.0 * bars.max(1) as f64
    };
    (0..names.len()).map(row).collect()
}

/// Room on the right: for labels of values, or of rules.
fn right_px(chart: &Chart, has_rows: bool) -> f64 {
    let points = chart.series.iter().flat_map(|series| &series.points);
    let beside = points.map(|point| width_px(&point.label)).fold(0.0, f64::max);
    let rules =
        chart.rules.iter().filter(|_| !has_rows).map(|rule| width_px(&rule.label)).fold(0.0, f64::max);
    let widest = beside.max(rules);
    if widest > 0.0 { (widest + GAP_PX).ceil().min(140.0) } else { 16.0 }
}

fn fit(ticks: &[Tick], width: f64) -> bool {
    let widest = ticks.iter().map(|tick| width_px(&tick.text)).fold(0.0, f64::max);
    ticks.len() as f64 * (widest + 1.5 * GAP_PX) <= width
}

/// From where to where a text of this width reaches that stands over a place, within the plot if it can.
pub(crate) fn reach(share: f64, text_px: f64, plot_px: f64) -> [f64; 2] {
    let begin = (share * plot_px - text_px / 2.0).clamp(0.0, (plot_px - text_px).max(0.0));
    [begin, begin + text_px]
}

/// The line above the plot on which the label of each rule stands, counted from below, so that none covers another.
fn on_lines(chart: &Chart, x: &Placed, narrow: f64) -> Vec<f64> {
    let mut taken: Vec<(usize, [f64; 2])> = Vec::new();
    let line = |rule: &crate::chart::Rule| {
        let own = reach(x.at(rule.at).unwrap_or(0.0), width_px(&rule.label), narrow);
        let overlaps = |other: &[f64; 2]| own[0] < other[1] + GAP_PX && other[0] < own[1] + GAP_PX;
        let is_free = |line: &usize| !taken.iter().any(|(other, reach)| other == line && overlaps(reach));
        let line = (0..chart.rules.len()).find(is_free).unwrap_or(0);
        taken.push((line, own));
        line as f64
    };
    chart.rules.iter().map(line).collect()
}

/// The same heights, far enough from each other for a text at each.
fn apart(heights: Vec<f64>, most: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..heights.len()).collect();
    order.sort_by(|one, other| heights[*one].total_cmp(&heights[*other]));
    let mut moved = heights;
    let mut least = 0.0;
    for place in &order {
        moved[*place] = moved[*place].max(least);
        least = moved[*place] + LINE_PX;
    }
    let mut most = most;
    for place in order.iter().rev() {
        moved[*place] = moved[*place].min(most);
        most = moved[*place] - LINE_PX;
    }
    moved
}

/// The class of each of some labels along the width, from left to right: what leaves it out where it has no room.
pub(crate) fn classes(labels: &[(f64, &str)], narrow: f64) -> Vec<&'static str> {
    let narrower = (narrow - NARROW_PX + NARROWEST_PX).max(40.0);
    let class = |(is_crowded, was_crowded): (bool, bool)| match (is_crowded, was_crowded) {
        (true, _) => "wide",
        (false, true) => "spare",
        (false, false) => "",
    };
    crowded(labels, narrow).into_iter().zip(crowded(labels, narrower)).map(class).collect()
}

/// Which of the labels have no room beside those before them in a plot of this width.
fn crowded(labels: &[(f64, &str)], width: f64) -> Vec<bool> {
    let mut free = f64::NEG_INFINITY;
    let is_crowded = |(share, text): &(f64, &str)| {
        let half = width_px(text) / 2.0;
        let is_crowded = share * width - half < free;
        if !is_crowded {
            free = share * width + half + GAP_PX;
        }
        is_crowded
    };
    labels.iter().map(is_crowded).collect()
}

/// The width that is free for a chart in the narrowest window that is cared for, of 420 pixels.
pub(crate) const NARROW_PX: f64 = 386.0;

/// That of one of three charts beside each other on a sheet of paper.
pub(crate) const NARROWEST_PX: f64 = 212.0;

/// The width of a text of 12 pixels, in a font as wide as they come.
pub(crate) fn width_px(text: &str) -> f64 {
    text.chars().map(letter_px).sum()
}

fn letter_px(letter: char) -> f64 {
    match letter {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 4.0,
        ' ' | 'f' | 'r' | 't' | '(' | ')' | '/' | '-' => 4.8,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 11.2,
        letter if letter.is_ascii_uppercase() => 8.6,
        letter if letter.is_ascii() => 7.5,
        '\u{1100}'.. => 12.5,
        _ => 9.0,
    }
}

/// The beginning of a text that is too long, with three dots.
pub(crate) fn shortened(text: &str, most_px: f64) -> String {
    if width_px(text) <= most_px {
        return text.to_owned();
    }
    let mut left_px = most_px - width_px("…");
    let kept = text.chars().take_while(|letter| {
        left_px -= letter_px(*letter);
        left_px >= 0.0
    });
    kept.chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_moved_apart_and_stay_inside() {
        let moved = apart(vec![100.0, 98.0, 10.0, 99.0], 100.0);
        assert_eq!(moved, [100.0, 70.0, 10.0, 85.0]);
    }

    #[test]
    fn every_other_label_goes_where_there_is_no_room() {
        let labels: Vec<(f64, &str)> = (0..5).map(|place| (f64::from(place) / 4.0, "99.999 %")).collect();
        assert_eq!(crowded(&labels, 200.0), [false, true, false, true, false]);
        assert_eq!(crowded(&labels, 400.0), [false; 5]);
    }

    #[test]
    fn what_fits_is_kept_and_what_does_not_is_cut() {
        assert_eq!(shortened("64 KiB", 60.0), "64 KiB");
        let cut = shortened(&"a very long name ".repeat(40), 100.0);
        assert!(cut.ends_with('…') && width_px(&cut) <= 100.0 && cut.len() > 10, "{cut}");
    }
}
