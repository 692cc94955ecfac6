//! Tells an agent from time to time that its controller still runs.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use virtbench_agent::protocol::Request;

use crate::connection::Sender;

/// How often; a fifth of what the agent bears.
const INTERVAL: Duration = Duration::from_secs(3);

/// A thread that says so until this value is dropped.
#[derive(Debug)]
pub(crate) struct Alive {
    _stop: mpsc::Sender<()>,
}

impl Alive {
    /// # Errors
    /// No thread can be started.
    pub(crate) fn begin(agent: Sender) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel::<()>();
        thread::Builder::new().name("alive".into()).spawn(move || {
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                // Who talks with the agent notices a broken connection as well, and says so.
                if agent.send(&Request::Alive).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { _stop: stop })
    }
}
