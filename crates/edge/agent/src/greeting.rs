//! How the agent introduces itself.

use std::thread::available_parallelism;

use virtbench_host::{clock_source, crossing_cost, kernel_release, memory_bytes};

use crate::protocol::{FailureKind, Greeting, Reply, VERSION};

/// The answer to a host that speaks this version of the protocol.
pub(crate) fn hello(version: u32) -> Reply {
    if version == VERSION {
        return Reply::Hello(greeting());
    }
    let message =
        format!("the host speaks protocol version {version}, the agent {VERSION}: they are not of one build");
    Reply::Failed { kind: FailureKind::Request, message }
}

/// What this machine is, as its own kernel says. What cannot be read is empty.
#[must_use]
pub fn greeting() -> Greeting {
    Greeting {
        version: VERSION,
        kernel: kernel_release(),
        processors: available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX)),
        memory_bytes: memory_bytes(),
        clock_source: clock_source(),
        crossing: crossing_cost(),
    }
}
