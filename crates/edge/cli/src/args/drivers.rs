//! Drivers of users: `virtbench oltp` and `virtbench users`, and what both are told.

use std::num::NonZero;
use std::path::PathBuf;
use std::thread::available_parallelism;

use clap::{Args, Subcommand, ValueEnum};
use virtbench_oltp::Address;
use virtbench_record::{OltpChoice, OltpIsolation, OltpMix};
use virtbench_units::{parse_bytes, parse_duration_ns, parse_positive_duration_ns};
use virtbench_users::Page;

use super::load_args::{ArrivalsArg, per_second};

/// Processors for each thread of the driver.
const PROCESSORS_EACH: usize = 8;

/// How long a driver of users works, and how.
#[derive(Debug, Args)]
pub struct DriverArgs {
    /// Threads of the driver [default: one for eight processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,
    /// How long to measure
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_positive_duration_ns)]
    pub time: u64,
    /// How long to run before that
    #[arg(long, alias = "ramp-up", value_name = "TIME", default_value = "5s", value_parser = parse_duration_ns)]
    pub ramp: u64,
    /// Of every random choice
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// When users begin, in nanoseconds of the monotonic clock, so that several loads begin together
    #[arg(long, value_name = "NS", hide = true)]
    pub begin_at: Option<u64>,
}

impl DriverArgs {
    /// Threads for so many users.
    pub fn threads(&self, users: u32) -> u32 {
        let processors = available_parallelism().map_or(1, NonZero::get);
        let threads = u32::try_from((processors / PROCESSORS_EACH).max(1)).unwrap_or(1);
        self.threads.unwrap_or_else(|| threads.min(users))
    }
}

const OLTP_EXAMPLES: &str = "\
Transactions after TPC-C's specification; not comparable with published TPC results.

The password is taken from PGPASSWORD (MariaDB: MYSQL_PWD) or from --password-file, never from the command line.
Connections are encrypted where the address has ?sslmode=require, verify-ca or verify-full (with sslrootcert=FILE).

Examples:
  createdb tpcc
  virtbench oltp populate --database postgresql://postgres@localhost/tpcc --warehouses 10
  virtbench oltp run --database postgresql://postgres@localhost/tpcc --users 16 --time 60s
  virtbench oltp run --database 'mariadb://root@localhost/tpcc?socket=/run/mysqld/mysqld.sock' --rate 200/s
  virtbench oltp check --database postgresql://postgres@localhost/tpcc";

/// `virtbench oltp`
#[derive(Debug, Subcommand)]
pub enum OltpCommand {
    /// Make the nine tables and fill them from a seed
    #[command(after_help = OLTP_EXAMPLES)]
    Populate(PopulateArgs),
    /// Apply the five transactions, measure them, and check the database's consistency afterwards
    #[command(after_help = OLTP_EXAMPLES)]
    Run(Box<RunArgs>),
    /// Check the database's consistency
    #[command(after_help = OLTP_EXAMPLES)]
    Check(CheckArgs),
}

/// Where the database is.
#[derive(Debug, Args)]
pub struct DatabaseArgs {
    /// postgresql://USER@HOST:PORT/DATABASE or mariadb://USER@HOST:PORT/DATABASE; at its end ?socket=PATH for a Unix
    /// socket, ?sslmode=require to encrypt, ?schema=NAME
    #[arg(long, value_name = "URI", value_parser = Address::parse)]
    pub database: Address,
    /// The password's file, of one line
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `virtbench oltp populate`
#[derive(Debug, Args)]
pub struct PopulateArgs {
    /// The database
    #[command(flatten)]
    pub database: DatabaseArgs,
    /// Warehouses, of some 100 MB each
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub warehouses: u32,
    /// Of every random choice: the same rows for the same seed
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// Remove a population that is there
    #[arg(long)]
    pub replace: bool,
}

/// Which conditions are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DepthArg {
    /// The first four, which are quick
    Required,
    /// All that hold after a load
    All,
}

/// `virtbench oltp check`
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The database
    #[command(flatten)]
    pub database: DatabaseArgs,
    /// Which conditions
    #[arg(long, value_enum, default_value = "all")]
    pub conditions: DepthArg,
}

/// How the next transaction is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ChoiceArg {
    /// From a shuffled deck of as many cards as the shares add up to: each user keeps the shares exactly
    Deck,
    /// By chance
    Weights,
}

/// How transactions are kept apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum IsolationArg {
    /// READ COMMITTED
    ReadCommitted,
    /// REPEATABLE READ
    RepeatableRead,
    /// SERIALIZABLE, as the specification asks of most
    Serializable,
}

/// Who runs Deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DeliveryArg {
    /// Connections of their own, from a queue, as the specification has it
    Deferred,
    /// The user, at once
    Inline,
}

/// Whether statements are prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PreparedArg {
    /// Once for each connection
    Yes,
    /// Not at all: each is sent with its text
    No,
}

