//! What is shown and noticed while a study measures: to people, and by `--progress json` to programs that watch it.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use serde_json::{Value, json};
use virtbench_record::{GuestsState, HostUse, Trial};
use virtbench_study::{Estimate, Event, Observer};
use virtbench_units::format_duration_ns;

use crate::claim::Company;
use crate::say::tell;
use crate::{log, progress, say};

/// The longest without a line, where lines are wanted.
const LINE_EVERY: Duration = Duration::from_secs(30);

/// A bar on a terminal, or lines where they are wanted; and who else uses the host.
pub struct StudyProgress {
    bar: ProgressBar,
    /// What is to be measured, once that is known.
    estimate: Option<Estimate>,
    /// None where nobody wants lines.
    lines: Option<(Instant, Lines)>,
    /// Steps of a search that are done, and how many there can be at most: how many are left is unknown.
    search: Option<(u64, u64)>,
    /// While it is measured.
    company: Option<Company>,
}

impl StudyProgress {
    /// Before anything is known.
    pub fn new() -> Self {
        Self { bar: ProgressBar::hidden(), estimate: None, lines: None, search: None, company: None }
    }

    /// Measuring begins, with this bar over the whole run.
    fn begin(&mut self, bar: ProgressBar) {
        self.bar.finish_and_clear();
        self.bar = bar;
        self.lines = say::is_in_lines().then(|| (Instant::now(), Lines::default()));
        self.company = Some(Company::new());
    }

    /// Something is being done; the bar has been moved to where it is.
    fn doing(&mut self, what: String) {
        if let Some((done, most)) = self.search {
            let what = step_of_search(done, most, &what);
            if self.lines.is_some() {
                tell!("{what}");
            }
            self.bar.set_message(what);
            return;
        }
        if let Some((began, lines)) = &mut self.lines {
            let (position, length) = (self.bar.position(), self.bar.length().unwrap_or(0));
            if let Some(line) = lines.due(position, length, began.elapsed()) {
                tell!("{line}: {what}");
            }
        }
        self.bar.set_message(what);
    }

    /// Says something without disturbing the bar.
    fn say(&self, what: &str) {
        self.bar.suspend(|| tell!("{what}"));
    }

    /// A measurement is in the folder; `host` is what the host did meanwhile.
    fn recorded(&mut self, host: Option<&HostUse>) {
        let Self { bar, company: Some(company), .. } = self else { return };
        bar.suspend(|| {
            company.look();
            if let Some(host) = host {
                company.judge(host);
            }
        });
    }

    /// A trial of a prediction is in the folder.
    fn tried(&mut self, trial: &Trial) {
        trial.hosts().for_each(|host| self.recorded(Some(host)));
        self.say(&format!(
            "{} {}: {} {:.1}, predicted {:.1}, measured {:.1} {} ({:+.0} %)",
            trial.name(),
            trial.trial,
            if trial.storage.is_some() { "before" } else { "native" },
            trial.reference,
            trial.predicted,
            trial.truth,
            trial.capacity_name,
            trial.error_percent()
        ));
    }

    /// Moves the bar to where it is when so many measurements are done.
    fn move_to(&self, done: usize) {
        let moments = self.estimate.as_ref().and_then(|estimate| estimate.moments_ns.as_ref());
        match moments.and_then(|moments| moments.get(done)) {
            Some(moment_ns) => progress::tick(&self.bar, Duration::from_nanos(*moment_ns)),
            None => self.bar.set_position(done as u64),
        }
    }
}

