//! What the host had left, and what was exhausted.

use virtbench_record::{TileHostNumbers, TilesMeasured};

use super::energy::mean_watts;

/// Processors that are busier are exhausted, in percent: little more can be had where work comes unevenly.
const BUSY_PERCENT: f64 = 92.0;
/// A single processor likewise; a member held to it cannot use another.
const ONE_BUSY_PERCENT: f64 = 96.0;
/// A hypervisor below that takes more away is what limits, in percent of all processors.
const STEAL_PERCENT: f64 = 5.0;
/// A disk that is busier is exhausted, in percent.
const DISK_PERCENT: f64 = 90.0;
/// A network interface that carries more of what its speed allows is exhausted, in percent.
const NETWORK_PERCENT: f64 = 90.0;
/// Less available memory is none, as a share of all.
const MEMORY_SHARE: f64 = 0.05;

/// The host with so many tiles, means over their runs; nothing of none.
pub(super) fn host_numbers(
    tiles: u32,
    runs: &[&TilesMeasured],
    score: Option<f64>,
) -> Option<TileHostNumbers> {
    // Ticks are counted coarsely, and may come out a little above all that there is.
    let busy = |run: &&TilesMeasured| (run.host.cpu_percent / processors(run)).min(100.0);
    let busy_percent = mean(runs.iter().map(busy))?;
    let steal_percent = mean(runs.iter().map(|run| run.host.steal_percent / processors(run)))?;
    let busiest = |run: &&TilesMeasured| {
        run.host.each_percent.iter().map(|percent| percent.min(100.0)).reduce(f64::max)
    };
    let seconds = || runs.iter().flat_map(|run| &run.seconds);
    let threads = runs.iter().flat_map(|run| &run.members).map(|member| member.network_thread_percent);
    let watts = mean(runs.iter().filter_map(|run| mean_watts(&run.energy, run.elapsed_ns)));
    let mut numbers = TileHostNumbers {
        tiles,
        busy_percent,
        busiest_processor_percent: mean(runs.iter().filter_map(busiest)),
        steal_percent,
        least_available_bytes: seconds().filter_map(|second| second.available_bytes).min(),
        disk_percent: mean(seconds().filter_map(|second| second.disk_percent)),
        network_percent: mean(seconds().filter_map(|second| second.network_percent)),
        network_thread_percent: threads.flatten().map(|percent| percent.min(100.0)).reduce(f64::max),
        exhausted: Vec::new(),
        watts,
        score_per_kilowatt: watts
            .filter(|watts| *watts > 0.0)
            .and_then(|watts| Some(1000.0 * score? / watts)),
    };
    numbers.exhausted = exhausted(&numbers, runs.iter().filter_map(|run| run.memory_bytes).max());
    Some(numbers)
}

fn processors(run: &TilesMeasured) -> f64 {
    f64::from(run.host.processors.max(1))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn exhausted(at: &TileHostNumbers, memory_bytes: Option<u64>) -> Vec<String> {
    let mut found = Vec::new();
    let busiest = at.busiest_processor_percent.filter(|percent| *percent >= ONE_BUSY_PERCENT);
    if at.busy_percent + at.steal_percent >= BUSY_PERCENT {
        found.push(format!("the processors, {:.0} % busy", at.busy_percent));
    } else if let Some(percent) = busiest {
        found.push(format!("one of the processors, {percent:.0} % busy"));
    }
    if at.steal_percent >= STEAL_PERCENT {
        found.push(format!(
            "the processors of the host below, which took away {:.0} % of this one's",
            at.steal_percent
        ));
    }
    if let Some(percent) = at.disk_percent.filter(|percent| *percent >= DISK_PERCENT) {
        found.push(format!("the disk of the data, {percent:.0} % busy"));
    }
    if let Some(percent) = at.network_percent.filter(|percent| *percent >= NETWORK_PERCENT) {
        found.push(format!("a network interface, at {percent:.0} % of its speed"));
    }
    if let Some(percent) = at.network_thread_percent.filter(|percent| *percent >= ONE_BUSY_PERCENT) {
        found.push(format!("the network of a VM, whose thread was {percent:.0} % busy"));
    }
    if let (Some(left), Some(all)) = (at.least_available_bytes, memory_bytes)
        && (left as f64) < MEMORY_SHARE * all as f64
    {
        found.push(format!("memory, of which {} MiB were left", left >> 20));
    }
    found
}
