//! How a latency grows with the number of VMs.

/// A single power has to miss the logarithms by so many times as much as two powers do for a bend to be told.
const BEND_GAIN: f64 = 4.0;

/// Growth with the number of VMs, from at least two of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// The latency at the most VMs, as a multiple of that at the fewest.
    pub factor: f64,
    /// The exponent of the number of VMs, over all of them.
    pub exponent: f64,
    /// From this number of VMs on it grows faster or slower; told from four on.
    pub bend: Option<f64>,
}

/// A straight line through logarithms.
struct Line {
    slope: f64,
    squares: f64,
}

fn line(points: &[(f64, f64)]) -> Line {
    let count = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
    let (x, y) = (x / count, y / count);
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for point in points {
        xx += (point.0 - x).powi(2);
        xy += (point.0 - x) * (point.1 - y);
        yy += (point.1 - y).powi(2);
    }
    let slope = if xx > 0.0 { xy / xx } else { 0.0 };
    Line { slope, squares: (yy - slope * xy).max(0.0) }
}

/// Numbers of VMs against latencies, in any order; nothing under two numbers of VMs, or where one is not positive.
#[must_use]
pub fn growth(points: &[(f64, f64)]) -> Option<Growth> {
    let mut logs: Vec<(f64, f64)> = points.iter().map(|(vms, latency)| (vms.ln(), latency.ln())).collect();
    logs.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (first, last) = (logs.first()?, logs.last()?);
    if last.0 <= first.0 || logs.iter().any(|point| !point.0.is_finite() || !point.1.is_finite()) {
        return None;
    }
    let whole = line(&logs);
    // Both parts have the point at the bend.
    let parts = (1..logs.len().saturating_sub(2).max(1)).filter(|_| logs.len() >= 4);
    let best = parts
        .map(|index| (index, line(&logs[..=index]).squares + line(&logs[index..]).squares))
        .min_by(|one, other| one.1.total_cmp(&other.1));
    let bend = best.filter(|(_, squares)| whole.squares > 1e-3 && whole.squares > BEND_GAIN * squares);
    Some(Growth {
        factor: (last.1 - first.1).exp(),
        exponent: whole.slope,
        bend: bend.map(|(index, _)| logs[index].0.exp()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_has_its_exponent_and_no_bend() {
        let points: Vec<(f64, f64)> =
            [10.0, 20.0, 50.0, 100.0].map(|vms: f64| (vms, 3.0 * vms.sqrt())).into();
        let found = growth(&points).unwrap();
        assert!(
            (found.exponent - 0.5).abs() < 1e-9 && (found.factor - 10f64.sqrt()).abs() < 1e-9,
            "{found:?}"
        );
        assert_eq!(found.bend, None);
    }

    #[test]
    fn a_latency_that_stays_and_then_grows_bends_there() {
        let latency = |vms: f64| if vms <= 40.0 { 2.0 } else { 2.0 * (vms / 40.0).powi(2) };
        let points: Vec<(f64, f64)> = [10.0, 20.0, 40.0, 80.0, 160.0].map(|vms| (vms, latency(vms))).into();
        let bend = growth(&points).unwrap().bend.unwrap();
        assert!((bend - 40.0).abs() < 1e-6, "{bend}");
    }

    #[test]
    fn one_number_of_vms_says_nothing() {
        assert_eq!(growth(&[]), None);
        assert_eq!(growth(&[(10.0, 1.0), (10.0, 2.0)]), None);
        assert_eq!(growth(&[(10.0, 1.0), (20.0, 0.0)]), None);
    }
}
