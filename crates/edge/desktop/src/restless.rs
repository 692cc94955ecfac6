//! Parts of a picture that change while nobody does anything: a clock, a film, a load meter.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use virtbench_rfb::{Frame, Rectangle};

/// So many contents of a part, each other than those before it, and it changes all the time. A cursor that blinks has two.
const CONTENTS: usize = 3;
/// More parts than these are looked at as one.
const MOST_PARTS: usize = 8;
/// What changes all the time may be so large, as a share of the picture: beyond that nothing would be left to look at.
const MOST_SHARE: f64 = 0.5;

/// A part that has changed.
struct Part {
    place: Rectangle,
    contents: HashSet<u64>,
}

/// What has changed in a picture before which nobody does anything.
#[derive(Default)]
pub(crate) struct Restless {
    parts: Vec<Part>,
}

impl Restless {
    /// Notes that the pixels of this rectangle, and maybe others in it, have changed to what the frame shows.
    pub(crate) fn changed(&mut self, frame: &Frame, mut place: Rectangle) {
        if place.pixels() == 0 {
            return;
        }
        let mut contents = HashSet::new();
        let is_full = self.parts.len() >= MOST_PARTS;
        let mut at = 0;
        // A rectangle that grows may reach others.
        while let Some(part) = self.parts.get(at) {
            if is_full || part.place.overlaps(&place) {
                let part = self.parts.swap_remove(at);
                place = place.union(part.place);
                contents.extend(part.contents);
                at = 0;
            } else {
                at += 1;
            }
        }
        contents.insert(digest(frame, place));
        self.parts.push(Part { place, contents });
    }

    /// The parts that change all the time, unless they are most of the picture.
    pub(crate) fn parts(&self, frame: &Frame) -> Vec<Rectangle> {
        let restless = self.parts.iter().filter(|part| part.contents.len() >= CONTENTS);
        let restless: Vec<Rectangle> = restless.map(|part| part.place).collect();
        let pixels: u32 = restless.iter().map(Rectangle::pixels).sum();
        if f64::from(pixels) > MOST_SHARE * frame.pixels().len() as f64 { Vec::new() } else { restless }
    }
}

/// What a part of the picture shows, without what is passed over.
pub(crate) fn digest(frame: &Frame, place: Rectangle) -> u64 {
    let mut hasher = DefaultHasher::new();
    frame.seen_in(place).for_each(|run| run.hash(&mut hasher));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use virtbench_rfb::Limits;

    const CLOCK: Rectangle = Rectangle { x: 80, y: 0, width: 20, height: 10 };
    const CURSOR: Rectangle = Rectangle { x: 5, y: 50, width: 2, height: 10 };

    /// What restless parts come of pictures whose parts are filled with these colours, one after the other.
    fn parts(changes: &[(Rectangle, u32)]) -> Vec<Rectangle> {
        let mut frame = Frame::new(100, 100, &Limits::default()).unwrap();
        let mut restless = Restless::default();
        for (place, colour) in changes {
            frame.fill(*place, *colour);
            restless.changed(&frame, *place);
        }
        restless.parts(&frame)
    }

    #[test]
    fn a_clock_is_restless_and_a_cursor_is_not() {
        assert_eq!(parts(&[]), []);
        let blink = [(CURSOR, 1), (CURSOR, 0), (CURSOR, 1), (CURSOR, 0)];
        assert_eq!(parts(&blink), [], "it has two contents");
        let tick = [(CLOCK, 1), (CURSOR, 1), (CLOCK, 2), (CURSOR, 0), (CLOCK, 3)];
        assert_eq!(parts(&tick), [CLOCK]);
        assert_eq!(parts(&tick[..3]), [], "two may be a window that opens");
    }

    #[test]
    fn what_is_most_of_the_picture_stays() {
        let all = Rectangle { x: 0, y: 0, width: 100, height: 100 };
        assert_eq!(parts(&[(all, 1), (all, 2), (all, 3), (all, 4)]), []);
    }

    #[test]
    fn parts_that_grow_together_are_one() {
        let left = Rectangle { x: 0, y: 0, width: 10, height: 10 };
        let right = Rectangle { x: 20, y: 0, width: 10, height: 10 };
        let both = Rectangle { x: 5, y: 0, width: 20, height: 5 };
        let found = parts(&[(left, 1), (right, 1), (both, 2), (both, 3)]);
        assert_eq!(found, [Rectangle { x: 0, y: 0, width: 30, height: 10 }]);
    }
}
