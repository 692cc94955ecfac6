//! The picture as it was last seen.

use crate::error::RfbError;
use crate::limits::Limits;
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

    /// The pixels of a part that are not passed over, row by row. What lies outside the picture is left out.
    pub fn seen_in(&self, part: Rectangle) -> impl Iterator<Item = u32> + '_ {
        let right = part.right().min(self.width.into());
        let bottom = part.bottom().min(self.height.into());
        let places =
            (u32::from(part.y)..bottom).flat_map(move |y| (u32::from(part.x)..right).map(move |x| (x, y)));
        let narrow = |(x, y)| (u16::try_from(x).unwrap_or(u16::MAX), u16::try_from(y).unwrap_or(u16::MAX));
        let is_seen = |(x, y): &(u16, u16)| !self.passed_over.iter().any(|part| part.contains(*x, *y));
        places.map(narrow).filter(is_seen).map(|(x, y)| self.pixel(x, y))
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
        for ((at, old), new) in (x..).zip(row).zip(pixels) {
            self.damage.sent += 1;
            if *old != new {
                *old = new;
                if !self.passed_over.iter().any(|part| part.contains(at, y)) {
                    self.damage.changed += 1;
                    self.damage.bounds = self.damage.bounds.with(at, y);
                }
            }
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