impl Observer for StudyProgress {
    fn event(&mut self, event: Event<'_>) {
        if say::is_for_machines()
            && let Some(value) = json_of(&event)
        {
            say::event(&value);
        }
        match event {
            Event::Remark(what) => self.say(what),
            Event::Opened(folder) => log::keep_in(folder),
            // The bar shows how far the run is by then.
            Event::Making { what, .. } if self.company.is_some() => self.bar.set_message(what.to_owned()),
            Event::Making { what, done, total } => {
                if self.bar.is_hidden() {
                    self.bar = progress::bar(0, what);
                }
                self.bar.set_message(what.to_owned());
                self.bar.set_length(total);
                self.bar.set_position(done);
            }
            Event::Planned(estimate) => {
                self.bar.finish_and_clear();
                if !say::is_for_machines() {
                    tell!("{estimate}");
                }
                self.search = estimate.is_bound.then_some((0, estimate.measurements as u64));
                self.begin(match (&estimate.moments_ns, estimate.total_ns) {
                    _ if estimate.is_bound => progress::timer(None, "starting"),
                    (Some(_), Some(total_ns)) => progress::timer(Some(total_ns), "starting"),
                    _ => progress::bar(estimate.measurements as u64, "starting"),
                });
                self.estimate = Some(estimate.clone());
            }
            Event::Doing(what) => self.doing(what.to_owned()),
            Event::Done { done, total } => {
                if self.company.is_none() {
                    self.begin(progress::bar(total, "starting"));
                }
                self.bar.set_length(total);
                self.bar.set_position(done);
                self.recorded(None);
            }
            Event::Searched { done, most } => {
                self.search = Some((done, most));
                self.bar.tick();
                self.recorded(None);
            }
            Event::Starting(name) => self.doing(format!("starting {name}")),
            Event::Idling(GuestsState::Running) => {
                self.doing("measuring what running, idle guests cost".into())
            }
            Event::Idling(GuestsState::Stopped) => self.doing("measuring what stopped guests cost".into()),
            Event::Measuring { done, what } => {
                self.move_to(done);
                self.doing(what.to_owned());
            }
            Event::Recorded(host) => self.recorded(host),
            Event::Tried(trial) => self.tried(trial),
        }
    }

    /// Ends showing the run; answers which other measurements were met.
    fn notes(&mut self) -> Vec<String> {
        self.bar.finish_and_clear();
        let mut ended = std::mem::replace(self, Self::new());
        ended.company.as_mut().map_or_else(Vec::new, |company| company.notes(None))
    }
}

/// An event as an object; nothing for remarks, which all commands have.
fn json_of(event: &Event<'_>) -> Option<Value> {
    Some(match event {
        Event::Remark(_) => return None,
        Event::Opened(folder) => json!({ "event": "opened", "folder": folder.display().to_string() }),
        Event::Making { what, done, total } => {
            json!({ "event": "making", "what": what, "done": done, "total": total })
        }
        Event::Planned(estimate) => json!({
            "event": "planned",
            "measurements": estimate.measurements,
            "total_ns": estimate.total_ns,
            "is_bound": estimate.is_bound,
        }),
        Event::Doing(what) => json!({ "event": "doing", "what": what }),
        Event::Done { done, total } => json!({ "event": "done", "done": done, "total": total }),
        Event::Searched { done, most } => json!({ "event": "searched", "done": done, "most": most }),
        Event::Starting(name) => json!({ "event": "starting", "environment": name }),
        Event::Idling(state) => {
            let guests = if *state == GuestsState::Running { "running" } else { "stopped" };
            json!({ "event": "idling", "guests": guests })
        }
        Event::Measuring { done, what } => json!({ "event": "measuring", "done": done, "what": what }),
        Event::Recorded(host) => json!({ "event": "recorded", "host": host }),
        Event::Tried(trial) => json!({
            "event": "tried",
            "case": trial.case,
            "storage": trial.storage,
            "trial": trial.trial,
            "predicted": trial.predicted,
            "measured": trial.truth,
        }),
    })
}

/// What a search does, without a share or a time left.
fn step_of_search(done: u64, most: u64, what: &str) -> String {
    format!("step {} of at most {most}: {what}", done.saturating_add(1))
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
    fn nothing_is_told_but_on_a_terminal_unless_lines_are_wanted() {
        let mut watch = StudyProgress::new();
        watch.begin(ProgressBar::hidden());
        assert!(watch.lines.is_none());
        say::in_lines();
        watch.begin(ProgressBar::hidden());
        assert!(watch.lines.is_some());
    }

    #[test]
    fn a_search_says_its_steps_and_never_that_none_are_left() {
        let mut watch = StudyProgress::new();
        for done in 0..2 {
            watch.event(Event::Searched { done, most: 2 });
            watch.event(Event::Doing("10 VMs, 386 a minute"));
            let said = watch.bar.message();
            assert_eq!(said, format!("step {} of at most 2: 10 VMs, 386 a minute", done + 1));
            assert!(!said.contains('%') && !said.contains("left"), "{said}");
        }
    }

    #[test]
    fn what_an_earlier_sitting_measured_makes_nothing_faster() {
        let mut lines = Lines::default();
        assert_eq!(lines.due(50, 100, Duration::from_secs(1)).as_deref(), Some("50 %"));
        assert_eq!(lines.due(60, 100, Duration::from_secs(20)).as_deref(), Some("60 %, about 1m 20s left"));
        assert_eq!(lines.due(0, 0, Duration::from_secs(90)), None, "nothing to do");
    }
}
