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
        x >= self.x && y >= self.y && u32::from(x) < self.right() && u32::from(y) < self.bottom()
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
