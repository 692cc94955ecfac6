//! `virtbench appliance path`

use virtbench_lab::{Reach, measure_path};

use crate::args::appliance::AppliancePathArgs;
use crate::exit::{Failure, Kind, Outcome};
use crate::progress;
use crate::say::{print_json, say};

/// Measures the path to the agent of an appliance that another command runs.
pub fn execute(args: &AppliancePathArgs) -> Outcome {
    let path = || measure_path(&Reach::here(), args.address, args.time);
    let cost = progress::during("measuring the path", path).map_err(|error| {
        let next = "see `virtbench appliance run` for where its agent answers, and for the network it is in";
        Failure::message(Kind::Guest, format!("{}: {error}; {next}", args.address))
    })?;
    if args.json {
        return Ok(print_json(&cost)?);
    }
    let us = |ns: u64| ns as f64 / 1e3;
    say!(
        "round trip  {:.0} us at least, {:.0} us the median, {:.0} us for 99 % of {}",
        us(cost.round_trip_min_ns),
        us(cost.round_trip_median_ns),
        us(cost.round_trip_p99_ns),
        cost.round_trips
    );
    say!("to it       {:.1} MB/s", cost.to_bytes_per_s / 1e6);
    say!("from it     {:.1} MB/s", cost.from_bytes_per_s / 1e6);
    Ok(())
}
