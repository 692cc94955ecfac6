//! What an agent that keeps files does for appliances of its machine.

use std::path::Path;

use rustix::process::geteuid;

use crate::enclosure::{LoopDevice, check_bridge};
use crate::protocol::appliance::{EnclosingReply, EnclosingRequest};
use crate::protocol::{FailureKind, Reply};
use crate::stored_file::store;

/// What an agent that keeps files does for appliances of this machine.
pub(crate) fn enclosing(request: &EnclosingRequest) -> Reply {
    let (done, reply) = match request {
        EnclosingRequest::CheckBridge { bridge } => (can_enclose(bridge), EnclosingReply::Checked),
        EnclosingRequest::Store(piece) => (store(Path::new("."), piece), EnclosingReply::Stored),
        EnclosingRequest::Enclose(_) => {
            let message = "this agent was not started for an appliance".to_owned();
            return Reply::Failed { kind: FailureKind::Request, message };
        }
    };
    match done {
        Ok(()) => Reply::Enclosing(reply),
        Err(message) => Reply::Failed { kind: FailureKind::Appliance, message },
    }
}

/// Whether appliances can be enclosed here.
fn can_enclose(bridge: &str) -> Result<(), String> {
    if !geteuid().is_root() {
        return Err("root is needed there: name it, as in ssh://root@HOST/FOLDER".into());
    }
    LoopDevice::check().map_err(|error| format!("on that machine: {error}"))?;
    check_bridge(bridge)
}
