//! What is shown and noticed while a study measures.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use virtbench_record::{GuestsState, HostUse, Record};
use virtbench_study::{Event, RunFolder};
use virtbench_units::format_duration_ns;

use super::common;
use crate::company::Company;
use crate::exit::Outcome;
use crate::say::tell;

/// Off a terminal, the longest without a line.
const LINE_EVERY: Duration = Duration::from_secs(30);

/// A bar on a terminal, lines elsewhere; and who else uses the host.
pub struct Watch {
    bar: ProgressBar,
    /// None on a terminal.
    lines: Option<(Instant, Lines)>,
    company: Company,
}

impl Watch {
    /// From now on, with a bar over the whole run.
    pub fn new(bar: ProgressBar) -> Self {
        let lines = (!io::stderr().is_terminal()).then(|| (Instant::now(), Lines::default()));
        Self { bar, lines, company: Company::new() }
    }

    /// The bar.
    pub fn bar(&self) -> &ProgressBar {
        &self.bar
    }

    /// Something is being done; the bar has been moved to where it is.
    pub fn doing(&mut self, what: String) {
        if let Some((began, lines)) = &mut self.lines {
            let (position, length) = (self.bar.position(), self.bar.length().unwrap_or(0));
            if let Some(line) = lines.due(position, length, began.elapsed()) {
                tell!("{line}: {what}");
            }
        }
        self.bar.set_message(what);
    }

    /// Says something without disturbing the bar.
    pub fn say(&self, what: &str) {
        self.bar.suspend(|| tell!("{what}"));
    }

    /// A measurement is in the folder; `host` is what the host did meanwhile.
    pub fn recorded(&mut self, host: Option<&HostUse>) {
        let Self { bar, company, .. } = self;
        bar.suspend(|| {
            company.look();
            if let Some(host) = host {
                company.judge(host);
            }
        });
    }

    /// Shows an event of a run of points.
    pub fn show(&mut self, event: &Event<'_>) {
        match event {
            Event::Starting(environment) => self.doing(format!("starting {environment}")),
            Event::Idling(GuestsState::Running) => {
                self.doing("measuring what running, idle guests cost".into())
            }
            Event::Idling(GuestsState::Stopped) => self.doing("measuring what stopped guests cost".into()),
            Event::Measuring { done, step, environment, .. } => {
                self.bar.set_position(*done as u64);
                self.doing(format!("{environment}: {}", step.point));
            }
            Event::Restarting { environment, error } => {
                self.say(&format!("{environment} hangs and is started anew: {error}"));
            }
            Event::Recorded(record) => {
                self.bar.inc(1);
                self.recorded(record.measured().map(|measured| &measured.host));
            }
        }
    }

    /// Ends it; which other measurements were met becomes part of the record.
    pub fn finish<R: Record>(mut self, folder: &mut RunFolder<R>) -> Outcome {
        self.bar.finish_and_clear();
        let met = self.company.notes(None);
        if met.iter().all(|note| folder.provenance().notes.contains(note)) {
            return Ok(());
        }
        let add = |notes: &mut Vec<String>| {
            for note in met {
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
        };
        folder.amend(|provenance| add(&mut provenance.notes)).map_err(common::folder_failure)
    }
}

/// When a line is due, and what it says: at each tenth of the way, and at intervals.
#[derive(Debug, Default)]
struct Lines {
    /// Where the way began: with `--resume`, a part of it is behind already.
    began_at: Option<u64>,
    tenth: u64,
    last: Duration,
}

impl Lines {
    /// The line that is due when so much of the way is done after so long.
    fn due(&mut self, position: u64, length: u64, elapsed: Duration) -> Option<String> {
        let began_at = *self.began_at.get_or_insert(position);
        let tenth = (10 * position).checked_div(length)?;
        if tenth <= self.tenth && elapsed < self.last + LINE_EVERY {
            return None;
        }
        (self.tenth, self.last) = (tenth, elapsed);
        let percent = 100 * position / length;
        let done = position.saturating_sub(began_at);
        if done == 0 {
            return Some(format!("{percent} %"));
        }
        let left_s = elapsed.as_secs_f64() * length.saturating_sub(position) as f64 / done as f64;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive, and saturates"
        )]
        let left_ns = (left_s.ceil() as u64).saturating_mul(1_000_000_000);
        Some(format!("{percent} %, about {} left", format_duration_ns(left_ns)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_at_each_tenth_and_at_intervals_with_the_time_left() {
        let mut lines = Lines::default();
        let mut at = |position, seconds| lines.due(position, 40, Duration::from_secs(seconds));
        assert_eq!(at(0, 1), None);
        assert_eq!(at(3, 10), None);
        assert_eq!(at(4, 20).as_deref(), Some("10 %, about 3m left"));
        assert_eq!(at(5, 40), None);
        assert_eq!(at(5, 50).as_deref(), Some("12 %, about 5m 50s left"));
        assert_eq!(at(40, 60).as_deref(), Some("100 %, about 0s left"));
    }

    #[test]
    fn what_an_earlier_sitting_measured_makes_nothing_faster() {
        let mut lines = Lines::default();
        assert_eq!(lines.due(50, 100, Duration::from_secs(1)).as_deref(), Some("50 %"));
        assert_eq!(lines.due(60, 100, Duration::from_secs(20)).as_deref(), Some("60 %, about 1m 20s left"));
        assert_eq!(lines.due(0, 0, Duration::from_secs(90)), None, "nothing to do");
    }
}
