//! One operation where nobody is inside: typed, then over with the last picture that is new [VNCplay 2005].

use std::time::Duration;

use tokio::time::Instant;
use virtbench_desktops::Day;
use virtbench_rfb::{Frame, Rectangle};

use crate::fault::Fault;
use crate::operation::{Changes, Keys, Seat, Timed, between};
use crate::outcome::Times;
use crate::restless::{self, Restless};
use crate::screen::{PictureChange, Screen};

/// Pictures since the last key, in the order in which each was first seen.
struct Pictures {
    /// Each picture's digest, and when it came; the one that the key found is the first.
    seen: Vec<(u64, Instant)>,
    /// The earliest of those that came again after the last new one: a cursor blinks.
    again: Option<usize>,
}

impl Pictures {
    fn found(digest: u64, at: Instant) -> Self {
        Self { seen: vec![(digest, at)], again: None }
    }

    fn add(&mut self, digest: u64, at: Instant) {
        match self.seen.iter().position(|(other, _)| *other == digest) {
            Some(place) => self.again = Some(self.again.map_or(place, |again| again.min(place))),
            None => {
                self.seen.push((digest, at));
                self.again = None;
            }
        }
    }

    fn last_new(&self) -> Option<Instant> {
        self.seen.last().map(|(_, at)| *at)
    }

    /// When the operation was over; nothing if there is but the picture that the key found, or that one comes again.
    fn end(&self) -> Option<Instant> {
        let place = self.again.unwrap_or(self.seen.len().saturating_sub(1));
        (place > 0).then(|| self.seen.get(place).map(|(_, at)| *at)).flatten()
    }
}

fn digest(frame: &Frame) -> u64 {
    restless::digest(frame, Rectangle { x: 0, y: 0, width: frame.width(), height: frame.height() })
}

impl Seat {
    /// Looks at the picture until then, and from then on leaves out what changed all the time; returns that.
    pub(crate) async fn leave_out_restless(&mut self, until: Instant) -> Result<Vec<Rectangle>, Fault> {
        let mut restless = Restless::default();
        while let Some(seen) = self.screen.next(until).await? {
            restless.changed(self.screen.frame(), seen.bounds);
        }
        let parts = restless.parts(self.screen.frame());
        self.screen.mask(&parts);
        Ok(parts)
    }

    /// Types, and looks on until no picture is new any more.
    pub(crate) async fn perform_unaided(&mut self, day: &Day, keys: &Keys) -> Result<Timed, Fault> {
        let begun = Instant::now();
        let (from, echo) = self.type_keys(day, keys, begun).await?;
        let give_up = Duration::from_nanos(day.limits.give_up);
        let until = from + give_up;
        let mut pictures = Pictures::found(digest(self.screen.frame()), from);
        let mut changes = Changes::default();
        // Asked anew each time: what blinks all the time must not keep anybody from looking at the clock, and of an update of which a part
        // has come the rest is waited for.
        let still_at = |pictures: &Pictures, screen: &Screen| {
            let last_new = pictures.last_new().filter(|_| pictures.seen.len() > 1);
            last_new.map_or(until, |last| screen.still_at(last)).min(until)
        };
        while Instant::now() < still_at(&pictures, &self.screen) {
            let wait = still_at(&pictures, &self.screen);
            if let Some(seen) = self.screen.next(wait).await?.filter(PictureChange::has_changed) {
                changes.add(seen.at);
                pictures.add(digest(self.screen.frame()), seen.at);
            }
        }
        let within = format!("within {} s after the last key", give_up.as_secs());
        let no = |what: &str| Fault::Picture(format!("the picture {what} {within}"));
        if pictures.last_new().is_some_and(|last| self.screen.still_at(last) > until) {
            return Err(no("never stands still: something moves in it,"));
        }
        let end = pictures.end().ok_or_else(|| no("does not change"))?;
        let latency_ns = between(from, end);
        let times = Times { latency_ns, ..Times::default() };
        changes.last = Some(end);
        Ok(Timed { times, echo, from, changes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The place of the picture with which an operation ends, from pictures by their names.
    fn end(pictures: &[u64]) -> Option<u64> {
        let begun = Instant::now();
        let mut all = Pictures::found(0, begun);
        for (at, picture) in (1..).zip(pictures) {
            all.add(*picture, begun + Duration::from_secs(at));
        }
        all.end().map(|at| (at - begun).as_secs())
    }

    #[test]
    fn what_a_cursor_blinks_after_the_last_new_picture_is_not_the_end() {
        assert_eq!(end(&[]), None);
        assert_eq!(end(&[1, 2, 3]), Some(3), "each is new");
        assert_eq!(end(&[1, 2, 3, 2, 3]), Some(2), "3 is 2 with its cursor away");
        assert_eq!(end(&[1, 0, 1, 0]), None, "nothing but the cursor has changed");
        assert_eq!(end(&[1, 0, 2, 3, 2]), Some(3), "it blinked before it answered");
        assert_eq!(end(&[1, 2, 1, 3]), Some(4), "what came again before something new was no end");
    }
}
