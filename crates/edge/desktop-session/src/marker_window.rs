//! The window in the lower right corner that shows the marker.

use virtbench_desktops::{HEIGHT, Marker, Phase, WIDTH, level};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{
    AtomEnum, ConfigureWindowAux, ConnectionExt as _, CreateGCAux, CreateWindowAux, EventMask, Gcontext,
    ImageFormat, PropMode, Screen, StackMode, Window, WindowClass,
};
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;

use crate::atoms::Atoms;
use crate::error::SessionError;

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
