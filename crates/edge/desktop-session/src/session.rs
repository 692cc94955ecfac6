//! The session's loop.

use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use virtbench_desktops::{Answer, Ending, Marker, Order, Phase, Request};

use crate::controller::Controller;
use crate::display::Display;
use crate::error::SessionError;
use crate::watch::{EndConditions, Look, Started};

/// How often files and processes are looked at while an operation goes on.
const LOOK: Duration = Duration::from_millis(5);

struct Session {
    name: String,
    display: Display,
    controller: Controller,
    started: Started,
    watch: Option<EndConditions>,
}

/// Watches the session of `display` (such as `:1`) for the controller that connects to `port`, until the X server ends.
///
/// # Errors
/// There is no display, no window manager, or no port; or the X server has ended.
pub fn run(display: &str, port: u16) -> Result<(), SessionError> {
    // The port is there once everything else is: by it the session is known to be ready.
    let connected = Display::open(display)?;
    let controller = Controller::new(port).map_err(|source| SessionError::Port { port, source })?;
    let mut session = Session {
        name: display.to_owned(),
        display: connected,
        controller,
        started: Started::default(),
        watch: None,
    };
    loop {
        session.wait()?;
        session.turn()?;
    }
}

impl Session {
    fn wait(&self) -> Result<(), SessionError> {
        let descriptors = std::iter::once(self.display.descriptor()).chain(self.controller.descriptors());
        let mut waited: Vec<PollFd<'_>> =
            descriptors.map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN)).collect();
        let look = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK.subsec_nanos()) };
        match poll(&mut waited, self.watch.as_ref().map(|_| &look)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(SessionError::Wait(error.into())),
        }
    }

    fn hear(&mut self) -> Result<(), SessionError> {
        while let Some(heard) = self.display.next()? {
            if let Some(watch) = &mut self.watch {
                watch.hear(heard);
            }
        }
        Ok(())
    }

    fn turn(&mut self) -> Result<(), SessionError> {
        self.hear()?;
        while let Some(request) = self.controller.next() {
            match request {
                Request::Watch(order) => self.begin(order)?,
                Request::Clear { sequence } => self.clear(sequence)?,
            }
        }
        if !self.controller.is_there() && self.watch.is_some() {
            self.watch = None;
            self.display.watch_none()?;
        }
        let Some(watch) = &mut self.watch else { return self.hear() };
        match watch.look(&mut self.display, &mut self.started)? {
            Look::On => {}
            Look::Ended(revision) => {
                let Order { sequence, operation, .. } = watch.order;
                self.display.show(Marker { sequence, operation, phase: Phase::Ended, revision })?;
            }
            Look::Over(ended) => self.end(ended)?,
        }
        // What came along with answers of the server is here already, and would wake nobody.
        self.hear()
    }

    fn begin(&mut self, order: Order) -> Result<(), SessionError> {
        self.started.reap();
        self.display.watch_none()?;
        let watch = EndConditions::begin(order, &mut self.display)?;
        let Order { sequence, operation, .. } = watch.order;
        self.display.show(Marker { sequence, operation, phase: Phase::Begun, revision: 0 })?;
        let started = match watch.order.start.as_slice() {
            [] => Ok(()),
            words => self
                .started
                .start(words, &self.name)
                .map_err(|error| format!("{} cannot be started: {error}", words.join(" "))),
        };
        if watch.order.activate {
            for window in watch.before() {
                self.display.activate(*window)?;
            }
        }
        self.watch = Some(watch);
        started.or_else(|why| self.end(Err(why)))
    }

    /// Over, with this revision of its end; or failed.
    fn end(&mut self, ended: Result<u16, String>) -> Result<(), SessionError> {
        let Some(watch) = self.watch.take() else { return Ok(()) };
        let inside_ns = u64::try_from(watch.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let Order { sequence, operation, .. } = watch.order;
        let phase = if ended.is_ok() { Phase::Ended } else { Phase::Failed };
        let revision = *ended.as_ref().unwrap_or(&0);
        self.display.show(Marker { sequence, operation, phase, revision })?;
        let ending = ended.map_or_else(Ending::Failed, |_| Ending::Done);
        self.controller.answer(&Answer { sequence, ending, inside_ns, revision });
        self.display.watch_none()
    }

    fn clear(&mut self, sequence: u16) -> Result<(), SessionError> {
        self.watch = None;
        self.display.watch_none()?;
        self.started.end_all();
        self.controller.answer(&Answer { sequence, ending: Ending::Done, inside_ns: 0, revision: 0 });
        Ok(())
    }
}
