//! Whether this process may open as many files as its machines need.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use thiserror::Error;

/// What a machine takes here at most, while it starts too: its connection's two ends and copies of it, its process, its
/// console, its socket.
pub const DESCRIPTORS_EACH: u64 = 12;
/// What everything else may take beside what is open already: a run folder, test disks, a page.
const OTHERS: u64 = 32;

/// More machines than this process may have descriptors for.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "{machines} machines need {needed} open files in this process, which may have {limit}: run `ulimit -n {needed}` before \
     (root may raise the hard limit), or name fewer machines"
)]
pub struct TooFewDescriptors {
    machines: usize,
    needed: u64,
    limit: u64,
}

/// Sees to it that this process may open what `machines` need, by raising its own limit as far as it may.
///
/// # Errors
/// It may not have so many.
pub fn require_descriptors(machines: usize) -> Result<(), TooFewDescriptors> {
    let open = fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64);
    let limits = getrlimit(Resource::Nofile);
    let Some(needed) = missing(machines, open, &limits)? else { return Ok(()) };
    let raised = Rlimit { current: Some(needed), maximum: limits.maximum };
    setrlimit(Resource::Nofile, raised).map_err(|_| TooFewDescriptors {
        machines,
        needed,
        limit: limits.current.unwrap_or(u64::MAX),
    })
}

/// What the limit has to be raised to; nothing where it is high enough.
fn missing(machines: usize, open: u64, limits: &Rlimit) -> Result<Option<u64>, TooFewDescriptors> {
    let needed = open + OTHERS + DESCRIPTORS_EACH * machines as u64;
    if limits.current.is_none_or(|limit| limit >= needed) {
        return Ok(None);
    }
    match limits.maximum {
        Some(limit) if limit < needed => Err(TooFewDescriptors { machines, needed, limit }),
        _ => Ok(Some(needed)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_raised_as_far_as_it_may_be() {
        let limits = |current, maximum| Rlimit { current: Some(current), maximum: Some(maximum) };
        let needed = 10 + OTHERS + 100 * DESCRIPTORS_EACH;
        assert_eq!(missing(100, 10, &limits(needed, needed)), Ok(None));
        assert_eq!(missing(100, 10, &limits(needed - 1, needed)), Ok(Some(needed)));
        let error = missing(100, 10, &limits(256, 1024)).unwrap_err().to_string();
        assert!(error.contains(&format!("ulimit -n {needed}")) && error.contains("may have 1024"), "{error}");
    }
}
