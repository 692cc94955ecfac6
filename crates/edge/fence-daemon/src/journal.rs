//! Lines for the daemon's operator, few of them whatever clients do.

use std::cell::Cell;
use std::fmt::Display;
use std::io::{self, Write as _};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Lines that may come at once, and how long one takes to be allowed again.
const BURST: u32 = 20;
const REFILL: Duration = Duration::from_secs(3);

/// What every line of this process begins with behind the command: a daemon serves one pool, and several write to one place.
static POOL: OnceLock<String> = OnceLock::new();

/// From now on lines say of which pool they are.
pub fn is_of_pool(name: &str) {
    let _ = POOL.set(format!("pool {name}: "));
}

/// Writes lines about one thing to standard error.
#[derive(Debug)]
pub struct Journal {
    about: String,
    allowed: Cell<u32>,
    since: Cell<Instant>,
    left_out: Cell<u64>,
}

impl Journal {
    /// Lines that begin with what they are about.
    #[must_use]
    pub fn new(about: String) -> Self {
        Self { about, allowed: Cell::new(BURST), since: Cell::new(Instant::now()), left_out: Cell::new(0) }
    }

    /// A closed stderr is no reason to end, as `eprintln!` would.
    fn write(&self, what: std::fmt::Arguments<'_>) {
        let pool = POOL.get().map_or("", String::as_str);
        let _ = writeln!(io::stderr(), "virtbench fence: {pool}{}: {what}", self.about);
    }

    /// Writes a line, unless there were too many.
    pub fn note(&self, what: impl Display) {
        let passed = self.since.get().elapsed();
        let refill = u32::try_from(passed.as_millis() / REFILL.as_millis()).unwrap_or(u32::MAX);
        if refill > 0 {
            self.since.set(Instant::now());
            self.allowed.set(self.allowed.get().saturating_add(refill).min(BURST));
        }
        if self.allowed.get() == 0 {
            self.left_out.set(self.left_out.get() + 1);
            return;
        }
        self.allowed.set(self.allowed.get() - 1);
        let left_out = self.left_out.replace(0);
        if left_out > 0 {
            self.write(format_args!("{left_out} lines were left out"));
        }
        self.write(format_args!("{what}"));
    }
}
