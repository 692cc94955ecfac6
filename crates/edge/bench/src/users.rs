//! Users of a web server, of a store and of a mail server, beside wrk, redis-benchmark and smtp-source on the same server.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, ensure};
use virtbench_desktops::Link;
use virtbench_record::{UsersOutcome, UsersPlan, UsersService};
use virtbench_units::decode_histogram;
use virtbench_users::{
    Address, Aim, KeyValue, LocalKind, LocalService, Mail, MailMix, Page, Service, Web, run,
};

use crate::distant::Distant;
use crate::pairs::{Claim, Sample, Verdict};
use crate::smtp::SmtpSink;
use crate::vm_service::VmService;

/// How much a measurement is of, for the tools that count what they do so many that it takes about as long.
#[derive(Clone, Copy)]
struct Amount {
    seconds: u32,
    requests: u32,
    messages: u32,
    /// Alternated pairs for each round: what is over soon is less steady.
    pairs: usize,
}

/// Of a server on this host.
const HERE: Amount = Amount { seconds: 1, requests: 80_000, messages: 8_000, pairs: 4 };
/// Of one at the end of [`FAR`].
const AT_A_DISTANCE: Amount = Amount { seconds: 3, requests: 8_000, messages: 1_000, pairs: 1 };
/// Of one in a VM, which does less and in a less steady way.
const IN_A_VM: Amount = Amount { seconds: 3, requests: 24_000, messages: 0, pairs: 3 };
/// A network on which each round trip counts, and what a tool does between two of them does not.
const FAR: Link = Link { delay_ns: 1_000_000, rate: None, loss_ppm: 0 };
/// Bytes of a value.
const VALUE_BYTES: usize = 100;
const KEYS: u64 = 10_000;
/// Bytes of a message without its head.
const MESSAGE_BYTES: usize = 4_000;

/// A server, by where it is.
struct Server {
    place: &'static str,
    port: u16,
    amount: Amount,
    /// Pairs of a case.
    pairs: usize,
}

impl Server {
    fn new(place: &'static str, port: u16, amount: Amount, rounds: usize) -> Self {
        Self { place, port, amount, pairs: rounds * amount.pairs }
    }

    fn address(&self) -> Result<Address> {
        parsed(Address::parse(&format!("127.0.0.1:{}", self.port), self.port))
    }
}

/// Alternates the tools, and holds what is promised of the ratios.
pub fn check(rounds: usize, folder: &Path) -> Result<Vec<Verdict>> {
    println!(
        "users beside wrk, redis-benchmark and smtp-source, closed loop without think times, {} s each, {} s at a distance of {} ms, \
         {} s in a VM",
        HERE.seconds,
        AT_A_DISTANCE.seconds,
        FAR.delay_ns / 1_000_000,
        IN_A_VM.seconds
    );
    let mut verdicts = on_this_host(rounds)?;
    verdicts.extend(in_vms(rounds, folder)?);
    Ok(verdicts)
}

/// Servers of this host, at a distance and without one. Without one the tools and the server have the host's processors to share.
fn on_this_host(rounds: usize) -> Result<Vec<Verdict>> {
    let (nginx, redis) = (LocalService::start(LocalKind::Nginx)?, LocalService::start(LocalKind::Redis)?);
    let sink = SmtpSink::start()?;
    let mut verdicts = Vec::new();
    for is_far in [true, false] {
        let mut links = Vec::new();
        let mut server = |port| -> Result<Server> {
            if !is_far {
                return Ok(Server::new("here", port, HERE, rounds));
            }
            let distant = Distant::from(port, FAR)?;
            let server = Server::new("at a distance", distant.port(), AT_A_DISTANCE, rounds);
            links.push(distant);
            Ok(server)
        };
        let (web, store, mail) = (server(nginx.port())?, server(redis.port())?, server(sink.port())?);
        for (path, users) in [("/", 8), ("/16k", 8), ("/1m", 4)] {
            verdicts.extend(pages(&web, path, users)?);
        }
        for (what, users) in [("get", 8), ("set", 8), ("get", 50)] {
            verdicts.extend(keys(&store, what, users)?);
        }
        for users in [8, 32] {
            verdicts.extend(messages(&mail, &sink, users)?);
        }
    }
    Ok(verdicts)
}

