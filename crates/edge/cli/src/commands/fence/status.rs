//! `virtbench fence status`

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use virtbench_fence_daemon::config::Config;
use virtbench_fence_daemon::metrics;

use crate::args::fence::StatusArgs;
use crate::exit::{Failure, Kind, Outcome};
use crate::interrupt;

/// How often `--watch` asks.
const EVERY: Duration = Duration::from_secs(1);

/// Whether each partition of the cache is degraded.
type Caches = BTreeMap<usize, bool>;

/// A disk's figures by family and kind.
type Disks = BTreeMap<String, BTreeMap<String, f64>>;

/// Prints what a running daemon counts.
pub fn execute(args: &StatusArgs) -> Outcome {
    let config = Config::load(&args.config).map_err(|error| Failure::new(Kind::Usage, error))?;
    let Some(address) = config.metrics else {
        let why =
            format!("{}: no metrics address: write metrics = \"127.0.0.1:9100\"", args.config.display());
        return Err(Failure::message(Kind::Usage, why));
    };
    let fetch = || {
        metrics::fetch(address).map_err(|error| {
            Failure::message(
                Kind::Target,
                format!("no fence answers at {address}: {error}: is `fence serve` running?"),
            )
        })
    };
    let mut before = None;
    loop {
        let text = fetch()?;
        if args.raw {
            print!("{text}");
        } else {
            let names: Vec<&str> = config.disks.iter().map(|disk| disk.name.as_str()).collect();
            print_table(&parse(&text), before.as_ref(), &names, &parse_caches(&text));
        }
        before = Some(parse(&text));
        if !args.watch || interrupt::requested() {
            return Ok(());
        }
        thread::sleep(EVERY);
    }
}

/// With figures of a second ago, what happened since; without, since the daemon began.
fn print_table(now: &Disks, before: Option<&Disks>, names: &[&str], caches: &Caches) {
    println!(
        "{:<16} {:>10} {:>10} {:>10} {:>12} {:>12} {:>8} {:>8} {:>8}",
        "disk", "reads", "writes", "flushes", "read ms", "write ms", "errors", "waiting", "cache"
    );
    for (disk, figures) in now {
        let since = |name: &str| {
            let old = before.and_then(|before| before.get(disk)?.get(name).copied()).unwrap_or(0.0);
            figures.get(name).copied().unwrap_or(0.0) - old
        };
        let mean_ms = |kind: &str| {
            let count = since(&format!("requests_total {kind}"));
            if count > 0.0 { since(&format!("response_seconds_total {kind}")) * 1e3 / count } else { 0.0 }
        };
        println!(
            "{disk:<16} {:>10} {:>10} {:>10} {:>12.3} {:>12.3} {:>8} {:>8} {:>8}",
            since("requests_total read"),
            since("requests_total write"),
            since("requests_total flush"),
            mean_ms("read"),
            mean_ms("write"),
            since("errors_total"),
            figures.get("under_way").copied().unwrap_or(0.0),
            state(disk, names, caches),
        );
    }
    if caches.values().any(|degraded| *degraded) {
        println!(
            "degraded: a device failed; writes and flushes are refused, reads go on, until the daemon is started again"
        );
    }
}

/// How the cache of a disk is: its own partition, or the one of all.
fn state(disk: &str, names: &[&str], caches: &Caches) -> &'static str {
    let own = names.iter().position(|name| *name == disk).filter(|_| caches.len() > 1);
    match caches.get(&own.unwrap_or(0)) {
        None => "-",
        Some(false) => "ok",
        Some(true) => "degraded",
    }
}

/// `virtbench_fence_cache_degraded{partition="P",state="read_only"} V` becomes P, whether V is not 0.
fn parse_caches(text: &str) -> Caches {
    let one = |line: &str| {
        let rest = line.strip_prefix("virtbench_fence_cache_degraded{partition=\"")?;
        let (partition, rest) = rest.split_once('"')?;
        let (_, value) = rest.split_once("} ")?;
        Some((partition.parse().ok()?, value.trim() != "0"))
    };
    text.lines().filter_map(one).collect()
}

/// `virtbench_fence_NAME{disk="D",kind="K"} V` becomes D, "NAME K", V.
fn parse(text: &str) -> Disks {
    let mut disks = Disks::new();
    for line in text.lines() {
        let Some((name, rest)) = line.strip_prefix("virtbench_fence_").and_then(|line| line.split_once('{'))
        else {
            continue;
        };
        let Some((labels, value)) = rest.split_once("} ") else { continue };
        let label = |name: &str| {
            labels.split(',').find_map(|label| label.strip_prefix(name)).map(|v| v.trim_matches('"'))
        };
        let (Some(disk), Ok(value)) = (label("disk="), value.parse()) else { continue };
        let name = label("kind=").map_or_else(|| name.to_owned(), |kind| format!("{name} {kind}"));
        disks.entry(disk.to_owned()).or_default().insert(name, value);
    }
    disks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_by_disk_and_kind() {
        let text = "# TYPE x counter\nvirtbench_fence_requests_total{disk=\"a\",kind=\"read\"} 5\n\
                    virtbench_fence_under_way{disk=\"b\"} 2\nvirtbench_fence_cache_reads_total{partition=\"0\"} 1\n";
        let disks = parse(text);
        let degraded = "virtbench_fence_cache_degraded{partition=\"0\",state=\"read_only\"} 0\n\
                        virtbench_fence_cache_degraded{partition=\"1\",state=\"read_only\"} 1\n";
        let caches = parse_caches(degraded);
        assert_eq!((state("a", &["a", "b"], &caches), state("b", &["a", "b"], &caches)), ("ok", "degraded"));
        let shared = parse_caches(&degraded.lines().next().unwrap().replace("} 0", "} 1"));
        assert_eq!(
            (state("b", &["a", "b"], &shared), state("b", &["a", "b"], &Caches::new())),
            ("degraded", "-")
        );
        assert_eq!((disks["a"]["requests_total read"], disks["b"]["under_way"], disks.len()), (5.0, 2.0, 2));
    }
}
