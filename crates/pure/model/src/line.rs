//! The straight line with the least squares through points.

/// How one quantity goes with another, as nearly as a straight line tells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Line {
    /// How much it rises; nought where all points are at one place.
    pub slope: f64,
    /// The squares that it misses the points by, added up.
    pub squares: f64,
    /// A point on it: the means of both coordinates.
    middle: (f64, f64),
}

impl Line {
    /// Through these points, of which there is at least one.
    pub fn through(points: &[(f64, f64)]) -> Self {
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
        Self { slope, squares: (yy - slope * xy).max(0.0), middle: (x, y) }
    }

    /// What it says of a place between or beyond the points.
    pub fn at(&self, x: f64) -> f64 {
        self.middle.1 + self.slope * (x - self.middle.0)
    }
}