/// Servers in VMs, which take longer than what the tools do between two requests.
fn in_vms(rounds: usize, folder: &Path) -> Result<Vec<Verdict>> {
    let mut verdicts = Vec::new();
    let nginx = VmService::start("nginx", folder)?;
    for path in ["/", "/16k"] {
        verdicts.extend(pages(&Server::new("in a VM", nginx.port()?, IN_A_VM, rounds), path, 8)?);
    }
    drop(nginx);
    let redis = VmService::start("redis", folder)?;
    for what in ["get", "set"] {
        verdicts.extend(keys(&Server::new("in a VM", redis.port()?, IN_A_VM, rounds), what, 8)?);
    }
    Ok(verdicts)
}

/// Users who ask for one page, beside wrk.
fn pages(server: &Server, path: &str, users: u32) -> Result<[Verdict; 2]> {
    let web = parsed(Web::new(server.address()?, None, &[parsed(Page::parse(path))?]))?;
    let url = format!("http://127.0.0.1:{}{path}", server.port);
    let ours = || as_wrk_tells(&outcome(&web, UsersService::Web, users, server.amount)?);
    let pairs = alternated(server.pairs, ours, || wrk(&url, users, server.amount))?;
    Ok(held(&format!("web {}, page {path}, {users} users", server.place), &pairs))
}

/// Users who read or write keys, beside redis-benchmark.
fn keys(server: &Server, what: &str, users: u32) -> Result<[Verdict; 2]> {
    let mix = if what == "get" { (1, 0) } else { (0, 1) };
    let store = parsed(KeyValue::new(server.address()?, None, (KEYS, VALUE_BYTES), mix))?;
    let ours = || sample(&outcome(&store, UsersService::KeyValue, users, server.amount)?);
    let pairs = alternated(server.pairs, ours, || redis_benchmark(server.port, what, users, server.amount))?;
    Ok(held(&format!("key-value {}, {what}, {users} users", server.place), &pairs))
}

/// Users who send mail, beside smtp-source.
fn messages(server: &Server, sink: &SmtpSink, users: u32) -> Result<[Verdict; 2]> {
    let mix = MailMix { send: 1, check: 0, read: 0, append: 0 };
    let at = (server.address()?, server.address()?);
    let mail = Mail::new(at, ("user{}", String::new()), users, "mail.test", (MESSAGE_BYTES, mix));
    let mail = parsed(mail)?;
    let ours = || sample(&outcome(&mail, UsersService::Mail, users, server.amount)?);
    let theirs = || sink.source(server.port, users, server.amount.messages, MESSAGE_BYTES);
    let pairs = alternated(server.pairs, ours, theirs)?;
    Ok(held(&format!("mail {}, send, {users} users", server.place), &pairs))
}

fn held(case: &str, pairs: &[(Sample, Sample)]) -> [Verdict; 2] {
    [Claim::rate().hold(case, pairs), Claim::mean_latency().hold(case, pairs)]
}

fn parsed<T>(parsed: Result<T, String>) -> Result<T> {
    parsed.map_err(anyhow::Error::msg)
}

fn alternated(
    pairs: usize,
    mut ours: impl FnMut() -> Result<Sample>,
    mut theirs: impl FnMut() -> Result<Sample>,
) -> Result<Vec<(Sample, Sample)>> {
    let pair = |number: usize| -> Result<(Sample, Sample)> {
        if number.is_multiple_of(2) {
            let first = ours()?;
            Ok((first, theirs()?))
        } else {
            let first = theirs()?;
            Ok((ours()?, first))
        }
    };
    (0..pairs).map(pair).collect()
}

