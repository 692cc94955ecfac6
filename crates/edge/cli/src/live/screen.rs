//! Lines of text that stay in place on a terminal; remarks that come meanwhile are written above them.
//!
//! Each change is one write that ends with the cursor below the lines. No mode of the terminal is
//! changed and the cursor is not hidden: there is nothing to restore, whatever ends the process.

use console::Term;

use crate::say;

/// Lines at the bottom of a terminal.
pub struct Screen {
    term: Term,
    /// Characters of each line that is there now.
    widths: Vec<usize>,
}

impl Screen {
    /// Nothing yet, on stderr; `None` if that is no terminal.
    pub fn stderr() -> Option<Self> {
        let term = Term::stderr();
        term.is_term().then(|| {
            say::hold();
            Self { term, widths: Vec::new() }
        })
    }

    /// How much can be drawn, in characters and lines: less than the terminal has by one of each, so
    /// that nothing wraps or scrolls away.
    pub fn size(&self) -> (usize, usize) {
        let (rows, columns) = self.term.size();
        let some = |size: u16, default: usize| if size == 0 { default } else { usize::from(size) };
        (some(columns, 80).saturating_sub(1), some(rows, 24).saturating_sub(1))
    }

    /// Replaces the lines. What cannot be written is lost: a load does not end for that.
    pub fn draw(&mut self, lines: &[String]) {
        let (width, height) = self.size();
        let lines: Vec<String> =
            lines.iter().take(height).map(|line| line.chars().take(width).collect()).collect();
        let mut text = self.back() + "\x1b[J";
        for remark in say::waiting() {
            text += &format!("{remark}\n");
        }
        for line in &lines {
            text += &format!("{line}\n");
        }
        let _ = self.term.write_str(&text);
        self.widths = lines.iter().map(|line| line.chars().count()).collect();
    }

    /// Removes the lines.
    pub fn clear(&mut self) {
        let _ = self.term.write_str(&(self.back() + "\x1b[J"));
        self.widths.clear();
    }

    /// What moves the cursor to the first of the lines. A terminal that has become narrower has wrapped them.
    fn back(&self) -> String {
        let columns = self.size().0 + 1;
        match self.widths.iter().map(|width| width.div_ceil(columns).max(1)).sum::<usize>() {
            0 => "\r".into(),
            up => format!("\r\x1b[{up}A"),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        say::release();
    }
}
