//! One operation where nobody is inside: typed, then over with the last change of the picture [VNCplay 2005].

use std::time::Duration;

use tokio::time::Instant;
use virtbench_desktops::Day;
use virtbench_rfb::Chord;

use crate::fault::Fault;
use crate::operation::{Changes, STILL, Seat, Timed, between};
use crate::outcome::Times;

impl Seat {
    /// Types, and looks on until the picture has changed and then stands still. A cursor that blinks within that time counts as well.
    pub(crate) async fn perform_unaided(&mut self, day: &Day, chords: &[Chord]) -> Result<Timed, Fault> {
        let begun = Instant::now();
        let (from, echoes) = self.type_keys(day, chords, begun).await?;
        let give_up = Duration::from_nanos(day.limits.give_up);
        let until = from + give_up;
        let mut changes = Changes::default();
        loop {
            let still = changes.last.map_or(until, |last| until.min(last + STILL));
            match self.screen.next(still).await? {
                Some(seen) if seen.changed => changes.add(seen.at),
                Some(_) => {}
                None => break,
            }
        }
        let within = format!("within {} s after the last key", give_up.as_secs());
        let last =
            changes.last.ok_or_else(|| Fault::Picture(format!("the picture does not change {within}")))?;
        if last + STILL > until {
            return Err(Fault::Picture(format!(
                "the picture never stands still {within}: does something move in it?"
            )));
        }
        let latency_ns = between(from, last);
        let times = Times { latency_ns, first_change_ns: None, last_change_ns: None, inside_ns: None };
        Ok(Timed { times, echoes, from, changes })
    }
}
