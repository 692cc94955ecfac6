//! Appliances, which run on Linux machines only.

use crate::protocol::appliance::EnclosingRequest;
use crate::protocol::{FailureKind, Reply};

/// Refuses.
pub(crate) fn enclosing(_request: &EnclosingRequest) -> Reply {
    let message = "appliances run on Linux machines, and this one runs Windows".to_owned();
    Reply::Failed { kind: FailureKind::Appliance, message }
}
