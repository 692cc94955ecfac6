//! How the agent introduces itself.

use std::fs;
use std::thread::available_parallelism;

use rustix::system::{sysinfo, uname};
use virtbench_host::crossing_cost;

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
    let memory = sysinfo();
    Greeting {
        version: VERSION,
        kernel: uname().release().to_string_lossy().into_owned(),
        processors: available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX)),
        memory_bytes: memory.totalram.saturating_mul(memory.mem_unit.into()),
        clock_source: fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource")
            .map_or_else(|_| String::new(), |name| name.trim().to_owned()),
        crossing: crossing_cost(),
    }
}
