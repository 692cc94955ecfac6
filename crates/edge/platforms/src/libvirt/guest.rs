//! Whether a guest answers: it says so on its console, by itself and for each line that it is sent.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use virtbench_lab::HERE;
use virtbench_libvirt::{Domain, ErrorKind, LibvirtError, close_stream};
use virtbench_record::FailureKind;

use crate::platform::Failure;

/// How often a guest is asked.
const ASK_INTERVAL: Duration = Duration::from_millis(250);

/// How long libvirt may take to close a console.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);

/// What libvirt says of a console that somebody has.
const TAKEN: &str = "console session";

/// How soon it is tried again.
const TAKEN_INTERVAL: Duration = Duration::from_millis(10);

/// The end of a console that is kept: a line may come in pieces.
const KEPT_BYTES: usize = 256;

/// Waits until the guest answers on its console.
pub(super) fn wait_for_answer(domain: &Domain, deadline: Instant) -> Result<(), Failure> {
    let console = open_console(domain, deadline)?;
    let seen = answers(&console, deadline);
    close(&console);
    seen
}

/// Closes a console before its guest can end. One that stays open is left: nothing more can be done.
pub(super) fn close(console: &UnixStream) {
    let _ = close_stream(console, CLOSE_LIMIT);
}

/// Opens the console; one that was closed just now may still be taken.
pub(super) fn open_console(domain: &Domain, deadline: Instant) -> Result<UnixStream, Failure> {
    loop {
        match domain.open_console() {
            Err(error) if error.to_string().contains(TAKEN) && Instant::now() < deadline => {
                std::thread::sleep(TAKEN_INTERVAL);
            }
            opened => return opened.map_err(failure),
        }
    }
}

/// Reads and asks until the answer is there.
pub(super) fn answers(mut console: &UnixStream, deadline: Instant) -> Result<(), Failure> {
    let broken = |error: std::io::Error| {
        Failure::new(FailureKind::Vanished, format!("the guest's console ended: {error}"))
    };
    console.set_read_timeout(Some(ASK_INTERVAL)).map_err(broken)?;
    console.set_write_timeout(Some(ASK_INTERVAL)).map_err(broken)?;
    let mut seen: Vec<u8> = Vec::new();
    let mut buffer = [0; 4096];
    while Instant::now() < deadline {
        match console.read(&mut buffer) {
            Ok(0) => return Err(broken(std::io::ErrorKind::UnexpectedEof.into())),
            Ok(count) => {
                seen.extend_from_slice(&buffer[..count]);
                if String::from_utf8_lossy(&seen).contains(HERE) {
                    return Ok(());
                }
                let over = seen.len().saturating_sub(KEPT_BYTES);
                seen.drain(..over);
            }
            Err(error)
                if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) =>
            {
                // A console whose buffer is full has not been read yet: the guest does not run so far.
                let _ = console.write(b"\n");
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(broken(error)),
        }
    }
    let said = String::from_utf8_lossy(&seen).trim().to_owned();
    Err(Failure::new(
        FailureKind::NotSeen,
        format!("the guest did not answer in time; its console ends with {said:?}"),
    ))
}

/// `VIR_ERR_OPERATION_INVALID`
const INVALID: i32 = 55;

/// `VIR_ERR_OPERATION_TIMEOUT`: somebody else changes the domain.
const STATE_LOCKED: i32 = 68;

/// `VIR_ERR_NO_DOMAIN_SNAPSHOT`
const NO_SNAPSHOT: i32 = 72;

/// `VIR_ERR_RESOURCE_BUSY`
const BUSY: i32 = 87;

/// What libvirt said, as a failure of an operation.
pub(crate) fn failure(error: LibvirtError) -> Failure {
    let message = error.to_string();
    let code = if let LibvirtError::Refused { code, .. } = &error { *code } else { 0 };
    let kind = match (&error, error.kind()) {
        (LibvirtError::Late { .. }, _) => FailureKind::TimedOut,
        _ if message.contains("No space left") || message.contains("Cannot allocate memory") => {
            FailureKind::NoRoom
        }
        (_, ErrorKind::NoDomain | ErrorKind::NoPool | ErrorKind::NoVolume) => FailureKind::Vanished,
        (_, ErrorKind::Denied) => FailureKind::Denied,
        (_, ErrorKind::Connection) => FailureKind::Unreachable,
        (_, ErrorKind::Unsupported) => FailureKind::Unsupported,
        (_, ErrorKind::Other) => match code {
            INVALID => FailureKind::WrongState,
            STATE_LOCKED | BUSY => FailureKind::Busy,
            NO_SNAPSHOT => FailureKind::Vanished,
            _ => FailureKind::Refused,
        },
    };
    Failure::new(kind, message)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_guest_that_says_nothing_by_itself_is_asked() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let guest = thread::spawn(move || {
            let mut asked = [0; 1];
            far.read_exact(&mut asked).unwrap();
            // In two pieces, after a kernel's words.
            let (first, second) = HERE.split_at(7);
            far.write_all(format!("[ 0.1] booting\r\n{first}").as_bytes()).unwrap();
            thread::sleep(Duration::from_millis(20));
            far.write_all(second.as_bytes()).unwrap();
            far
        });
        assert_eq!(answers(&near, Instant::now() + Duration::from_secs(20)), Ok(()));
        guest.join().unwrap();
    }

    #[test]
    fn a_guest_that_never_answers_and_one_that_ends_are_failures() {
        let (near, mut far) = UnixStream::pair().unwrap();
        far.write_all(b"Kernel panic").unwrap();
        let late = answers(&near, Instant::now() + Duration::from_millis(300)).unwrap_err();
        assert!(late.kind == FailureKind::NotSeen && late.message.contains("panic"), "{late}");
        let (near, _) = UnixStream::pair().unwrap();
        let ended = answers(&near, Instant::now() + Duration::from_secs(20)).unwrap_err();
        assert_eq!(ended.kind, FailureKind::Vanished);
    }
}

#[cfg(test)]
mod refusals_tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_refusal_of_libvirt_s_has_its_kind() {
        let of = |code, message: &str| {
            failure(LibvirtError::Refused { code, part: 0, message: message.into() }).kind
        };
        assert_eq!(of(42, "no domain"), FailureKind::Vanished);
        assert_eq!(of(55, "domain is not running"), FailureKind::WrongState);
        assert_eq!(of(68, "cannot acquire state change lock"), FailureKind::Busy);
        assert_eq!(of(38, "cannot fill file: No space left on device"), FailureKind::NoRoom);
        assert_eq!(of(3, "not supported"), FailureKind::Unsupported);
        assert_eq!(of(88, "access denied"), FailureKind::Denied);
        assert_eq!(of(1, "whatever"), FailureKind::Refused);
        let late = LibvirtError::Late { what: "start", limit: Duration::from_secs(1) };
        assert_eq!(failure(late).kind, FailureKind::TimedOut);
    }
}
