//! One operation: begun, typed, seen to end.

use std::time::Duration;

use tokio::time::Instant;
use virtbench_desktops::{
    Act, Answer, Application, Day, Ending, Marker, Operation, Order, Phase, Request, STILL, Unreadable, Until,
};
use virtbench_rfb::{Chord, Frame, Rectangle, parse_chord, type_text};

use crate::control::{Control, Fault};
use crate::outcome::Times;
use crate::restless::{self, Restless};
use crate::screen::{PictureChange, Screen};
use crate::video::Watched;

/// How long the picture may lag behind what the session says.
pub(crate) const LAG: Duration = Duration::from_secs(10);

/// How long an answer takes at most once the picture has told.
const ANSWER: Duration = Duration::from_secs(10);

/// How long users wait for the first character of a text before they type on. One that is not seen counts as long.
const ECHO: Duration = Duration::from_secs(2);

/// What is typed in an operation.
pub(crate) struct Keys {
    chords: Vec<Chord>,
    /// Whether each of them shows.
    are_text: bool,
}

impl Keys {
    fn of(act: &Act) -> Result<Self, Fault> {
        let are_text = matches!(act, Act::Text(_));
        let chords = match act {
            Act::Keys(keys) => {
                keys.iter().map(|key| parse_chord(key).map_err(Fault::Key)).collect::<Result<_, _>>()?
            }
            Act::Text(text) => type_text(text),
            Act::Start | Act::Activate => Vec::new(),
        };
        Ok(Self { chords, are_text })
    }
}

/// A user before a desktop.
pub(crate) struct Seat {
    pub(crate) screen: Screen,
    /// To the program inside the session, where there is one.
    control: Option<Control>,
    pub(crate) sequence: u16,
    /// When the picture changed last.
    pub(crate) last: Instant,
}

/// The result of an operation.
pub(crate) struct Timed {
    pub(crate) times: Times,
    /// From a text's first key to the change of the picture that followed, in nanoseconds.
    pub(crate) echo: Option<u64>,
    /// The operation's beginning by its times.
    pub(crate) from: Instant,
    pub(crate) changes: Changes,
}

/// When the picture has changed since a moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Changes {
    first: Option<Instant>,
    pub(crate) last: Option<Instant>,
}

/// What is noted while the end of an operation is waited for.
#[derive(Debug, Default)]
struct Noted {
    changes: Changes,
    video: Option<Watched>,
}

impl Changes {
    pub(crate) fn add(&mut self, at: Instant) {
        self.first.get_or_insert(at);
        self.last = Some(at);
    }
}

impl Noted {
    fn look(&mut self, frame: &Frame, at: Instant) {
        if let Some(video) = &mut self.video {
            video.look(frame, at);
        }
    }
}

impl Seat {
    pub(crate) fn new(screen: Screen, control: Option<Control>) -> Self {
        Self { screen, control, sequence: 0, last: Instant::now() }
    }

