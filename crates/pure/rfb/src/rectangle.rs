//! A part of the picture.

/// A part of the picture, in pixels from its upper left corner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rectangle {
    /// Left edge.
    pub x: u16,
    /// Upper edge.
    pub y: u16,
    /// Width.
    pub width: u16,
    /// Height.
    pub height: u16,
}

impl Rectangle {
    /// Beyond its right edge.
    #[must_use]
    pub fn right(&self) -> u32 {
        u32::from(self.x) + u32::from(self.width)
    }

    /// Beyond its lower edge.
    #[must_use]
    pub fn bottom(&self) -> u32 {
        u32::from(self.y) + u32::from(self.height)
    }

    /// How many pixels it has.
    #[must_use]
    pub fn pixels(&self) -> u32 {
        u32::from(self.width) * u32::from(self.height)
    }

    /// Whether a pixel belongs to it.
    #[must_use]
    pub fn contains(&self, x: u16, y: u16) -> bool {
        self.covers(x.into(), y)
    }

    /// Whether it reaches over a row.
    pub(crate) fn has_row(&self, y: u16) -> bool {
        y >= self.y && u32::from(y) < self.bottom()
    }

    /// The same as [`contains`](Self::contains) of a place that may lie beyond the last column.
    pub(crate) fn covers(&self, x: u32, y: u16) -> bool {
        x >= u32::from(self.x) && x < self.right() && self.has_row(y)
    }

    /// The least rectangle that holds this one and a pixel; of an empty one the pixel alone.
    #[must_use]
    pub fn with(self, x: u16, y: u16) -> Self {
        self.union(Self { x, y, width: 1, height: 1 })
    }

    /// The least rectangle that holds both; an empty one adds nothing.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        if self.pixels() == 0 {
            return other;
        }
        if other.pixels() == 0 {
            return self;
        }
        let (x, y) = (self.x.min(other.x), self.y.min(other.y));
        let to = |end: u32, from: u16| u16::try_from(end - u32::from(from)).unwrap_or(u16::MAX);
        Self {
            x,
            y,
            width: to(self.right().max(other.right()), x),
            height: to(self.bottom().max(other.bottom()), y),
        }
    }

    /// Whether they have a pixel in common.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let both = |a: (u16, u32), b: (u16, u32)| u32::from(a.0.max(b.0)) < a.1.min(b.1);
        both((self.x, self.right()), (other.x, other.right()))
            && both((self.y, self.bottom()), (other.y, other.bottom()))
    }

    /// The tiles of this size that it is cut into, by rows; those at its right and lower edge may be smaller.
    pub(crate) fn tiles(self, size: u16) -> impl Iterator<Item = Self> {
        let rows = (0..self.height).step_by(usize::from(size));
        rows.flat_map(move |y| {
            (0..self.width).step_by(usize::from(size)).map(move |x| Self {
                x: self.x + x,
                y: self.y + y,
                width: size.min(self.width - x),
                height: size.min(self.height - y),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn of(x: u16, y: u16, width: u16, height: u16) -> Rectangle {
        Rectangle { x, y, width, height }
    }

    #[test]
    fn rectangles_grow_and_overlap() {
        assert_eq!(Rectangle::default().with(5, 7), of(5, 7, 1, 1));
        assert_eq!(of(5, 7, 1, 1).with(2, 9), of(2, 7, 4, 3));
        assert_eq!(of(0, 0, 2, 2).union(of(5, 1, 1, 4)), of(0, 0, 6, 5));
        assert!(of(0, 0, 2, 2).overlaps(&of(1, 1, 5, 5)));
        assert!(!of(0, 0, 2, 2).overlaps(&of(2, 0, 5, 5)), "neighbours share no pixel");
        assert!(!of(0, 0, 2, 2).overlaps(&Rectangle::default()));
        let last = of(u16::MAX, u16::MAX, 1, 1);
        assert_eq!(last.union(of(u16::MAX - 1, 0, 1, 1)).right(), 65_536);
    }
}
