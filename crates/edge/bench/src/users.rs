//! Users of a web server, of a store and of a mail server, beside wrk, redis-benchmark and smtp-source on the same server.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, ensure};
use virtbench_record::{UsersPlan, UsersService};
use virtbench_users::{
    Address, Aim, KeyValue, LocalKind, LocalService, Mail, MailMix, Page, Service, Web, run,
};

use crate::pairs::{Claim, Sample, Verdict};
use crate::smtp::SmtpSink;

/// Of each measurement.
const SECONDS: u32 = 4;
/// Bytes of a value.
const VALUE_BYTES: usize = 100;
const KEYS: u64 = 10_000;
/// Bytes of a message without its head.
const MESSAGE_BYTES: usize = 4_000;
/// So many that it takes some seconds.
const MESSAGES: u32 = 10_000;

/// Alternates the tools, and holds what is promised of the ratios.
pub fn check(rounds: usize, _: &Path) -> Result<Vec<Verdict>> {
    let (nginx, redis) = (LocalService::start(LocalKind::Nginx)?, LocalService::start(LocalKind::Redis)?);
    let sink = SmtpSink::start()?;
    println!(
        "users beside wrk, redis-benchmark and smtp-source, closed loop without think times, {SECONDS} s each"
    );
    let mut verdicts = Vec::new();
    for (path, users) in [("/", 8), ("/16k", 8), ("/1m", 4)] {
        let web = Web::new(address(&nginx)?, None, &[parsed(Page::parse(path))?]);
        let web = parsed(web)?;
        let url = format!("http://{}{path}", nginx.address());
        let case = format!("web, page {path}, {users} users");
        let pairs = alternated(rounds, || ours(&web, UsersService::Web, users), || wrk(&url, users))?;
        verdicts.extend(held(&case, &pairs));
    }
    for (users, what) in [(8, "get"), (8, "set"), (50, "get")] {
        let mix = if what == "get" { (1, 0) } else { (0, 1) };
        let store = parsed(KeyValue::new(address(&redis)?, None, (KEYS, VALUE_BYTES), mix))?;
        let case = format!("key-value, {what}, {users} users");
        let pairs = alternated(
            rounds,
            || ours(&store, UsersService::KeyValue, users),
            || redis_benchmark(&redis, what, users),
        )?;
        verdicts.extend(held(&case, &pairs));
    }
    for users in [8, 32] {
        let at = || parsed(Address::parse(&sink.address(), 25));
        let mix = MailMix { send: 1, check: 0, read: 0, append: 0 };
        let mail =
            Mail::new((at()?, at()?), ("user{}", String::new()), users, "mail.test", (MESSAGE_BYTES, mix));
        let mail = parsed(mail)?;
        let case = format!("mail, send, {users} users");
        let theirs = || sink.source(users, MESSAGES, MESSAGE_BYTES);
        verdicts.extend(held(&case, &alternated(rounds, || ours(&mail, UsersService::Mail, users), theirs)?));
    }
    Ok(verdicts)
}

fn held(case: &str, pairs: &[(Sample, Sample)]) -> [Verdict; 2] {
    [Claim::rate().hold(case, pairs), Claim::mean_latency().hold(case, pairs)]
}

fn address(server: &LocalService) -> Result<Address> {
    parsed(Address::parse(&server.address(), 80))
}

fn parsed<T>(parsed: Result<T, String>) -> Result<T> {
    parsed.map_err(anyhow::Error::msg)
}

fn alternated(
    rounds: usize,
    mut ours: impl FnMut() -> Result<Sample>,
    mut theirs: impl FnMut() -> Result<Sample>,
) -> Result<Vec<(Sample, Sample)>> {
    let pair = |round: usize| -> Result<(Sample, Sample)> {
        if round.is_multiple_of(2) {
            let first = ours()?;
            Ok((first, theirs()?))
        } else {
            let first = theirs()?;
            Ok((ours()?, first))
        }
    };
    (0..rounds).map(pair).collect()
}

