//! One conversation with the host, from its greeting to its farewell.

use std::io::{Read, Write};

use crate::protocol::{FailureKind, ProtocolError, Reply, Request, VERSION, receive, send};
use crate::{greeting, now_ns};

/// Answers the host until it says `Shutdown` or hangs up.
///
/// # Errors
/// The connection failed, or the host does not speak the protocol.
pub fn serve(mut reader: impl Read + Send, mut writer: impl Write + Send) -> Result<(), ProtocolError> {
    loop {
        let reply = match receive(&mut reader) {
            Ok(Request::Hello { version: VERSION }) => Reply::Hello(greeting()),
            Ok(Request::Hello { version }) => {
                return send(
                    &mut writer,
                    &failed(format!("the agent speaks version {VERSION}, not {version}")),
                );
            }
            Ok(Request::Ping { id }) => Reply::Pong { id, clock_ns: now_ns() },
            Ok(Request::Prepare(_) | Request::Start { .. }) => failed("this agent cannot apply loads".into()),
            // It may have crossed the end of the load it was meant for: nobody waits for an answer.
            Ok(Request::Stop) => continue,
            Ok(Request::Shutdown) | Err(ProtocolError::Closed) => return Ok(()),
            Err(error) => return Err(error),
        };
        send(&mut writer, &reply)?;
    }
}

fn failed(message: String) -> Reply {
    Reply::Failed { kind: FailureKind::Request, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(requests: &[Request]) -> Vec<Reply> {
        let mut wire = Vec::new();
        for request in requests {
            send(&mut wire, request).unwrap();
        }
        let mut replies = Vec::new();
        serve(wire.as_slice(), &mut replies).unwrap();
        let mut reader = replies.as_slice();
        std::iter::from_fn(|| receive(&mut reader).ok()).collect()
    }

    #[test]
    fn it_introduces_itself_and_shows_its_clock() {
        let before = now_ns();
        let replies =
            answers(&[Request::Hello { version: VERSION }, Request::Ping { id: 3 }, Request::Shutdown]);
        assert!(matches!(&replies[0], Reply::Hello(greeting) if greeting.processors > 0));
        assert!(matches!(replies[1], Reply::Pong { id: 3, clock_ns } if clock_ns >= before));
    }

    #[test]
    fn a_stop_that_comes_late_is_not_answered() {
        let replies = answers(&[Request::Stop, Request::Ping { id: 1 }]);
        assert!(matches!(replies.as_slice(), [Reply::Pong { id: 1, .. }]));
    }

    #[test]
    fn another_version_is_refused() {
        let replies = answers(&[Request::Hello { version: VERSION + 1 }, Request::Ping { id: 3 }]);
        assert!(matches!(replies.as_slice(), [Reply::Failed { kind: FailureKind::Request, .. }]));
    }
}
