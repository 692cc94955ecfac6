//! Lines through thousands of points, as few of them as the eye needs.

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
