//! What libvirt's errors mean for an operation.

use virtbench_libvirt::{ErrorKind, LibvirtError};
use virtbench_record::FailureKind;

use crate::failure::Failure;

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