    /// Does an operation.
    pub(crate) async fn perform(
        &mut self,
        day: &Day,
        application: &Application,
        operation: &Operation,
        number: u8,
    ) -> Result<Timed, Fault> {
        let keys = Keys::of(&operation.act)?;
        self.sequence = Marker::sequence_after(self.sequence);
        let mut give_up = Duration::from_nanos(day.limits.give_up);
        let mut noted = Noted::default();
        if let Until::Video(video) = operation.until {
            give_up += Duration::from_nanos(video.length_ns());
            noted.video = Some(Watched::new(video));
        }
        self.last = Instant::now();
        let Some(control) = &mut self.control else {
            return self.perform_unaided(day, &keys).await;
        };
        let order = order(application, operation, number, self.sequence, &keys.chords, give_up);
        let asked = Instant::now();
        control.ask(&Request::Watch(order)).await?;
        let until = Instant::now() + give_up + LAG;
        let begun = self.see(Phase::Begun, until, &mut Noted::default()).await?;
        let (from, echo) = self.type_keys(day, &keys, begun).await?;
        let mut ended = self.see(Phase::Ended, until, &mut noted).await?;
        let answer = if operation.still {
            let (last, answer) = self.follow(ended, until, &mut noted.changes).await?;
            ended = last;
            answer
        } else {
            let answer = self.answer(ANSWER).await?;
            answer.ok_or_else(|| Fault::Frozen("the session does not answer".into()))?
        };
        if let Ending::Failed(why) = answer.ending {
            return Err(Fault::Session(why));
        }
        let Noted { changes, video } = noted;
        let no_frame =
            || Fault::Picture("no frame of the video was seen: is it shown pixel for pixel?".into());
        let (end, video) = match video {
            None => (ended, None),
            Some(watched) => {
                watched.result(ended).map(|(first, seen)| (first, Some(seen))).ok_or_else(no_frame)?
            }
        };
        let times = Times {
            latency_ns: between(from, end),
            inside_ns: Some(answer.inside_ns),
            around_ns: Some(between(if keys.chords.is_empty() { asked } else { from }, ended)),
            video,
            ..Times::default()
        };
        Ok(Timed { times, echo, from, changes })
    }

    /// Types; returns when the last key was sent, and how long the first of a text took to be seen. Without keys that is when the
    /// operation was seen to begin.
    pub(crate) async fn type_keys(
        &mut self,
        day: &Day,
        keys: &Keys,
        begun: Instant,
    ) -> Result<(Instant, Option<u64>), Fault> {
        let (mut from, mut echo) = (begun, None);
        for (at, chord) in keys.chords.iter().enumerate() {
            self.screen.press(chord);
            from = Instant::now();
            self.screen.send().await?;
            if at + 1 == keys.chords.len() {
                break;
            }
            let next = from + Duration::from_nanos(day.key_pause);
            if at == 0 && keys.are_text {
                echo = Some(self.echo(from).await?);
            }
            while let Some(seen) = self.screen.next(next).await? {
                self.last = seen.at;
            }
        }
        Ok((from, echo))
    }

    /// How long a key takes to be seen, in nanoseconds. Those that follow it cannot be told apart where the link or the desktop takes
    /// longer than the pause between two keys.
    async fn echo(&mut self, key: Instant) -> Result<u64, Fault> {
        let until = key + ECHO;
        while let Some(seen) = self.screen.next(until).await? {
            self.last = seen.at;
            if seen.has_changed() {
                return Ok(between(key, seen.at));
            }
        }
        Ok(between(key, until))
    }

    /// Waits until the picture shows this phase of the operation; notes what changes meanwhile. The beginning of what is over within a
    /// frame is never seen: its order was sent when it began at the earliest.
    async fn see(&mut self, phase: Phase, until: Instant, noted: &mut Noted) -> Result<Instant, Fault> {
        let asked = self.last;
        noted.look(self.screen.frame(), asked);
        loop {
            let ours = |marker: &Marker| marker.sequence == self.sequence;
            match self.screen.marker().ok().filter(ours).map(|marker| marker.phase) {
                Some(now) if now == phase => return Ok(self.last),
                Some(Phase::Ended) if phase == Phase::Begun => return Ok(asked),
                Some(Phase::Failed) => return Err(self.missed(ANSWER).await?),
                _ => {}
            }
            let Some(seen) = self.screen.next(until).await? else {
                return Err(self.missed(Duration::from_millis(1)).await?);
            };
            self.last = seen.at;
            if seen.has_changed() {
                noted.changes.add(seen.at);
                noted.look(self.screen.frame(), seen.at);
            }
        }
    }

