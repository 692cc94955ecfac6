//! Notices that a controller has fallen silent.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::protocol::SILENCE_LIMIT;

/// How often the silence is looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Whether the controller was heard since somebody looked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heard(Arc<AtomicBool>);

impl Heard {
    /// Ends the agent by `end` once the controller has been silent for [`SILENCE_LIMIT`]. Looks are counted, not time: a
    /// guest that was made to wait, or a clock that was set, is no silence.
    pub(crate) fn watch(&self, end: impl FnOnce(&str) + Send + 'static) {
        let heard = self.clone();
        thread::spawn(move || {
            let (mut silent, limit) = (Duration::ZERO, SILENCE_LIMIT);
            while silent <= limit {
                thread::sleep(LOOK_INTERVAL);
                let was_heard = heard.0.swap(false, Ordering::Relaxed);
                silent = if was_heard { Duration::ZERO } else { silent + LOOK_INTERVAL };
            }
            end(&format!("nothing was heard of the controller for {limit:?}"));
        });
    }
}

/// A reader that notes when something came.
pub(crate) struct Watched<R> {
    pub(crate) reader: R,
    pub(crate) heard: Heard,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.heard.0.store(true, Ordering::Relaxed);
        Ok(count)
    }
}