/// `virtbench oltp run`
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The database
    #[command(flatten)]
    pub database: DatabaseArgs,
    /// The database must have so many warehouses [default: as many as it has]
    #[arg(long, value_name = "N")]
    pub warehouses: Option<u32>,
    /// Users; each has a connection, and deferred Deliveries have one for ten users
    #[arg(long, value_name = "N", default_value = "8", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub users: u32,
    /// How long, and how
    #[command(flatten)]
    pub driver: DriverArgs,
    /// How the load is applied
    #[command(flatten)]
    pub shape: OltpShapeArgs,
}

/// How the load is applied.
#[derive(Debug, Args)]
pub struct OltpShapeArgs {
    /// Open loop: start so many transactions per second, of all users together; response times then count from the intended
    /// start
    #[arg(long, value_name = "N/s", value_parser = per_second, help_heading = "Load")]
    pub rate: Option<f64>,
    /// When they arrive
    #[arg(long, value_enum, default_value = "constant", requires = "rate", help_heading = "Load")]
    pub arrivals: ArrivalsArg,
    /// Keying and think times of the specification, times this factor
    #[arg(long, value_name = "FACTOR", num_args = 0..=1, default_missing_value = "1", value_parser = factor, conflicts_with = "rate", help_heading = "Load")]
    pub think_times: Option<f64>,
    /// Shares of New-Order, Payment, Order-Status, Delivery and Stock-Level
    #[arg(long, value_name = "N,N,N,N,N", default_value = "45,43,4,4,4", value_parser = mix, help_heading = "Load")]
    pub mix: [u32; 5],
    /// How the next transaction is chosen
    #[arg(long, value_enum, default_value = "deck", help_heading = "Load")]
    pub choice: ChoiceArg,
    /// Who runs Deliveries
    #[arg(long, value_enum, default_value = "deferred", help_heading = "Load")]
    pub delivery: DeliveryArg,
    /// How transactions are kept apart
    #[arg(long, value_enum, default_value = "read-committed", help_heading = "Load")]
    pub isolation: IsolationArg,
    /// Whether statements are prepared once for each connection; behind a pooler that gives each transaction another connection of the
    /// server, such as pgbouncer's transaction mode, they are not to be
    #[arg(long, value_enum, default_value = "yes", help_heading = "Load")]
    pub prepared: PreparedArg,
    /// How often a transaction is tried again after a deadlock, a serialization failure, or a lock wait that is too long
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(0..=1000), help_heading = "Load")]
    pub retries: u32,
    /// End the load when a transaction takes longer
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_positive_duration_ns, help_heading = "Load")]
    pub timeout: u64,
    /// Which conditions of consistency are checked afterwards
    #[arg(long, value_enum, default_value = "required", help_heading = "Load")]
    pub conditions: DepthArg,
}

impl OltpShapeArgs {
    /// Shares, and how they are drawn from.
    pub fn mix(&self) -> OltpMix {
        let choice = match self.choice {
            ChoiceArg::Deck => OltpChoice::Deck,
            ChoiceArg::Weights => OltpChoice::Weights,
        };
        OltpMix { shares: self.mix, choice }
    }

    /// As records name it.
    pub fn isolation(&self) -> OltpIsolation {
        match self.isolation {
            IsolationArg::ReadCommitted => OltpIsolation::ReadCommitted,
            IsolationArg::RepeatableRead => OltpIsolation::RepeatableRead,
            IsolationArg::Serializable => OltpIsolation::Serializable,
        }
    }
}

fn mix(text: &str) -> Result<[u32; 5], String> {
    let shares: Option<Vec<u32>> = text.split(',').map(|share| share.trim().parse().ok()).collect();
    let shares: Option<[u32; 5]> = shares.and_then(|shares| shares.try_into().ok());
    shares.ok_or_else(|| "write five whole numbers, for example 45,43,4,4,4".to_owned())
}

fn factor(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|factor| (0.0..=100.0).contains(factor))
        .ok_or_else(|| "a factor lies between 0 and 100".to_owned())
}

const USERS_EXAMPLES: &str = "\
Examples:
  virtbench users web 127.0.0.1:8080 --path /index.html=3 --path /16k --users 16
  virtbench users web 127.0.0.1:8080 --path / --rate 200/s --users 64 --time 60s
  virtbench users key-value 127.0.0.1:6379 --keys 100000 --value-size 1KiB --users 50
  virtbench users mail 127.0.0.1 --smtp-port 25 --imap-port 143 --user 'user{}' --mailboxes 20 --password bench --users 20 --think 10s";

/// `virtbench users`
#[derive(Debug, Subcommand)]
pub enum UsersCommand {
    /// Ask a web server for pages, over HTTP/1.1
    #[command(after_help = USERS_EXAMPLES)]
    Web(Box<WebArgs>),
    /// Get and set values of a store, over Redis's protocol; only keys that begin with virtbench: are touched
    #[command(after_help = USERS_EXAMPLES)]
    KeyValue(Box<KeyValueArgs>),
    /// Send mail over SMTP and read it over IMAP
    #[command(after_help = USERS_EXAMPLES)]
    Mail(Box<MailArgs>),
}

