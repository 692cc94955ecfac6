//! How the agent introduces itself.

use std::fs;
use std::thread::available_parallelism;

use rustix::system::{sysinfo, uname};

use crate::protocol::{Greeting, VERSION};

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
    }
}
