//! A time limit for calls that have none.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::error::LibvirtError;

/// Makes a call on a thread of its own and waits for it at most so long; one that is late is left to itself.
pub(crate) fn within<T: Send + 'static>(
    limit: Duration,
    what: &'static str,
    call: impl FnOnce() -> Result<T, LibvirtError> + Send + 'static,
) -> Result<T, LibvirtError> {
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new().name("libvirt-call".into()).spawn(move || {
        // Nobody listens any more where it was late.
        let _ = sender.send(call());
    })?;
    receiver.recv_timeout(limit).unwrap_or(Err(LibvirtError::Late { what, limit }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_never_returns_is_left() {
        let (hold, held) = mpsc::channel::<()>();
        let late = within(Duration::from_millis(20), "answer", move || Ok(held.recv().is_ok()));
        assert_eq!(late, Err(LibvirtError::Late { what: "answer", limit: Duration::from_millis(20) }));
        drop(hold);
        assert_eq!(within(Duration::from_secs(20), "answer", || Ok(7)), Ok(7));
    }
}
