//! The X server: what windows there are, what they are asked and what is heard of them, and the window with the marker.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::thread;
use std::time::{Duration, Instant};

use virtbench_desktops::{HEIGHT, Marker, Phase, WIDTH, level};
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::damage::{ConnectionExt as _, ReportLevel};
use x11rb::protocol::xinput::{ConnectionExt as _, Device, EventMask as InputMask, XIEventMask};
use x11rb::protocol::xproto::{
    AtomEnum, ChangeWindowAttributesAux, ClientMessageEvent, ConfigureWindowAux, ConnectionExt as _,
    CreateGCAux, CreateWindowAux, EventMask, Gcontext, ImageFormat, PropMode, Screen, StackMode, Window,
    WindowClass,
};
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;

use crate::error::SessionError;

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

x11rb::atom_manager! {
    /// Their numbers at this X server.
    pub(crate) Atoms: AtomsCookie {
        WM_PROTOCOLS, WM_STATE, _NET_WM_PING, _NET_CLIENT_LIST, _NET_WM_NAME, _NET_SUPPORTING_WM_CHECK, _NET_WM_STATE,
        _NET_WM_STATE_HIDDEN, _NET_ACTIVE_WINDOW, _NET_WM_WINDOW_TYPE, _NET_WM_WINDOW_TYPE_DOCK, _NET_WM_STRUT,
        _NET_WM_STRUT_PARTIAL,
    }
}

/// The window in the lower right corner that shows the marker. Window managers leave it alone, and keep applications off it.
#[derive(Debug)]
pub(crate) struct MarkerWindow {
    window: Window,
    context: Gcontext,
    depth: u8,
    shown: Marker,
}

impl MarkerWindow {
    pub(crate) fn new(
        connection: &RustConnection,
        screen: &Screen,
        atoms: &Atoms,
    ) -> Result<Self, SessionError> {
        keep_free(connection, screen, atoms)?;
        let (window, context) = (connection.generate_id()?, connection.generate_id()?);
        let values = CreateWindowAux::new()
            .override_redirect(1)
            .event_mask(EventMask::EXPOSURE | EventMask::VISIBILITY_CHANGE);
        let place = |size: u16, part: u16| i16::try_from(size.saturating_sub(part)).unwrap_or(0);
        connection.create_window(
            screen.root_depth,
            window,
            screen.root,
            place(screen.width_in_pixels, WIDTH),
            place(screen.height_in_pixels, HEIGHT),
            WIDTH,
            HEIGHT,
            0,
            WindowClass::INPUT_OUTPUT,
            screen.root_visual,
            &values,
        )?;
        connection.create_gc(context, window, &CreateGCAux::new())?;
        connection.map_window(window)?;
        let shown = Marker { sequence: 0, operation: 0, phase: Phase::Idle, revision: 0 };
        let marker = Self { window, context, depth: screen.root_depth, shown };
        marker.draw(connection)?;
        Ok(marker)
    }

    pub(crate) fn is(&self, window: Window) -> bool {
        self.window == window
    }

    pub(crate) fn show(&mut self, connection: &RustConnection, marker: Marker) -> Result<(), SessionError> {
        self.shown = marker;
        self.raise(connection)?;
        self.draw(connection)
    }

    /// Back above what was put over it.
    pub(crate) fn raise(&self, connection: &RustConnection) -> Result<(), SessionError> {
        connection.configure_window(self.window, &ConfigureWindowAux::new().stack_mode(StackMode::ABOVE))?;
        Ok(())
    }

    /// In one request, so that no update of the picture has half of it.
    pub(crate) fn draw(&self, connection: &RustConnection) -> Result<(), SessionError> {
        let places = (0..HEIGHT).flat_map(|y| (0..WIDTH).map(move |x| (x, y)));
        let pixels: Vec<u8> = places
            .flat_map(|(x, y)| {
                let shade = level(self.shown, x, y);
                [shade, shade, shade, 0]
            })
            .collect();
        connection.put_image(
            ImageFormat::Z_PIXMAP,
            self.window,
            self.context,
            WIDTH,
            HEIGHT,
            0,
            0,
            0,
            self.depth,
            &pixels,
        )?;
        connection.flush()?;
        Ok(())
    }
}

/// A window of a dock's kind, one pixel large, for which window managers keep the lower edge of the screen free.
fn keep_free(connection: &RustConnection, screen: &Screen, atoms: &Atoms) -> Result<(), SessionError> {
    let window = connection.generate_id()?;
    let bottom = i16::try_from(screen.height_in_pixels.saturating_sub(1)).unwrap_or(0);
    connection.create_window(
        screen.root_depth,
        window,
        screen.root,
        0,
        bottom,
        1,
        1,
        0,
        WindowClass::INPUT_OUTPUT,
        screen.root_visual,
        &CreateWindowAux::new(),
    )?;
    let kind = [atoms._NET_WM_WINDOW_TYPE_DOCK];
    connection.change_property32(
        PropMode::REPLACE,
        window,
        atoms._NET_WM_WINDOW_TYPE,
        AtomEnum::ATOM,
        &kind,
    )?;
    // Left, right, top, bottom; then from where to where, for the bottom in the last two.
    let right = u32::from(screen.width_in_pixels.saturating_sub(1));
    let edges = [0, 0, 0, u32::from(HEIGHT), 0, 0, 0, 0, 0, 0, 0, right];
    for (atom, edges) in [(atoms._NET_WM_STRUT, &edges[..4]), (atoms._NET_WM_STRUT_PARTIAL, &edges[..])] {
        connection.change_property32(PropMode::REPLACE, window, atom, AtomEnum::CARDINAL, edges)?;
    }
    // What takes no keys. The first flag says that the second value holds.
    let hints = [1, 0, 0, 0, 0, 0, 0, 0, 0];
    connection.change_property32(
        PropMode::REPLACE,
        window,
        AtomEnum::WM_HINTS,
        AtomEnum::WM_HINTS,
        &hints,
    )?;
    connection.map_window(window)?;
    Ok(())
}
