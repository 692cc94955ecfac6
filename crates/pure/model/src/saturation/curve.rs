//! The latency-throughput curve and its knee.

use serde::Serialize;

use super::verdict::RunResult;
use crate::interval::Estimate;
use crate::kind::FigureKind;

/// Shares of saturation that every curve has: those which other experiments ask for.
const WANTED: [f64; 5] = [0.25, 0.5, 0.75, 0.9, 1.0];

/// A rate and what came of it: means over the runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CurvePoint {
    /// Operations per second that were offered.
    pub offered: f64,
    /// Operations per second that completed.
    pub achieved: Option<Estimate>,
    /// Mean latency from the intended start, in nanoseconds.
    pub mean_ns: Option<Estimate>,
    /// 99th percentile of the latency, in nanoseconds.
    pub p99_ns: Option<Estimate>,
    /// Every run.
    pub runs: Vec<RunResult>,
}

/// Sums up the runs of one rate.
pub(super) fn curve_point(offered: f64, runs: &[RunResult]) -> CurvePoint {
    let over_runs = |figure: fn(&RunResult) -> Option<f64>| {
        FigureKind::Positive.estimate(&runs.iter().filter_map(figure).collect::<Vec<f64>>(), 0)
    };
    CurvePoint {
        offered,
        achieved: over_runs(|run| Some(run.achieved)),
        mean_ns: over_runs(|run| run.mean_ns),
        p99_ns: over_runs(|run| run.p99_ns),
        runs: runs.to_vec(),
    }
}

/// At which shares of saturation latency is measured: those wanted by all, then the middle of the
/// widest gap until there are `count`.
pub(super) fn shares(count: u32) -> Vec<f64> {
    let mut shares = WANTED.to_vec();
    while shares.len() < count as usize {
        let below = |index: usize| if index == 0 { 0.0 } else { shares[index - 1] };
        let widest = (0..shares.len())
            .max_by(|a, b| (shares[*a] - below(*a)).total_cmp(&(shares[*b] - below(*b))))
            .unwrap_or(0);
        shares.insert(widest, f64::midpoint(below(widest), shares[widest]));
    }
    shares
}

/// Where a curve bends: below it latency is cheap, above it throughput is dear.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Knee {
    /// Operations per second.
    pub rate: f64,
    /// Mean latency there, in nanoseconds.
    pub mean_ns: f64,
}

/// The knee as the rate of greatest power, throughput over mean latency (Kleinrock, "Power and
/// deterministic rules of thumb for probabilistic problems in computer communications", ICC 1979):
/// the point where a ray from the origin touches the curve. It needs no smoothing parameter, and is
/// known for queues: half of saturation for M/M/1. Between measured points it is the top of the
/// parabola through the logarithms of the three best. `None` below three points.
#[must_use]
pub fn knee_by_power(curve: &[CurvePoint]) -> Option<Knee> {
    let mut points: Vec<(f64, f64)> = curve
        .iter()
        .filter_map(|point| Some((point.achieved?.mean, point.mean_ns?.mean)))
        .filter(|(rate, latency)| *rate > 0.0 && *latency > 0.0)
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points.dedup_by(|a, b| a.0 <= b.0);
    if points.len() < 3 {
        return None;
    }
    let power = |index: usize| points[index].0.ln() - points[index].1.ln();
    let best = (0..points.len()).max_by(|a, b| power(*a).total_cmp(&power(*b)))?;
    let middle = best.clamp(1, points.len() - 2);
    let x = |offset: usize| points[middle + offset - 1].0;
    let y = |offset: usize| power(middle + offset - 1);
    let (left, right) = ((y(1) - y(0)) / (x(1) - x(0)), (y(2) - y(1)) / (x(2) - x(1)));
    let bend = (right - left) / (x(2) - x(0));
    let top = if bend < 0.0 { f64::midpoint(x(0), x(1)) - left / (2.0 * bend) } else { points[best].0 };
    // A curve that is still climbing at its end has its knee there, not beyond what was measured.
    let rate = top.clamp(x(0), x(2));
    Some(Knee { rate, mean_ns: interpolate(&points, rate) })
}

/// Latency at `rate`, on straight lines between the points.
fn interpolate(points: &[(f64, f64)], rate: f64) -> f64 {
    let upper = points.iter().position(|(known, _)| *known >= rate).unwrap_or(points.len() - 1).max(1);
    let ((x0, y0), (x1, y1)) = (points[upper - 1], points[upper]);
    y0 + (y1 - y0) * ((rate - x0) / (x1 - x0)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A curve without noise, from a formula of the latency by share of saturation.
    fn drawn(latency: impl Fn(f64) -> f64) -> Vec<CurvePoint> {
        let point = |share: &f64| {
            let figures = RunResult {
                achieved: share * 1e4,
                mean_ns: Some(latency(*share)),
                p99_ns: None,
                limited_ns: None,
            };
            curve_point(share * 1e4, &[figures])
        };
        shares(12).iter().filter(|share| **share < 1.0).map(point).collect()
    }

    #[test]
    fn the_shares_hold_the_wanted_ones_and_leave_no_gap() {
        assert_eq!(shares(1), WANTED);
        let twelve = shares(12);
        assert_eq!(twelve.len(), 12);
        assert!(WANTED.iter().all(|share| twelve.contains(share)));
        assert!(twelve.windows(2).all(|pair| pair[0] < pair[1] && pair[1] - pair[0] <= 0.126), "{twelve:?}");
    }

    #[test]
    fn the_knee_of_a_queue_is_where_theory_has_it() {
        let markov = knee_by_power(&drawn(|rho| 1e5 / (1.0 - rho))).unwrap();
        assert!((markov.rate / 1e4 - 0.5).abs() < 0.02, "{markov:?}");
        assert!((markov.mean_ns / 2e5 - 1.0).abs() < 0.1, "{markov:?}");
        let constant = knee_by_power(&drawn(|rho| 1e5 * (1.0 + rho / (2.0 * (1.0 - rho))))).unwrap();
        assert!((constant.rate / 1e4 - (2.0 - 2f64.sqrt())).abs() < 0.02, "{constant:?}");
    }

    #[test]
    fn a_curve_that_never_bends_has_its_knee_at_its_end() {
        let flat = knee_by_power(&drawn(|_| 1e5)).unwrap();
        assert!(flat.rate > 8.9e3, "{flat:?}");
        assert_eq!(knee_by_power(&drawn(|_| 1e5)[..2]), None);
    }
}