    /// Why the picture has not told in time.
    pub(crate) async fn missed(&mut self, wait: Duration) -> Result<Fault, Fault> {
        let marker = self.screen.marker();
        let answer = self.answer(wait).await?;
        Ok(match (answer.map(|answer| answer.ending), marker) {
            (Some(Ending::Failed(why)), _) => Fault::Session(why),
            (Some(Ending::Done), Err(why)) => Fault::Marker(why),
            (Some(Ending::Done), Ok(_)) => Fault::Frozen("the picture stands still".into()),
            (None, Err(why)) => Fault::Frozen(format!("the session does not answer, and {why}")),
            (None, Ok(_)) => {
                Fault::Frozen("the session does not answer, and the picture stands still".into())
            }
        })
    }

    /// Looks on for as long as the picture changes, but not beyond `until`; then the times are complete.
    pub(crate) async fn settle(&mut self, timed: Timed, until: Instant) -> Result<Times, Fault> {
        let Timed { mut times, from, mut changes, .. } = timed;
        // Where nobody is inside, it was looked at until then already. A video's own changes end with it.
        let looks = self.control.is_some() && times.video.is_none();
        let begun = Instant::now();
        let still_at = |changes: &Changes, screen: &Screen| {
            screen.still_at(changes.last.unwrap_or(from).max(begun - STILL)).min(until)
        };
        while looks && Instant::now() < still_at(&changes, &self.screen) {
            let wait = still_at(&changes, &self.screen);
            if let Some(seen) = self.screen.next(wait).await?.filter(PictureChange::has_changed) {
                changes.add(seen.at);
            }
        }
        times.first_change_ns = changes.first.map(|at| between(from, at));
        times.last_change_ns = changes.last.filter(|_| times.video.is_none()).map(|at| between(from, at));
        Ok(times)
    }

    /// Looks at the picture until then.
    pub(crate) async fn think(&mut self, until: Instant) -> Result<(), Fault> {
        while self.screen.next(until).await?.is_some() {}
        Ok(())
    }

    /// What the session says of the operation, if it does so in time.
    pub(crate) async fn answer(&mut self, wait: Duration) -> Result<Option<Answer>, Fault> {
        match &mut self.control {
            Some(control) => control.answer(self.sequence, Instant::now() + wait).await,
            None => Ok(None),
        }
    }

    /// Has all programs of the session end, so that the user can begin anew.
    pub(crate) async fn clear(&mut self) -> Result<(), Fault> {
        self.sequence = Marker::sequence_after(self.sequence);
        let Some(control) = &mut self.control else { return Ok(()) };
        control.ask(&Request::Clear { sequence: self.sequence }).await?;
        let answer = self.answer(ANSWER).await?;
        answer.map(drop).ok_or_else(|| Fault::Frozen("the session does not answer".into()))
    }

    /// Whether there is a marker at all, where somebody inside is to draw one.
    pub(crate) async fn find_marker(&mut self) -> Result<(), Fault> {
        if self.control.is_none() {
            return Ok(());
        }
        let until = Instant::now() + LAG;
        while let Err(why) = self.screen.marker() {
            if self.screen.next(until).await?.is_none() {
                return Err(Fault::Frozen(match why {
                    Unreadable::Absent => {
                        format!("{why}: does the program that draws it run in this session?")
                    }
                    other => other.to_string(),
                }));
            }
        }
        Ok(())
    }
}

fn order(
    application: &Application,
    operation: &Operation,
    number: u8,
    sequence: u16,
    chords: &[Chord],
    give_up: Duration,
) -> Order {
    let keys: usize = chords.iter().map(|chord| 1 + chord.held.len()).sum();
    Order {
        sequence,
        operation: number,
        window: application.window.clone(),
        start: if operation.act == Act::Start { application.program.clone() } else { Vec::new() },
        activate: operation.act == Act::Activate,
        keys: u32::try_from(keys).unwrap_or(u32::MAX),
        until: operation.until.clone(),
        still: operation.still,
        give_up_ns: u64::try_from(give_up.as_nanos()).unwrap_or(u64::MAX),
    }
}

pub(crate) fn between(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.saturating_duration_since(from).as_nanos()).unwrap_or(u64::MAX)
}

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
