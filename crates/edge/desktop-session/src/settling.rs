//! An operation that is over unless its application draws once more.

use std::time::Instant;

use virtbench_desktops::{Marker, STILL};

/// Width and height of the largest cursor, in pixels.
const CURSOR: [u16; 2] = [16, 48];

/// What has been drawn since an operation's end was shown.
#[derive(Debug)]
pub(crate) struct Settling {
    /// Which end it is: each that something was drawn after was followed by another one.
    revision: u16,
    ended: Instant,
    is_drawn_on: bool,
}

/// What is to be done about an operation that may be over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    /// Nothing yet.
    NotYet,
    /// Its end has to be shown anew, with this revision.
    Again(u16),
    /// It is over, with this revision.
    Yes(u16),
}

impl Settling {
    pub(crate) fn begin(now: Instant) -> Self {
        Self { revision: 0, ended: now, is_drawn_on: false }
    }

    /// When its end was shown last.
    pub(crate) fn ended(&self) -> Instant {
        self.ended
    }

    /// Something of this width and height was drawn on its windows.
    pub(crate) fn drawn(&mut self, size: [u16; 2]) {
        self.is_drawn_on |= size[0] > CURSOR[0] || size[1] > CURSOR[1];
    }

    pub(crate) fn look(&mut self, now: Instant) -> Settled {
        if self.is_drawn_on && self.revision < Marker::LAST_REVISION {
            *self = Self { revision: self.revision + 1, ..Self::begin(now) };
            return Settled::Again(self.revision);
        }
        let is_still = !self.is_drawn_on && now.saturating_duration_since(self.ended) >= STILL;
        if is_still { Settled::Yes(self.revision) } else { Settled::NotYet }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_end_holds_once_nothing_larger_than_a_cursor_is_drawn_after_it() {
        let begun = Instant::now();
        let at = |ms| begun + Duration::from_millis(ms);
        let mut settling = Settling::begin(begun);
        assert_eq!(settling.look(at(399)), Settled::NotYet);
        settling.drawn([300, 2]);
        assert_eq!(settling.look(at(399)), Settled::Again(1));
        settling.drawn([2, 16]);
        assert_eq!(settling.look(at(798)), Settled::NotYet);
        settling.drawn([17, 1]);
        assert_eq!(settling.look(at(798)), Settled::Again(2));
        assert_eq!(settling.ended(), at(798));
        assert_eq!(settling.look(at(1198)), Settled::Yes(2));
    }

    #[test]
    fn what_never_stands_still_is_never_over() {
        let begun = Instant::now();
        let mut settling = Settling::begin(begun);
        for ms in 0..3000 {
            settling.drawn([640, 480]);
            assert!(!matches!(settling.look(begun + Duration::from_millis(ms)), Settled::Yes(_)));
        }
        assert_eq!(settling.look(begun + Duration::from_secs(60)), Settled::NotYet);
    }
}
