//! What a fault does to an operation.

/// What happens to an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It fails with this error number and never reaches the target.
    Fail(i32),
    /// It is carried out, and half of it is reported as moved.
    Halve,
    /// It is carried out, and its completion comes so many nanoseconds late.
    Delay(u64),
    /// It never reaches the target and never completes.
    Swallow,
    /// A write fails with `ENOSPC` and never reaches the target; what else there is is carried out.
    Full,
}

/// For faults that take no argument.
pub(super) fn no_argument(name: &str, argument: Option<&str>, verdict: Verdict) -> Result<Verdict, String> {
    argument.map_or(Ok(verdict), |_| Err(format!("{name} takes only a percentage")))
}