fn ours(service: &impl Service, kind: UsersService, users: u32) -> Result<Sample> {
    let plan = UsersPlan {
        service: kind,
        users,
        threads: 1,
        ramp_up_ns: 0,
        time_ns: u64::from(SECONDS) * 1_000_000_000,
        rate: None,
        think_ns: None,
        timeout_ns: 10_000_000_000,
        seed: 1,
    };
    let outcome = run(service, &Aim::default(), &plan, &AtomicBool::new(false), &mut |_| {})?;
    ensure!(outcome.all.failed == 0, "operations failed: {:?}", outcome.error_kinds);
    let latency = outcome.all.latency_ns.context("nothing was completed")?;
    let cpu_ns = outcome.own_cpu_ns[0] + outcome.own_cpu_ns[1];
    Ok(Sample {
        iops: outcome.all.per_second,
        mean_latency_ns: latency.mean,
        cpu_per_io_ns: cpu_ns as f64 / outcome.all.completed as f64,
    })
}

fn printed(command: &mut Command) -> Result<String> {
    let output =
        command.output().with_context(|| format!("cannot start {command:?}: scripts/setup.sh bench"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{command:?}: {}{text}", String::from_utf8_lossy(&output.stderr));
    Ok(text)
}

fn wrk(url: &str, users: u32) -> Result<Sample> {
    let (users, seconds) = (users.to_string(), format!("{SECONDS}s"));
    let text = printed(Command::new("wrk").args(["-t", "1", "-c", &users, "-d", &seconds, url]))?;
    of_wrk(&text).with_context(|| format!("wrk printed no figures: {text}"))
}

fn of_wrk(text: &str) -> Option<Sample> {
    let word = |name: &str| {
        let line = text.lines().map(str::trim).find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()
    };
    let latency = word("Latency")?;
    let unit = latency.find(char::is_alphabetic)?;
    let factor = match &latency[unit..] {
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    let mean_latency_ns = latency[..unit].parse::<f64>().ok()? * factor;
    Some(Sample { iops: word("Requests/sec:")?.parse().ok()?, mean_latency_ns, cpu_per_io_ns: 0.0 })
}

/// So many requests that it takes some seconds.
const REQUESTS: &str = "300000";

fn redis_benchmark(server: &LocalService, what: &str, users: u32) -> Result<Sample> {
    let (users, port, bytes, keys) =
        (users.to_string(), server.port().to_string(), VALUE_BYTES.to_string(), KEYS.to_string());
    let mut command = Command::new("redis-benchmark");
    command.args(["-h", "127.0.0.1", "-p", &port, "-c", &users, "-n", REQUESTS, "-d", &bytes, "-r", &keys]);
    let text = printed(command.args(["-t", what, "--csv"]))?;
    of_redis_benchmark(&text).with_context(|| format!("redis-benchmark printed no figures: {text}"))
}

/// Reads a head with the names of columns, and one line of figures.
fn of_redis_benchmark(text: &str) -> Option<Sample> {
    let mut lines = text.lines().map(|line| line.split(',').map(|cell| cell.trim_matches('"')));
    let (head, figures): (Vec<&str>, Vec<&str>) = (lines.next()?.collect(), lines.next()?.collect());
    let of = |name: &str| figures.get(head.iter().position(|column| *column == name)?)?.parse::<f64>().ok();
    Some(Sample { iops: of("rps")?, mean_latency_ns: of("avg_latency_ms")? * 1e6, cpu_per_io_ns: 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_known_tools_print_is_read() {
        let text = "Running 4s test\n  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency   130.57us   45.1us   3.25ms   92.1%\n\
                    Req/Sec    59.2k\nRequests/sec:  58892.77\nTransfer/sec:     16.0MB\n";
        let sample = of_wrk(text).unwrap();
        assert_eq!((sample.iops, sample.mean_latency_ns), (58_892.77, 130_570.0));
        assert!(of_wrk("nothing").is_none());
        let text = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\"\n\"GET\",\"71428.57\",\"0.070\",\"0.016\"\n";
        let sample = of_redis_benchmark(text).unwrap();
        assert_eq!((sample.iops, sample.mean_latency_ns), (71_428.57, 70_000.0));
        assert!(of_redis_benchmark("\"test\"\n\"GET\"").is_none());
    }
}
