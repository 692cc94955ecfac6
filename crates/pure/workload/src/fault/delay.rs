//! `delay=T@P%`: the operation is carried out, and completes later by T.

use virtbench_units::parse_duration_ns;

use super::verdict::Verdict;

/// The longest delay, in nanoseconds: an hour. Longer is a stall.
const MAX_DELAY_NS: u64 = 3_600_000_000_000;

pub(super) fn verdict(argument: Option<&str>) -> Result<Verdict, String> {
    let text = argument.ok_or("delay lacks how long, as in delay=5ms@1%")?;
    let delay_ns = parse_duration_ns(text).map_err(|error| error.to_string())?;
    if delay_ns > MAX_DELAY_NS {
        return Err(format!("a delay of {text} is longer than an hour: use stall"));
    }
    Ok(Verdict::Delay(delay_ns))
}
