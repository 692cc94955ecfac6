//! Which frames of a video have arrived.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;
use virtbench_desktops::{Unreadable, Video, find_frame_number, read_frame_number};
use virtbench_rfb::Frame;

use crate::outcome::VideoSeen;
use crate::screen::luminance;

/// Which frames of a video have arrived, and when.
#[derive(Debug)]
pub(crate) struct Watched {
    video: Video,
    /// Where frames have their numbers, once that is known.
    place: Option<(u16, u16)>,
    seen: BTreeSet<u16>,
    first: Option<Instant>,
    last: Option<Instant>,
    freeze: Duration,
    unreadable: u32,
}

impl Watched {
    pub(crate) fn new(video: Video) -> Self {
        Self {
            video,
            place: None,
            seen: BTreeSet::new(),
            first: None,
            last: None,
            freeze: Duration::ZERO,
            unreadable: 0,
        }
    }

    /// A picture that has come at that moment.
    pub(crate) fn look(&mut self, frame: &Frame, at: Instant) {
        if self.place.is_none() {
            let pixel = |x, y| luminance(frame.pixel(x, y));
            self.place = find_frame_number(frame.width(), frame.height(), pixel);
        }
        let Some((left, top)) = self.place else { return };
        match read_frame_number(|x, y| luminance(frame.pixel(left + x, top + y))) {
            Ok(number) if number < self.video.frames => self.add(number, at),
            Ok(_) => {}
            // The video's window has gone, or has moved.
            Err(Unreadable::Absent) => self.place = None,
            Err(Unreadable::Unclear | Unreadable::Checksum) => self.unreadable += 1,
        }
    }

    fn add(&mut self, number: u16, at: Instant) {
        if !self.seen.insert(number) {
            return;
        }
        self.first.get_or_insert(at);
        let since = self.last.map_or(Duration::ZERO, |last| at.saturating_duration_since(last));
        self.freeze = self.freeze.max(since);
        self.last = Some(at);
    }

    /// When the first frame came, and what came in all until the video ended; nothing if none did. A video that stands still to its end
    /// is frozen so long.
    pub(crate) fn result(&self, ended: Instant) -> Option<(Instant, VideoSeen)> {
        let (first, last) = (self.first?, self.last?);
        let is_whole = self.seen.last().is_some_and(|number| number + 1 >= self.video.frames);
        let stood = if is_whole { Duration::ZERO } else { ended.saturating_duration_since(last) };
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let seen = VideoSeen {
            frames: self.video.frames.into(),
            rate: self.video.rate.into(),
            seen: u32::try_from(self.seen.len()).unwrap_or(u32::MAX),
            elapsed_ns: ns(last.saturating_duration_since(first)),
            freeze_ns: ns(self.freeze.max(stood)),
            unreadable: self.unreadable,
        };
        Some((first, seen))
    }
}
