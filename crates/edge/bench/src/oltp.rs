//! TPC-C's transactions, driven by virtbench and by go-tpc on one database of PostgreSQL and one of MariaDB; on PostgreSQL by pgbench where
//! go-tpc does not know it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use virtbench_oltp::{LocalServer, Population, populate};
use virtbench_record::DatabaseKind;

use crate::footprint;
use crate::pairs::{Verdict, alternated, median};
use crate::tools::virtbench;

/// The functions that pgbench calls: the same statements, run inside the server.
const FUNCTIONS: &str = include_str!("oltp.sql");
/// What each user of pgbench calls, with its share.
const CALLS: [(&str, u32, &str); 5] = [
    ("new_order", 45, "SELECT bench_new_order(:w, :d, :c, :n)"),
    ("payment", 43, "SELECT bench_payment(:w, :d, :c, :n)"),
    ("order_status", 4, "SELECT bench_order_status(:w, :d, :c)"),
    ("delivery", 4, "SELECT bench_delivery(:w)"),
    ("stock_level", 4, "SELECT bench_stock_level(:w, :d)"),
];
const WAREHOUSES: u32 = 10;
/// What populating them may take, in seconds.
const MOST_POPULATING_S: f64 = 30.0;
const USERS: u32 = 8;
/// Of each measurement.
const SECONDS: u32 = 12;
/// Pairs at least.
const LEAST_ROUNDS: usize = 3;
/// A tick of the accounts in `/proc`, in milliseconds.
const TICK_MS: f64 = 10.0;
/// Memory and logs that hold the population, so that drivers are compared and not the disk.
const SETTINGS: [&str; 6] = [
    "fsync=off",
    "shared_buffers=1GB",
    "max_wal_size=8GB",
    "checkpoint_timeout=30min",
    "max_connections=50",
    "listen_addresses=127.0.0.1",
];

const SETTINGS_MARIADB: [&str; 7] = [
    "innodb-flush-log-at-trx-commit=0",
    "innodb-buffer-pool-size=1G",
    "innodb-log-file-size=2G",
    "innodb-doublewrite=0",
    "max-connections=50",
    "skip-networking=0",
    "bind-address=127.0.0.1",
];

/// What a driver did.
#[derive(Debug, Clone, Copy)]
struct Driven {
    per_second: f64,
    /// CPU of the driver's process for each transaction, in milliseconds.
    cpu_ms: f64,
}

/// Who applies the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Driver {
    Virtbench,
    GoTpc,
    Pgbench,
}

/// A server of either kind, with what drives it.
struct Bench<'a> {
    server: LocalServer,
    kind: DatabaseKind,
    folder: &'a Path,
    go_tpc: PathBuf,
}

/// Alternates the drivers, and holds what is promised of the ratios.
pub fn check(rounds: usize, folder: &Path) -> Result<Vec<Verdict>> {
    let mut verdicts = Vec::new();
    for (kind, settings) in
        [(DatabaseKind::PostgreSql, &SETTINGS[..]), (DatabaseKind::MariaDb, &SETTINGS_MARIADB)]
    {
        let server = LocalServer::start(kind, settings)?;
        let population = Population { warehouses: WAREHOUSES, seed: 1 };
        let made = populate(&server.connect(), population, false, &AtomicBool::new(false), &mut |_| {})?;
        let bench = Bench { server, kind, folder, go_tpc: find_go_tpc() };
        let name = bench.name();
        println!(
            "TPC-C's transactions on {name}, {WAREHOUSES} warehouses, {USERS} users, no think times, {SECONDS} s each"
        );
        if kind == DatabaseKind::PostgreSql {
            let took = made.took.as_secs_f64();
            verdicts.push(footprint::line("populating ten warehouses (s)", took, MOST_POPULATING_S));
        }
        verdicts.extend(bench.compare(rounds)?);
    }
    Ok(verdicts)
}

/// Where `scripts/setup-go-tpc.sh` puts it, or in `PATH`.
fn find_go_tpc() -> PathBuf {
    let own = virtbench_lab::cache_directory().join("go-tpc/go-tpc");
    if own.is_file() { own } else { "go-tpc".into() }
}

