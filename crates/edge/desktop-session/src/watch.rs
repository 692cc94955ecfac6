//! An operation that goes on, and whether it is over; programs that the session has started.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use rustix::process::{Pid, Signal, kill_process_group};
use virtbench_desktops::{Marker, Order, STILL, Until};
use x11rb::protocol::xproto::Window;

use crate::display::{Display, Heard};
use crate::error::SessionError;

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

/// How long programs may take to end when they are told to.
const END_LIMIT: Duration = Duration::from_secs(2);

const PAUSE: Duration = Duration::from_millis(10);

/// Programs that the session has started, each with all it starts in turn. They go with this.
#[derive(Debug, Default)]
pub(crate) struct Started(Vec<Child>);

impl Started {
    /// Starts one, in a process group of its own.
    pub(crate) fn start(&mut self, words: &[String], display: &str) -> io::Result<()> {
        let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).env("DISPLAY", display).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.0.push(command.spawn()?);
        Ok(())
    }

    /// How the last one has ended, if it has.
    pub(crate) fn end_of_last(&mut self) -> Option<ExitStatus> {
        self.0.last_mut()?.try_wait().ok().flatten()
    }

    /// Forgets those that have ended.
    pub(crate) fn reap(&mut self) {
        self.0.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }

    /// Ends all of them, with all that they have started in turn.
    pub(crate) fn end_all(&mut self) {
        self.signal(Signal::TERM);
        let begun = Instant::now();
        while begun.elapsed() < END_LIMIT {
            if self.0.iter_mut().all(|child| !matches!(child.try_wait(), Ok(None))) {
                break;
            }
            thread::sleep(PAUSE);
        }
        self.signal(Signal::KILL);
        for mut child in self.0.drain(..) {
            let _ = child.wait();
        }
    }

    fn signal(&self, signal: Signal) {
        for child in &self.0 {
            if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                // A group that has ended is as good as told.
                let _ = kill_process_group(group, signal);
            }
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.end_all();
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
