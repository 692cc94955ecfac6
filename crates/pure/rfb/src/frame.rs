//! The picture as it was last seen.

use crate::protocol::{Limits, RfbError};
use crate::rectangle::Rectangle;

/// What an update has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Damage {
    /// Pixels that have another colour than before, outside the parts that are passed over.
    pub changed: u32,
    /// The least rectangle that holds them; an empty one of none.
    pub bounds: Rectangle,
    /// Pixels that the server has sent.
    pub sent: u64,
}

/// The picture as it was last seen. A pixel is `0x00RRGGBB`.
#[derive(Debug, Clone, Default)]
pub struct Frame {
    width: u16,
    height: u16,
    pixels: Vec<u32>,
    passed_over: Vec<Rectangle>,
    damage: Damage,
}

impl Frame {
    /// A black one.
    ///
    /// # Errors
    /// It is larger than the limit.
    pub fn new(width: u16, height: u16, limits: &Limits) -> Result<Self, RfbError> {
        let pixels = u32::from(width) * u32::from(height);
        if pixels > limits.pixels {
            let size = format!("{width}x{height} pixels");
            return Err(RfbError::too_large("a picture", size, limits.pixels.into()));
        }
        let pixels = vec![0; usize::from(width) * usize::from(height)];
        Ok(Self { width, height, pixels, ..Self::default() })
    }

    /// Its width in pixels.
    #[must_use]
    pub fn width(&self) -> u16 {
        self.width
    }

    /// Its height in pixels.
    #[must_use]
    pub fn height(&self) -> u16 {
        self.height
    }

    /// All pixels, row by row.
    #[must_use]
    pub fn pixels(&self) -> &[u32] {
        &self.pixels
    }

    /// A pixel; black outside.
    #[must_use]
    pub fn pixel(&self, x: u16, y: u16) -> u32 {
        if x >= self.width {
            return 0;
        }
        self.pixels.get(self.index(x, y)).copied().unwrap_or(0)
    }

    /// Names the parts whose changes do not count as damage, instead of those named before.
    pub fn pass_over(&mut self, parts: Vec<Rectangle>) {
        self.passed_over = parts;
    }

    /// The parts whose changes do not count as damage.
    #[must_use]
    pub fn passed_over(&self) -> &[Rectangle] {
        &self.passed_over
    }

    /// The pixels of a part that are not passed over, in runs from left to right, row by row. What lies outside the picture is left out.
    pub fn seen_in(&self, part: Rectangle) -> impl Iterator<Item = &[u32]> {
        let right = part.right().min(self.width.into());
        let rows = u32::from(part.y)..part.bottom().min(self.height.into());
        rows.filter_map(|y| u16::try_from(y).ok()).flat_map(move |y| {
            let mut x = u32::from(part.x);
            std::iter::from_fn(move || {
                while let Some(mask) = self.passed_over.iter().find(|mask| mask.covers(x, y)) {
                    x = mask.right();
                }
                let masks = self.passed_over.iter().filter(|mask| u32::from(mask.x) > x && mask.has_row(y));
                let end = masks.map(|mask| u32::from(mask.x)).fold(right, u32::min);
                let first = usize::from(y) * usize::from(self.width);
                let run = self.pixels.get(first + x as usize..first + end as usize)?;
                x = end;
                (!run.is_empty()).then_some(run)
            })
        })
    }

    pub(crate) fn take_damage(&mut self) -> Damage {
        std::mem::take(&mut self.damage)
    }

    pub(crate) fn check(&self, part: Rectangle) -> Result<(), RfbError> {
        if part.right() > u32::from(self.width) || part.bottom() > u32::from(self.height) {
            return Err(RfbError::Protocol(format!(
                "a rectangle of {}x{} at {},{} reaches beyond the picture of {}x{}",
                part.width, part.height, part.x, part.y, self.width, self.height
            )));
        }
        Ok(())
    }

    /// Puts pixels into a row, from `x` on. What lies outside is left out.
    pub(crate) fn put(&mut self, x: u16, y: u16, pixels: impl Iterator<Item = u32>) {
        let (first, end) = (self.index(x, y), self.index(self.width, y));
        let Some(row) = self.pixels.get_mut(first..end) else { return };
        let masks: Vec<&Rectangle> = self.passed_over.iter().filter(|mask| mask.has_row(y)).collect();
        let mut ends: Option<(u16, u16)> = None;
        for ((at, old), new) in (x..).zip(row).zip(pixels) {
            self.damage.sent += 1;
            if *old != new {
                *old = new;
                if !masks.iter().any(|mask| mask.contains(at, y)) {
                    self.damage.changed += 1;
                    ends = Some((ends.map_or(at, |(from, _)| from), at));
                }
            }
        }
        if let Some((from, to)) = ends {
            self.damage.bounds = self.damage.bounds.with(from, y).with(to, y);
        }
    }

    /// Gives all pixels of a part one colour.
    pub fn fill(&mut self, part: Rectangle, colour: u32) {
        for y in (0..part.height).map(|row| part.y.saturating_add(row)) {
            self.put(part.x, y, std::iter::repeat_n(colour, usize::from(part.width)));
        }
    }

    /// Copies what stands at `from` to `to`; they may overlap.
    pub(crate) fn copy(&mut self, from: (u16, u16), to: Rectangle) {
        let mut rows = Vec::with_capacity(usize::from(to.height));
        for row in 0..to.height {
            let first = self.index(from.0, from.1.saturating_add(row));
            rows.push(self.pixels.get(first..first + usize::from(to.width)).unwrap_or(&[]).to_vec());
        }
        for (row, pixels) in (0..).zip(rows) {
            self.put(to.x, to.y.saturating_add(row), pixels.into_iter());
        }
    }

    fn index(&self, x: u16, y: u16) -> usize {
        usize::from(y) * usize::from(self.width) + usize::from(x)
    }
}

/// What a server's bytes mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent {
    /// The server has let us in; the picture is black until the first update.
    Ready {
        /// What the desktop is called.
        name: String,
    },
    /// An update of the picture is complete.
    Updated(Damage),
    /// The picture has another size, and is black until the next update.
    Resized,
    /// The server rings.
    Bell,
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn part(x: u16, y: u16, width: u16, height: u16) -> Rectangle {
        Rectangle { x, y, width, height }
    }

    #[test]
    fn what_is_passed_over_is_neither_seen_nor_damage() {
        let mut frame = Frame::new(8, 2, &Limits::default()).unwrap();
        for (y, first) in [(0, 0), (1, 10)] {
            frame.put(0, y, first..first + 8);
        }
        frame.pass_over(vec![part(1, 0, 2, 1), part(2, 0, 3, 1), part(7, 0, 9, 9)]);
        let seen = |of| frame.seen_in(of).map(<[u32]>::to_vec).collect::<Vec<_>>();
        assert_eq!(seen(part(0, 0, 8, 2)), [vec![0], vec![5, 6], vec![10, 11, 12, 13, 14, 15, 16]]);
        assert_eq!(seen(part(3, 0, 4, 9)), [vec![5, 6], vec![13, 14, 15, 16]], "less what is outside");
        assert!(seen(part(1, 0, 3, 1)).is_empty() && seen(part(8, 2, 3, 1)).is_empty());
        frame.take_damage();
        frame.put(0, 0, std::iter::repeat_n(99, 8));
        let damage = frame.take_damage();
        assert_eq!((damage.changed, damage.bounds, damage.sent), (3, part(0, 0, 7, 1), 8));
    }
}
