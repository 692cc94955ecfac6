//! One operation: begun, typed, seen to end.

use std::time::Duration;

use tokio::time::Instant;
use virtbench_desktops::{
    Act, Answer, Application, Day, Ending, Marker, Operation, Order, Phase, Request, STILL, Unreadable, Until,
};
use virtbench_rfb::{Chord, Frame, parse_chord, type_text};

use crate::control::Control;
use crate::fault::Fault;
use crate::outcome::Times;
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