fn outcome(service: &impl Service, kind: UsersService, users: u32, amount: Amount) -> Result<UsersOutcome> {
    let plan = UsersPlan {
        service: kind,
        users,
        threads: 1,
        ramp_up_ns: 0,
        time_ns: u64::from(amount.seconds) * 1_000_000_000,
        rate: None,
        think_ns: None,
        timeout_ns: 10_000_000_000,
        seed: 1,
    };
    let outcome = run(service, &Aim::default(), &plan, &AtomicBool::new(false), &mut |_| {})?;
    ensure!(outcome.all.failed == 0, "operations failed: {:?}", outcome.error_kinds);
    Ok(outcome)
}

fn sample(outcome: &UsersOutcome) -> Result<Sample> {
    let latency = outcome.all.latency_ns.context("nothing was completed")?;
    let cpu_ns = outcome.own_cpu_ns[0] + outcome.own_cpu_ns[1];
    Ok(Sample {
        iops: outcome.all.per_second,
        mean_latency_ns: latency.mean,
        cpu_per_io_ns: cpu_ns as f64 / outcome.all.completed as f64,
    })
}

/// The same with the mean by wrk's definition.
fn as_wrk_tells(outcome: &UsersOutcome) -> Result<Sample> {
    let own = sample(outcome)?;
    let histogram = decode_histogram(outcome.all.histogram.as_ref().context("no histogram")?)?;
    let recorded = histogram.iter_recorded();
    let latencies = recorded.map(|step| (step.value_iterated_to() as f64, step.count_at_value() as f64));
    let turn_ns = f64::from(outcome.plan.users) * 1e9 / own.iops;
    Ok(Sample { mean_latency_ns: mean_of_wrk(latencies, turn_ns), ..own })
}

/// The mean latency that wrk 4.1 would tell of these latencies and how often each occurred, in nanoseconds: one of more than two mean
/// turns of a user is counted again for each turn that it kept the user from (`stats_correct` in wrk's stats.c).
fn mean_of_wrk(latencies: impl Iterator<Item = (f64, f64)>, turn_ns: f64) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for (latency_ns, times) in latencies {
        let mut one_ns = latency_ns;
        loop {
            sum += times * one_ns;
            count += times;
            one_ns -= turn_ns;
            if one_ns <= turn_ns {
                break;
            }
        }
    }
    sum / count
}

fn printed(command: &mut Command) -> Result<String> {
    let output =
        command.output().with_context(|| format!("cannot start {command:?}: scripts/setup.sh bench"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{command:?}: {}{text}", String::from_utf8_lossy(&output.stderr));
    Ok(text)
}

fn wrk(url: &str, users: u32, amount: Amount) -> Result<Sample> {
    let (users, seconds) = (users.to_string(), format!("{}s", amount.seconds));
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

fn redis_benchmark(port: u16, what: &str, users: u32, amount: Amount) -> Result<Sample> {
    let mut command = Command::new("redis-benchmark");
    command.args(["-h", "127.0.0.1", "-p", &port.to_string(), "-c", &users.to_string(), "-t", what, "--csv"]);
    command.args([
        "-n",
        &amount.requests.to_string(),
        "-d",
        &VALUE_BYTES.to_string(),
        "-r",
        &KEYS.to_string(),
    ]);
    let text = printed(&mut command)?;
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
    fn a_mean_is_wrk_s_where_some_take_longer_than_two_turns() {
        let turn = 100.0;
        assert_eq!(mean_of_wrk([(90.0, 3.0), (150.0, 1.0)].into_iter(), turn), 105.0);
        // By wrk's own loop: from 250 - 100 on, for as long as it is more than 100.
        let by_hand = (90.0 * 3.0 + 2.0 * (350.0 + 250.0 + 150.0)) / 9.0;
        assert_eq!(mean_of_wrk([(90.0, 3.0), (350.0, 2.0)].into_iter(), turn), by_hand);
        assert_eq!(mean_of_wrk([(200.0, 1.0)].into_iter(), turn), 200.0);
    }

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
