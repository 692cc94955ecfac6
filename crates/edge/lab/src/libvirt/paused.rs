//! Notices a domain that does not go on, although nobody here has it wait.

use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use virtbench_libvirt::Domain;

/// How often the domain is looked at: a call to libvirt's server, which costs the guest nothing.
const INTERVAL: Duration = Duration::from_secs(1);

/// Whether a domain waits because this process wants it to.
#[derive(Debug, Clone, Default)]
pub(super) struct Waits(Arc<AtomicBool>);

impl Waits {
    pub(super) fn get(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    pub(super) fn set(&self, waits: bool) {
        self.0.store(waits, Ordering::SeqCst);
    }
}

/// A thread that hangs up on the agent of a domain once that is paused by somebody else, QEMU among others, until this value is dropped.
#[derive(Debug)]
pub(super) struct PauseWatch {
    _stop: mpsc::Sender<()>,
}

impl PauseWatch {
    /// # Errors
    /// No thread can be started.
    pub(super) fn begin(domain: Domain, waits: Waits, agent: UnixStream) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel::<()>();
        thread::Builder::new().name("paused".into()).spawn(move || {
            let mut seen = 0;
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                seen = if is_paused_by_others(&domain, &waits) { seen + 1 } else { 0 };
                // Once may be a look between this process's own word and the domain's answer.
                if seen >= 2 {
                    let _ = agent.shutdown(Shutdown::Both);
                    return;
                }
            }
        })?;
        Ok(Self { _stop: stop })
    }
}

/// Whether a domain waits although this process wants it to go on.
pub(super) fn is_paused_by_others(domain: &Domain, waits: &Waits) -> bool {
    !waits.get() && domain.runs_and_waits() == Ok((true, true)) && !waits.get()
}
