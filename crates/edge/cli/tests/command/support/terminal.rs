//! A terminal, as a terminal emulator sees it.

use std::fs::File;
use std::io::Read;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

use super::{virtbench, wait_for};

const ROWS: u16 = 24;
/// So wide that no note wraps, of which half could scroll away: each names the other measurements on this host.
const COLUMNS: u16 = 1000;

/// A terminal with what was drawn on it.
pub struct Terminal {
    /// Kept open: the last to close it would hang the terminal up.
    pub slave: File,
    pub drawn: Arc<Mutex<vt100::Parser>>,
    /// Every byte that was written to it.
    said: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    pub fn new() -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let path = ptsname(&master, Vec::new()).unwrap();
        tcsetwinsize(&master, Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let slave = File::options().read(true).write(true).open(path.to_str().unwrap()).unwrap();
        let drawn = Arc::new(Mutex::new(vt100::Parser::new(
            ROWS.try_into().unwrap(),
            COLUMNS.try_into().unwrap(),
            0,
        )));
        let screen = Arc::clone(&drawn);
        let said = Arc::new(Mutex::new(Vec::new()));
        let bytes_said = Arc::clone(&said);
        // Ends when the last slave is closed, with an error that stands for the end.
        thread::spawn(move || {
            let mut master = File::from(master);
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = master.read(&mut bytes) {
                bytes_said.lock().unwrap().extend_from_slice(&bytes[..read]);
                screen.lock().unwrap().process(&bytes[..read]);
            }
        });
        Self { slave, drawn, said }
    }

    pub fn start(&self, arguments: &[&str]) -> Child {
        virtbench().args(arguments).stderr(Stdio::from(self.slave.try_clone().unwrap())).spawn().unwrap()
    }

    /// All that was ever written to it, with what moves the cursor.
    pub fn said(&self) -> String {
        String::from_utf8_lossy(&self.said.lock().unwrap()).into_owned()
    }

    pub fn text(&self) -> String {
        self.drawn.lock().unwrap().screen().contents()
    }

    pub fn wait_for(&self, word: &str) -> String {
        wait_for(word, || Some(self.text()).filter(|text| text.contains(word)))
    }

    /// What a program could leave behind: settings, a hidden cursor, another screen, colours.
    pub fn state(&self) -> (String, bool, bool, vt100::Color) {
        let termios: Termios = tcgetattr(&self.slave).unwrap();
        let drawn = self.drawn.lock().unwrap();
        let screen = drawn.screen();
        (format!("{termios:?}"), screen.hide_cursor(), screen.alternate_screen(), screen.fgcolor())
    }
}
