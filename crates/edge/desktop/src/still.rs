//! An operation that has to stand still: its end is the last one that the picture tells.

use std::time::Duration;

use tokio::time::Instant;
use virtbench_desktops::{Answer, Ending, Phase};

use crate::fault::Fault;
use crate::operation::{Changes, LAG, Seat};

/// How often the session's answer is looked for while nothing is drawn.
const LOOK: Duration = Duration::from_millis(50);

impl Seat {
    /// From the first end that was seen to the last one, which the session's answer names; when that one was seen. An end that the
    /// picture never tells is missed, and not guessed from another.
    pub(crate) async fn follow(
        &mut self,
        first: Instant,
        mut until: Instant,
        changes: &mut Changes,
    ) -> Result<(Instant, Answer), Fault> {
        let mut seen = (self.revision(), first);
        let mut answer: Option<Answer> = None;
        loop {
            if let Some(revision) = self.revision().filter(|revision| Some(*revision) != seen.0) {
                seen = (Some(revision), self.last);
            }
            if answer.is_none() {
                answer = self.answer(Duration::ZERO).await?;
                until = answer.as_ref().map_or(until, |_| until.min(Instant::now() + LAG));
            }
            match &answer {
                Some(Answer { ending: Ending::Failed(why), .. }) => return Err(Fault::Session(why.clone())),
                Some(told) if seen.0 == Some(told.revision) => return Ok((seen.1, told.clone())),
                _ => {}
            }
            let now = Instant::now();
            if now >= until {
                return Err(self.missed(Duration::from_millis(1)).await?);
            }
            if let Some(update) = self.screen.next(until.min(now + LOOK)).await? {
                self.last = update.at;
                if update.has_changed() {
                    changes.add(update.at);
                }
            }
        }
    }

    /// Which end of this operation the picture tells, if it tells one.
    fn revision(&self) -> Option<u16> {
        let ours = |marker: &virtbench_desktops::Marker| {
            marker.sequence == self.sequence && marker.phase == Phase::Ended
        };
        self.screen.marker().ok().filter(ours).map(|marker| marker.revision)
    }
}
