//! What a process writes, a guest's console among others: the last of it is kept, for errors.

use std::io::{ErrorKind, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How much is kept, in bytes. A guest that prints without end costs no more.
const KEPT_BYTES: usize = 64 << 10;
/// How many lines an error carries.
const TAIL_LINES: usize = 20;
/// How long a line in an error may be, in characters.
const TAIL_WIDTH: usize = 300;

/// The last output of a process, collected by a thread of its own.
#[derive(Debug, Clone, Default)]
pub struct Console {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    kept: Vec<u8>,
    total_bytes: u64,
    ended: bool,
}

impl Console {
    /// Collects what comes from `source` until it ends.
    ///
    /// # Errors
    /// No thread could be started.
    pub fn collect(mut source: impl Read + Send + 'static) -> std::io::Result<Self> {
        let console = Self::default();
        let collector = console.clone();
        thread::Builder::new().name("console".into()).spawn(move || {
            let mut buffer = [0; 4096];
            loop {
                match source.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(count) => collector.append(&buffer[..count]),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
            collector.lock().ended = true;
        })?;
        Ok(console)
    }

    /// The last lines, without control characters.
    #[must_use]
    pub fn tail(&self) -> Vec<String> {
        let state = self.lock();
        let text = String::from_utf8_lossy(&state.kept);
        let mut lines: Vec<String> =
            text.lines().rev().map(printable).filter(|l| !l.is_empty()).take(TAIL_LINES).collect();
        lines.reverse();
        lines
    }

    /// All that is kept, as it was written.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.lock().kept).into_owned()
    }

    /// How much was written in all, in bytes.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.lock().total_bytes
    }

    /// Whether the output holds `text`.
    #[must_use]
    pub fn contains(&self, text: &str) -> bool {
        self.lock().kept.windows(text.len().max(1)).any(|window| window == text.as_bytes())
    }

    /// The last line that holds `text`, of all that is kept, without control characters.
    #[must_use]
    pub fn line_with(&self, text: &str) -> Option<String> {
        self.text().lines().rfind(|line| line.contains(text)).map(printable)
    }

    /// Waits at most `limit` for the last output of a process that has ended.
    pub fn settle(&self, limit: Duration) {
        let deadline = Instant::now() + limit;
        while !self.lock().ended && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn append(&self, bytes: &[u8]) {
        let mut state = self.lock();
        state.total_bytes += bytes.len() as u64;
        state.kept.extend_from_slice(bytes);
        let excess = state.kept.len().saturating_sub(KEPT_BYTES);
        state.kept.drain(..excess);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A guest may print escape sequences; the user's terminal shall not obey them.
fn printable(line: &str) -> String {
    let text: String = line.chars().filter(|character| !character.is_control()).take(TAIL_WIDTH).collect();
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    fn collected(bytes: &[u8]) -> Console {
        let console = Console::collect(Cursor::new(bytes.to_vec())).unwrap();
        console.settle(Duration::from_secs(5));
        console
    }

    #[test]
    fn the_last_lines_are_kept() {
        let text: String = (0..100_000).map(|number| format!("line {number}\r\n")).collect();
        let console = collected(text.as_bytes());
        let tail = console.tail();
        assert_eq!((tail.len(), tail[0].as_str(), tail[19].as_str()), (20, "line 99980", "line 99999"));
        assert_eq!(console.line_with("99998").as_deref(), Some("line 99998"));
        assert!(console.contains("line 99999") && !console.contains("line 1\r"));
        assert!(console.text().len() <= KEPT_BYTES);
        assert_eq!(console.total_bytes(), text.len() as u64);
    }

    #[test]
    fn escape_sequences_lose_their_power() {
        assert_eq!(collected(b"\x1b[2Jgone\x07\n").tail(), ["[2Jgone"]);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            let tail = collected(&bytes).tail();
            prop_assert!(tail.len() <= TAIL_LINES);
            let clean = |line: &String| line.chars().all(|c| !c.is_control()) && line.chars().count() <= TAIL_WIDTH;
            prop_assert!(tail.iter().all(clean));
        }
    }
}