impl Bench<'_> {
    fn name(&self) -> &'static str {
        if self.kind == DatabaseKind::PostgreSql { "PostgreSQL" } else { "MariaDB" }
    }

    /// go-tpc where it knows this database, else pgbench, else nobody.
    fn other(&self) -> Option<Driver> {
        let said = Command::new(&self.go_tpc).args(["tpcc", "run", "--help"]).output();
        let said =
            said.map_or_else(|_| String::new(), |said| String::from_utf8_lossy(&said.stdout).into_owned());
        match self.kind {
            DatabaseKind::PostgreSql if said.contains("postgres") => Some(Driver::GoTpc),
            DatabaseKind::PostgreSql => Some(Driver::Pgbench),
            DatabaseKind::MariaDb => said.contains("mysql").then_some(Driver::GoTpc),
        }
    }

    fn compare(&self, rounds: usize) -> Result<Vec<Verdict>> {
        let Some(other) = self.other() else {
            println!("there is no go-tpc: scripts/setup-go-tpc.sh builds it");
            return Ok(vec![Verdict::Broken]);
        };
        if other == Driver::Pgbench {
            println!(
                "there is no go-tpc that knows PostgreSQL (scripts/setup-go-tpc.sh builds it); pgbench with transactions as \
                 functions saves the client's part, so that its ratios promise nothing"
            );
            self.server.query(&[FUNCTIONS])?;
        }
        let measured = (0..rounds.max(LEAST_ROUNDS)).map(|round| -> Result<(Driven, Driven)> {
            let ours = || self.drive(Driver::Virtbench);
            let theirs = || self.drive(other);
            alternated(round, ours, theirs)
        });
        let pairs: Vec<(Driven, Driven)> = measured.collect::<Result<_>>()?;
        let is_promised = other == Driver::GoTpc;
        let (least, most) = if is_promised { (1.0, 0.5) } else { (0.0, f64::INFINITY) };
        let figure = |what: &str| format!("{}, {what}", self.name());
        Ok(vec![
            line(&figure("transactions/s"), &pairs, |driven| driven.per_second, (least, f64::INFINITY)),
            line(&figure("driver's CPU each (ms)"), &pairs, |driven| driven.cpu_ms, (0.0, most)),
        ])
    }

    /// Runs a driver to its end. Its CPU time is what the kernel accounts for ended children.
    fn drive(&self, driver: Driver) -> Result<Driven> {
        let mut command = self.command(driver)?;
        let before = children_cpu_ms()?;
        let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success(), "{command:?}: {}{text}", String::from_utf8_lossy(&output.stderr));
        let transactions = match driver {
            Driver::Virtbench => of_virtbench(&text),
            Driver::GoTpc => of_go_tpc(&text),
            Driver::Pgbench => of_pgbench(&text),
        };
        let transactions = transactions.with_context(|| format!("{driver:?} printed no figures: {text}"))?;
        let cpu_ms = (children_cpu_ms()? - before) / transactions;
        Ok(Driven { per_second: transactions / f64::from(SECONDS), cpu_ms })
    }

    fn command(&self, driver: Driver) -> Result<Command> {
        let seconds = format!("{SECONDS}s");
        let (users, port, warehouses) =
            (USERS.to_string(), self.server.port().to_string(), WAREHOUSES.to_string());
        let is_mariadb = self.kind == DatabaseKind::MariaDb;
        Ok(match driver {
            Driver::Virtbench => {
                let scheme = if is_mariadb { "mariadb://root" } else { "postgresql://postgres" };
                let database = format!("{scheme}@127.0.0.1:{port}/bench");
                let mut command = Command::new(virtbench());
                command.args(["oltp", "run", "--json", "--database", &database, "--users", &users]);
                command.args(["--ramp", "0s", "--time", &seconds, "--delivery", "inline"]);
                command
            }
            Driver::GoTpc => {
                let mut command = Command::new(&self.go_tpc);
                command.args(["tpcc", "run", "-H", "127.0.0.1", "-P", &port, "-D", "bench", "-T", &users]);
                // Read committed, as ours.
                command.args(["--warehouses", &warehouses, "--time", &seconds, "--isolation", "2"]);
                command.args(["--ignore-error", "--silence"]);
                if is_mariadb {
                    command.args(["-d", "mysql", "-U", "root"]);
                } else {
                    command.args(["-d", "postgres", "-U", "postgres", "--conn-params", "sslmode=disable"]);
                }
                command
            }
            Driver::Pgbench => {
                let mut command = Command::new("pgbench");
                command.args(["-h", "127.0.0.1", "-p", &port, "-U", "postgres", "-n", "-M", "prepared"]);
                command.args(["-c", &users, "-T", &SECONDS.to_string(), "--max-tries", "10"]);
                for (name, share, call) in CALLS {
                    let path = self.folder.join(format!("{name}.sql"));
                    let drawn = format!(
                        "\\set w random(1, {WAREHOUSES})\n\\set d random(1, 10)\n\\set c random(1, 3000)\n\\set n random(5, 15)\n"
                    );
                    fs::write(&path, format!("{drawn}{call};\n"))?;
                    command.arg("-f").arg(format!("{}@{share}", path.display()));
                }
                command.arg("bench");
                command
            }
        })
    }
}

