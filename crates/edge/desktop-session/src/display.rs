//! The X server: what windows there are, what they are asked and what is heard of them.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::thread;
use std::time::{Duration, Instant};

use virtbench_desktops::Marker;
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::damage::{ConnectionExt as _, ReportLevel};
use x11rb::protocol::xinput::{ConnectionExt as _, Device, EventMask as InputMask, XIEventMask};
use x11rb::protocol::xproto::{
    AtomEnum, ChangeWindowAttributesAux, ClientMessageEvent, ConnectionExt as _, EventMask, Window,
};
use x11rb::rust_connection::RustConnection;

use crate::atoms::Atoms;
use crate::error::SessionError;
use crate::marker_window::MarkerWindow;

const CONNECT_LIMIT: Duration = Duration::from_secs(30);
const MANAGER_LIMIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);
/// `WM_STATE` of a window that is put away (ICCCM, section 4.1.3.1).
const ICONIC: u32 = 3;
/// Words of a property that are read.
const PROPERTY_WORDS: u32 = 1024;

/// What was heard of the X server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// A key was pressed.
    Key,
    /// This width and height of a watched window were drawn on, in pixels.
    Drawn([u16; 2]),
    /// A window has answered the question of this number.
    Answered(u32),
    /// Anything else, after which windows may be others.
    Other,
}

/// The connection to the X server.
pub(crate) struct Display {
    connection: RustConnection,
    root: Window,
    atoms: Atoms,
    marker: MarkerWindow,
    watched: BTreeMap<Window, u32>,
    questions: u32,
}

impl Display {
    /// Connects, and waits until windows are managed.
    pub(crate) fn open(name: &str) -> Result<Self, SessionError> {
        let begun = Instant::now();
        let (connection, screen) = loop {
            match RustConnection::connect(Some(name)) {
                Ok(connected) => break connected,
                Err(source) if begun.elapsed() > CONNECT_LIMIT => {
                    return Err(SessionError::NoDisplay { display: name.to_owned(), source });
                }
                Err(_) => thread::sleep(PAUSE),
            }
        };
        let screen =
            connection.setup().roots.get(screen).cloned().ok_or(SessionError::Extension("a screen"))?;
        let atoms = Atoms::new(&connection)?.reply()?;
        let root = screen.root;
        wait_for_manager(&connection, root, &atoms)?;
        listen(&connection, root)?;
        let marker = MarkerWindow::new(&connection, &screen, &atoms)?;
        Ok(Self { connection, root, atoms, marker, watched: BTreeMap::new(), questions: 0 })
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.connection.stream().as_fd()
    }

    pub(crate) fn show(&mut self, marker: Marker) -> Result<(), SessionError> {
        self.marker.show(&self.connection, marker)
    }

    /// What has happened since it was asked last; nothing if that is all.
    pub(crate) fn next(&mut self) -> Result<Option<Heard>, SessionError> {
        let Some(event) = self.connection.poll_for_event()? else { return Ok(None) };
        Ok(Some(match event {
            Event::XinputRawKeyPress(_) => Heard::Key,
            Event::DamageNotify(damage) => Heard::Drawn([damage.area.width, damage.area.height]),
            Event::ClientMessage(message) if message.type_ == self.atoms.WM_PROTOCOLS => {
                match message.data.as_data32() {
                    [protocol, number, ..] if protocol == self.atoms._NET_WM_PING => Heard::Answered(number),
                    _ => Heard::Other,
                }
            }
            Event::Expose(expose) if self.marker.is(expose.window) => {
                self.marker.draw(&self.connection)?;
                Heard::Other
            }
            Event::VisibilityNotify(seen) if self.marker.is(seen.window) => {
                self.marker.raise(&self.connection)?;
                self.marker.draw(&self.connection)?;
                Heard::Other
            }
            _ => Heard::Other,
        }))
    }

    /// The windows of a class that are managed, in the order of their appearance.
    pub(crate) fn windows(&self, class: &str) -> Result<Vec<Window>, SessionError> {
        let all = self.numbers(self.root, self.atoms._NET_CLIENT_LIST)?;
        let mut found = Vec::new();
        for window in all {
            if self.has_class(window, class)? {
                found.push(window);
            }
        }
        Ok(found)
    }

    /// A window's title; empty where it has none, or has gone.
    pub(crate) fn title(&self, window: Window) -> Result<String, SessionError> {
        let name = self.atoms._NET_WM_NAME;
        let cookie = self.connection.get_property(false, window, name, AtomEnum::ANY, 0, PROPERTY_WORDS)?;
        let value = cookie.reply().map(|reply| reply.value).unwrap_or_default();
        Ok(String::from_utf8_lossy(&value).into_owned())
    }

