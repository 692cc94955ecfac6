//! An operation that goes on, and whether it is over.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use virtbench_desktops::{Order, Until};
use x11rb::protocol::xproto::Window;

use crate::display::{Display, Heard};
use crate::error::SessionError;
use crate::settling::{Settled, Settling};
use crate::started::Started;

/// A file as it is: its number, size and time of change.
type FileState = Option<(u64, u64, i64, i64)>;

/// Which of an operation's conditions are fulfilled.
#[derive(Debug)]
pub(crate) struct EndConditions {
    pub(crate) order: Order,
    begun: Instant,
    /// From when on its time counts: from the last key, or from its beginning where there is none.
    from: Instant,
    /// Windows that were there before.
    before: Vec<Window>,
    file: FileState,
    keys: u32,
    /// Whether something was drawn after the last key.
    drawn: bool,
    question: Question,
    /// Whether its windows answer at all.
    answers: bool,
    /// Once its end was shown, where its windows have to stand still as well.
    settling: Option<Settling>,
}

/// What a look at an operation comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Look {
    /// It goes on.
    On,
    /// It is over unless its application draws once more: the picture is to tell this revision of its end.
    Ended(u16),
    /// It is over with this revision; or has failed.
    Over(Result<u16, String>),
}

/// Whether the application has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    /// It is not its time.
    No,
    Asked(u32),
    Answered,
}

impl EndConditions {
    /// Begins it: what stands before is what it is compared with.
    pub(crate) fn begin(order: Order, display: &mut Display) -> Result<Self, SessionError> {
        let before = display.windows(&order.window)?;
        let file = if let Until::File(path) = &order.until { state(path) } else { None };
        for window in &before {
            display.watch(*window)?;
        }
        let begun = Instant::now();
        let (keys, drawn, question, answers) = (0, false, Question::No, false);
        Ok(Self { order, begun, from: begun, before, file, keys, drawn, question, answers, settling: None })
    }

    /// How long it has gone on since the last key, or took to its end.
    pub(crate) fn elapsed(&self) -> Duration {
        self.settling.as_ref().map_or_else(Instant::now, Settling::ended).saturating_duration_since(self.from)
    }

    /// Windows of the application that were there when it began.
    pub(crate) fn before(&self) -> &[Window] {
        &self.before
    }

    pub(crate) fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::Key => {
                self.keys += 1;
                // What is drawn for an earlier key is not what is waited for.
                if self.keys <= self.order.keys {
                    self.drawn = false;
                    self.from = Instant::now();
                }
            }
            Heard::Drawn(size) => {
                self.drawn = true;
                if let Some(settling) = &mut self.settling {
                    settling.drawn(size);
                }
            }
            Heard::Answered(number) if self.question == Question::Asked(number) => {
                self.question = Question::Answered;
            }
            Heard::Answered(_) | Heard::Other => {}
        }
    }

    /// Whether it is over; how it failed, if it did.
    pub(crate) fn look(
        &mut self,
        display: &mut Display,
        started: &mut Started,
    ) -> Result<Look, SessionError> {
        if self.begun.elapsed() >= Duration::from_nanos(self.order.give_up_ns) {
            return Ok(Look::Over(Err(self.missing())));
        }
        if let Some(why) = self.ended_badly(started) {
            return Ok(Look::Over(Err(why)));
        }
        if let Some(settling) = &mut self.settling {
            for window in display.windows(&self.order.window)? {
                display.watch(window)?;
            }
            return Ok(match settling.look(Instant::now()) {
                Settled::NotYet => Look::On,
                Settled::Again(revision) => Look::Ended(revision),
                Settled::Yes(revision) => Look::Over(Ok(revision)),
            });
        }
        Ok(match self.is_over(display, started)? {
            false => Look::On,
            true if self.order.still => {
                self.settling = Some(Settling::begin(Instant::now()));
                Look::Ended(0)
            }
            true => Look::Over(Ok(0)),
        })
    }

    /// Whether what it waits for has happened.
    fn is_over(&mut self, display: &mut Display, started: &mut Started) -> Result<bool, SessionError> {
        if self.keys < self.order.keys {
            return Ok(false);
        }
        let windows = display.windows(&self.order.window)?;
        Ok(match &self.order.until {
            Until::Window => {
                let new = windows.iter().filter(|window| !self.before.contains(window)).copied();
                let new: Vec<Window> = new.collect();
                for window in &new {
                    display.watch(*window)?;
                }
                // What answers has drawn before this looked.
                self.has_answered(new.last(), display)? && (self.drawn || self.answers)
            }
            Until::Title(text) => {
                for window in &windows {
                    display.watch(*window)?;
                }
                let mut titled = None;
                for window in &windows {
                    if display.title(*window)?.contains(text.as_str()) {
                        titled = Some(*window);
                    }
                }
                self.has_answered(titled.as_ref(), display)? && (self.drawn || self.answers)
            }
            Until::Drawn => self.has_answered(windows.last(), display)? && self.drawn,
            Until::Hidden => {
                let mut all = !windows.is_empty();
                for window in &windows {
                    all &= display.is_hidden(*window)?;
                }
                all
            }
            Until::Gone => windows.is_empty(),
            Until::File(path) => {
                let now = state(path);
                let is_written = now != self.file && now.is_some_and(|(_, bytes, ..)| bytes > 0);
                is_written && self.has_answered(windows.last(), display)?
            }
            Until::Exit | Until::Video(_) => started.end_of_last().is_some_and(|status| status.success()),
        })
    }

    /// Asks once; a window that does not answer such questions has answered.
    fn has_answered(&mut self, window: Option<&Window>, display: &mut Display) -> Result<bool, SessionError> {
        let Some(window) = window else { return Ok(false) };
        if self.question == Question::No {
            self.question = display.ask(*window)?.map_or(Question::Answered, Question::Asked);
            self.answers = self.question != Question::Answered;
        }
        Ok(self.question == Question::Answered)
    }

    /// A program that ends with an error does nothing any more. One that ends well may have handed over to another.
    fn ended_badly(&self, started: &mut Started) -> Option<String> {
        let status = (!self.order.start.is_empty()).then(|| started.end_of_last()).flatten()?;
        let program = self.order.start.first().map_or("", String::as_str);
        (!status.success()).then(|| format!("{program} ended: {status}"))
    }

    fn missing(&self) -> String {
        let seconds = self.order.give_up_ns / 1_000_000_000;
        let class = &self.order.window;
        let what = match &self.order.until {
            _ if self.settling.is_some() => format!("windows of the class {class:?} never stand still"),
            _ if self.keys < self.order.keys => {
                format!("{} of {} keys arrived in the session", self.keys, self.order.keys)
            }
            Until::Window => format!("no window of the class {class:?} has come and drawn"),
            Until::Drawn => format!("no window of the class {class:?} has drawn after the last key"),
            Until::Title(text) => format!("no window of the class {class:?} has {text:?} in its title"),
            Until::Hidden => format!("the windows of the class {class:?} are not put away"),
            Until::Gone => format!("a window of the class {class:?} is still there: does it show a dialog?"),
            Until::File(path) => format!("{path} has not changed"),
            Until::Exit | Until::Video(_) => {
                format!("{} has not ended", self.order.start.first().map_or("", String::as_str))
            }
        };
        let answer = match self.question {
            Question::Asked(_) => ", and the application does not answer",
            _ => "",
        };
        format!("within {seconds} s: {what}{answer}")
    }
}

fn state(path: &str) -> FileState {
    fs::metadata(path).ok().map(|facts| (facts.ino(), facts.size(), facts.mtime(), facts.mtime_nsec()))
}