fn line(
    figure: &str,
    pairs: &[(Driven, Driven)],
    of: fn(&Driven) -> f64,
    (least, most): (f64, f64),
) -> Verdict {
    let ratios: Vec<f64> = pairs.iter().map(|(ours, theirs)| of(ours) / of(theirs)).collect();
    let (low, high) =
        ratios.iter().fold((f64::MAX, f64::MIN), |(l, h), ratio| (l.min(*ratio), h.max(*ratio)));
    let (ours, theirs) = (
        median(pairs.iter().map(|(ours, _)| of(ours)).collect()),
        median(pairs.iter().map(|(_, theirs)| of(theirs)).collect()),
    );
    let ratio = median(ratios);
    let kept = (least..=most).contains(&ratio);
    println!(
        "{:<56} {ours:>10.3} {theirs:>10.3} {ratio:>8.3} {:>15}  {}",
        format!("oltp: {figure}"),
        format!("{low:.2} to {high:.2}"),
        if kept { "kept" } else { "BROKEN" }
    );
    if kept { Verdict::Kept } else { Verdict::Broken }
}

/// User and system time of children that have ended and been waited for (proc(5), `stat`).
fn children_cpu_ms() -> Result<f64> {
    let text = fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> =
        text.rsplit_once(") ").map(|(_, rest)| rest.split(' ').collect()).unwrap_or_default();
    let ticks = |place: usize| fields.get(place).and_then(|field| field.parse::<f64>().ok());
    let sum = ticks(13).zip(ticks(14)).map(|(user, system)| user + system);
    Ok(sum.context("/proc/self/stat says nothing of children")? * TICK_MS)
}

fn of_virtbench(text: &str) -> Option<f64> {
    let outcome: Value = serde_json::from_str(text).ok()?;
    let kinds = outcome["transactions"].as_object()?;
    Some(kinds.values().filter_map(|kind| kind["completed"].as_f64()).sum())
}

/// Adds up the counts of lines such as `[Summary] PAYMENT - Takes(s): 9.9, Count: 12, ...`.
fn of_go_tpc(text: &str) -> Option<f64> {
    let lines = text.lines().filter(|line| line.starts_with("[Summary]") && !line.contains("_ERR"));
    let counts =
        lines.filter_map(|line| line.split_once("Count: ")?.1.split(',').next()?.trim().parse::<f64>().ok());
    Some(counts.sum()).filter(|sum| *sum > 0.0)
}

fn of_pgbench(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("number of transactions actually processed: "));
    line?.split('/').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_drivers_print_is_read() {
        let go = "[Current] NEW_ORDER - Takes(s): 9.9, Count: 7\n[Summary] NEW_ORDER - Takes(s): 9.9, Count: 12, TPM: 1\n\
                  [Summary] NEW_ORDER_ERR - Takes(s): 9.9, Count: 5\n[Summary] PAYMENT - Takes(s): 9.9, Count: 30, TPM: 1\n";
        assert_eq!((of_go_tpc(go), of_go_tpc("nothing")), (Some(42.0), None));
        assert_eq!(of_pgbench("x\nnumber of transactions actually processed: 512\n"), Some(512.0));
        let json = r#"{"transactions": {"a": {"completed": 3}, "b": {"completed": 4}}}"#;
        assert_eq!((of_virtbench(json), of_virtbench("x")), (Some(7.0), None));
        assert!(children_cpu_ms().is_ok());
    }

    #[test]
    fn the_functions_do_their_transactions() {
        let server = LocalServer::start(DatabaseKind::PostgreSql, &SETTINGS).unwrap();
        let population = Population { warehouses: 1, seed: 1 };
        populate(&server.connect(), population, false, &AtomicBool::new(false), &mut |_| {}).unwrap();
        server.query(&[FUNCTIONS]).unwrap();
        for (name, _, call) in CALLS {
            let call = call.replace(":w", "1").replace(":d", "1").replace(":c", "1").replace(":n", "5");
            server.query(&[call.as_str()]).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }

    #[test]
    fn pgbench_finds_the_functions_that_it_calls() {
        for (_, _, call) in CALLS {
            let name = call.trim_start_matches("SELECT ").split('(').next().unwrap();
            assert!(FUNCTIONS.contains(&format!("FUNCTION {name}(")), "{name}");
        }
    }
}