/// How users work, whatever they ask for.
#[derive(Debug, Args)]
pub struct UsersLoadArgs {
    /// Users; each has a connection
    #[arg(long, value_name = "N", default_value = "8", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub users: u32,
    /// Open loop: start so many operations per second, of all users together; response times then count from the intended
    /// start
    #[arg(long, value_name = "N/s", value_parser = per_second, help_heading = "Load")]
    pub rate: Option<f64>,
    /// When they arrive
    #[arg(long, value_enum, default_value = "constant", requires = "rate", help_heading = "Load")]
    pub arrivals: ArrivalsArg,
    /// How long a user thinks before an operation, on average; drawn from an exponential distribution [default: not at all]
    #[arg(long, value_name = "TIME", value_parser = parse_duration_ns, conflicts_with = "rate", help_heading = "Load")]
    pub think: Option<u64>,
    /// An operation that takes longer has failed
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_positive_duration_ns, help_heading = "Load")]
    pub timeout: u64,
    /// How long, and how
    #[command(flatten)]
    pub driver: DriverArgs,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `virtbench users web`
#[derive(Debug, Args)]
pub struct WebArgs {
    /// HOST or HOST:PORT of the server; not encrypted
    #[arg(value_name = "ADDRESS")]
    pub address: String,
    /// A page, and how often it is asked for beside the others; several times for several pages
    #[arg(long, value_name = "PATH[=WEIGHT]", default_value = "/", value_parser = Page::parse)]
    pub path: Vec<Page>,
    /// The name of the site, where the server has several [default: the address]
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// How users work
    #[command(flatten)]
    pub load: UsersLoadArgs,
}

/// `virtbench users key-value`
#[derive(Debug, Args)]
pub struct KeyValueArgs {
    /// HOST or HOST:PORT of the store. A password is taken from REDISCLI_AUTH
    #[arg(value_name = "ADDRESS")]
    pub address: String,
    /// Keys, all set before users begin
    #[arg(long, value_name = "N", default_value = "10000", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub keys: u64,
    /// Size of each value
    #[arg(long, value_name = "SIZE", default_value = "100B", value_parser = parse_bytes)]
    pub value_size: u64,
    /// Shares of get and set
    #[arg(long, value_name = "N,N", default_value = "90,10", value_parser = shares::<2>)]
    pub mix: [u32; 2],
    /// How users work
    #[command(flatten)]
    pub load: UsersLoadArgs,
}

/// `virtbench users mail`
#[derive(Debug, Args)]
pub struct MailArgs {
    /// The host of both servers; not encrypted
    #[arg(value_name = "HOST")]
    pub host: String,
    /// The port of the server that takes mail
    #[arg(long, value_name = "PORT", default_value = "25", value_parser = clap::value_parser!(u16).range(1..))]
    pub smtp_port: u16,
    /// The port of the server that has the mailboxes
    #[arg(long, value_name = "PORT", default_value = "143", value_parser = clap::value_parser!(u16).range(1..))]
    pub imap_port: u16,
    /// The name of each mailbox's user; {} stands for its number, from 1
    #[arg(long, value_name = "NAME", default_value = "user{}")]
    pub user: String,
    /// Mailboxes, which users take in turn
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub mailboxes: u32,
    /// The password of all; others on this machine may see it here
    #[arg(long, value_name = "PASSWORD", conflicts_with = "password_file")]
    pub password: Option<String>,
    /// The password's file, of one line
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// Where mail goes to: NAME@DOMAIN
    #[arg(long, value_name = "DOMAIN", default_value = "localhost")]
    pub domain: String,
    /// Size of a message's text
    #[arg(long, value_name = "SIZE", default_value = "4KiB", value_parser = parse_bytes)]
    pub message_size: u64,
    /// Shares of send, check, read and append
    #[arg(long, value_name = "N,N,N,N", default_value = "2,4,3,1", value_parser = shares::<4>)]
    pub mix: [u32; 4],
    /// How users work
    #[command(flatten)]
    pub load: UsersLoadArgs,
}

fn shares<const N: usize>(text: &str) -> Result<[u32; N], String> {
    let shares: Option<Vec<u32>> = text.split(',').map(|share| share.trim().parse().ok()).collect();
    let shares: Option<[u32; N]> = shares.and_then(|shares| shares.try_into().ok());
    shares
        .filter(|shares| shares.iter().any(|share| *share > 0))
        .ok_or_else(|| format!("write {N} whole numbers with commas between, not all of them zero"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_factors_are_read() {
        assert_eq!(mix("45, 43,4,4,4"), Ok([45, 43, 4, 4, 4]));
        assert!(["", "1,2,3,4", "1,2,3,4,5,6", "1,2,3,4,-5"].iter().all(|text| mix(text).is_err()));
        assert_eq!(factor("0.1"), Ok(0.1));
        assert!(["-1", "nan", "inf", "x"].iter().all(|text| factor(text).is_err()));
    }

    #[test]
    fn shares_are_so_many_whole_numbers() {
        assert_eq!(shares::<2>("90, 10"), Ok([90, 10]));
        assert!(["", "1", "1,2,3", "0,0", "1,-1", "a,b"].iter().all(|text| shares::<2>(text).is_err()));
    }
}