    fn has_class(&self, window: Window, class: &str) -> Result<bool, SessionError> {
        let cookie = self.connection.get_property(
            false,
            window,
            AtomEnum::WM_CLASS,
            AtomEnum::STRING,
            0,
            PROPERTY_WORDS,
        )?;
        // A window that has gone meanwhile has no class.
        let Ok(reply) = cookie.reply() else { return Ok(false) };
        let parts = reply.value.split(|byte| *byte == 0);
        Ok(parts.map(String::from_utf8_lossy).any(|part| part.eq_ignore_ascii_case(class)))
    }

    /// Whether a window is put away.
    pub(crate) fn is_hidden(&self, window: Window) -> Result<bool, SessionError> {
        let states = self.numbers(window, self.atoms._NET_WM_STATE)?;
        let state = self.numbers(window, self.atoms.WM_STATE)?;
        Ok(states.contains(&self.atoms._NET_WM_STATE_HIDDEN) || state.first() == Some(&ICONIC))
    }

    /// Hears from now on whenever something is drawn on a window.
    pub(crate) fn watch(&mut self, window: Window) -> Result<(), SessionError> {
        if !self.watched.contains_key(&window) {
            let damage = self.connection.generate_id()?;
            self.connection.damage_create(damage, window, ReportLevel::RAW_RECTANGLES)?;
            self.connection.flush()?;
            self.watched.insert(window, damage);
        }
        Ok(())
    }

    /// Hears of no window any more.
    pub(crate) fn watch_none(&mut self) -> Result<(), SessionError> {
        for damage in std::mem::take(&mut self.watched).into_values() {
            // Refused if its window has gone: then it has gone as well.
            self.connection.damage_destroy(damage)?;
        }
        self.connection.flush()?;
        Ok(())
    }

    /// Asks a window whether it has worked through what came before; returns the question's number, or nothing for a window that
    /// does not answer such questions.
    pub(crate) fn ask(&mut self, window: Window) -> Result<Option<u32>, SessionError> {
        if !self.numbers(window, self.atoms.WM_PROTOCOLS)?.contains(&self.atoms._NET_WM_PING) {
            return Ok(None);
        }
        self.questions = self.questions.wrapping_add(1).max(1);
        let data = [self.atoms._NET_WM_PING, self.questions, window, 0, 0];
        let message = ClientMessageEvent::new(32, window, self.atoms.WM_PROTOCOLS, data);
        self.connection.send_event(false, window, EventMask::NO_EVENT, message)?;
        self.connection.flush()?;
        Ok(Some(self.questions))
    }

    /// Has the window manager bring a window to the front, as a pager asks for it.
    pub(crate) fn activate(&self, window: Window) -> Result<(), SessionError> {
        let data = [2, 0, 0, 0, 0];
        let message = ClientMessageEvent::new(32, window, self.atoms._NET_ACTIVE_WINDOW, data);
        let to = EventMask::SUBSTRUCTURE_NOTIFY | EventMask::SUBSTRUCTURE_REDIRECT;
        self.connection.send_event(false, self.root, to, message)?;
        self.connection.flush()?;
        Ok(())
    }

    /// A property of numbers; none where the window or the property is not there.
    fn numbers(&self, window: Window, property: u32) -> Result<Vec<u32>, SessionError> {
        let cookie =
            self.connection.get_property(false, window, property, AtomEnum::ANY, 0, PROPERTY_WORDS)?;
        Ok(cookie.reply().ok().and_then(|reply| Some(reply.value32()?.collect())).unwrap_or_default())
    }
}

fn wait_for_manager(connection: &RustConnection, root: Window, atoms: &Atoms) -> Result<(), SessionError> {
    let begun = Instant::now();
    loop {
        let check = atoms._NET_SUPPORTING_WM_CHECK;
        let reply = connection.get_property(false, root, check, AtomEnum::WINDOW, 0, 1)?.reply()?;
        if reply.value_len > 0 {
            return Ok(());
        }
        if begun.elapsed() > MANAGER_LIMIT {
            return Err(SessionError::NoManager(MANAGER_LIMIT.as_secs()));
        }
        thread::sleep(PAUSE);
    }
}

/// Windows that come and go, answers, and keys wherever they go to.
fn listen(connection: &RustConnection, root: Window) -> Result<(), SessionError> {
    let mask = EventMask::SUBSTRUCTURE_NOTIFY | EventMask::PROPERTY_CHANGE;
    connection.change_window_attributes(root, &ChangeWindowAttributesAux::new().event_mask(mask))?;
    let input = connection.xinput_xi_query_version(2, 2)?.reply();
    input.map_err(|_| SessionError::Extension("the extension XInput 2"))?;
    let keys = InputMask { deviceid: Device::ALL_MASTER.into(), mask: vec![XIEventMask::RAW_KEY_PRESS] };
    connection.xinput_xi_select_events(root, &[keys])?;
    let damage = connection.damage_query_version(1, 1)?.reply();
    damage.map_err(|_| SessionError::Extension("the extension DAMAGE"))?;
    Ok(())
}
