//! What libvirt says when it cannot do something.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use thiserror::Error;

/// The part of libvirt that speaks its protocol: `VIR_FROM_RPC`.
const RPC: i32 = 7;

/// What kind of failure, as far as it matters to who called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// There is no such domain.
    NoDomain,
    /// There is no such storage pool.
    NoPool,
    /// There is no such volume.
    NoVolume,
    /// Who asks is not let in, or not allowed to.
    Denied,
    /// Nobody is there, or the connection broke.
    Connection,
    /// This hypervisor does not do that.
    Unsupported,
    /// Any other.
    Other,
}

/// A call of libvirt's that failed.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
pub enum LibvirtError {
    /// The library is not here.
    #[error(
        "libvirt.so.0 is not on this machine: install libvirt0 (Debian, Ubuntu) or libvirt-libs (Fedora), or set \
         VIRTBENCH_LIBVIRT to its path ({why})"
    )]
    Missing {
        /// What the loader said.
        why: String,
    },
    /// This program can load no library.
    #[error(
        "this virtbench is linked statically and loads no library of libvirt's: `make install` builds one that does"
    )]
    Static,
    /// libvirt or the hypervisor refused.
    #[error("{message}")]
    Refused {
        /// The number of the error in libvirt's `virterror.h`.
        code: i32,
        /// The part of libvirt that says it, by its number there.
        part: i32,
        /// libvirt's own words.
        message: String,
    },
    /// It took too long.
    #[error("libvirt did not {what} within {} s", limit.as_secs())]
    Late {
        /// What it was to do.
        what: &'static str,
        /// How long it was waited for.
        limit: Duration,
    },
    /// What was to be sent could not be read, or no thread or descriptor was left.
    #[error("{0}")]
    Local(String),
    /// The waiting thread told it to stop.
    #[error("stopped")]
    Stopped,
}

impl LibvirtError {
    /// What kind of failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Refused { code, part, .. } => match code {
                42 => ErrorKind::NoDomain,
                49 => ErrorKind::NoPool,
                50 => ErrorKind::NoVolume,
                29 | 45 | 79 | 88 | 94 => ErrorKind::Denied,
                4 | 5 | 6 | 39 | 40 | 85 | 98 => ErrorKind::Connection,
                // Sockets that were closed are system errors and internal ones.
                _ if *part == RPC => ErrorKind::Connection,
                3 | 67 | 74 | 84 => ErrorKind::Unsupported,
                _ => ErrorKind::Other,
            },
            Self::Late { .. } => ErrorKind::Connection,
            Self::Missing { .. } | Self::Static | Self::Local(_) | Self::Stopped => ErrorKind::Other,
        }
    }
}

impl From<std::io::Error> for LibvirtError {
    fn from(error: std::io::Error) -> Self {
        Self::Local(error.to_string())
    }
}

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
    fn errors_are_told_apart_by_libvirts_numbers() {
        let of = |code, part| LibvirtError::Refused { code, part, message: String::new() }.kind();
        let kind = |code| of(code, 0);
        assert_eq!([42, 49, 50].map(kind), [ErrorKind::NoDomain, ErrorKind::NoPool, ErrorKind::NoVolume]);
        assert_eq!(
            [45, 39, 3, 1].map(kind),
            [ErrorKind::Denied, ErrorKind::Connection, ErrorKind::Unsupported, ErrorKind::Other]
        );
        assert_eq!(
            [of(1, RPC), of(38, RPC), of(45, RPC)],
            [ErrorKind::Connection, ErrorKind::Connection, ErrorKind::Denied]
        );
    }

    #[test]
    fn a_call_that_never_returns_is_left() {
        let (hold, held) = mpsc::channel::<()>();
        let late = within(Duration::from_millis(20), "answer", move || Ok(held.recv().is_ok()));
        assert_eq!(late, Err(LibvirtError::Late { what: "answer", limit: Duration::from_millis(20) }));
        drop(hold);
        assert_eq!(within(Duration::from_secs(20), "answer", || Ok(7)), Ok(7));
    }
}
