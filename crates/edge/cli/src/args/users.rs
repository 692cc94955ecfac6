//! `virtbench users`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use virtbench_units::{parse_bytes, parse_duration_ns, parse_positive_duration_ns};
use virtbench_users::Page;

use super::driver::DriverArgs;
use super::load_args::{ArrivalsArg, per_second};

const EXAMPLES: &str = "\
Examples:
  virtbench users web 127.0.0.1:8080 --path /index.html=3 --path /16k --users 16
  virtbench users web 127.0.0.1:8080 --path / --rate 200/s --users 64 --time 60s
  virtbench users key-value 127.0.0.1:6379 --keys 100000 --value-size 1KiB --users 50
  virtbench users mail 127.0.0.1 --smtp-port 25 --imap-port 143 --user 'user{}' --mailboxes 20 --password bench --users 20 --think 10s";

/// `virtbench users`
#[derive(Debug, Subcommand)]
pub enum UsersCommand {
    /// Ask a web server for pages, over HTTP/1.1
    #[command(after_help = EXAMPLES)]
    Web(Box<WebArgs>),
    /// Get and set values of a store, over Redis's protocol; only keys that begin with virtbench: are touched
    #[command(after_help = EXAMPLES)]
    KeyValue(Box<KeyValueArgs>),
    /// Send mail over SMTP and read it over IMAP
    #[command(after_help = EXAMPLES)]
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
    fn shares_are_so_many_whole_numbers() {
        assert_eq!(shares::<2>("90, 10"), Ok([90, 10]));
        assert!(["", "1", "1,2,3", "0,0", "1,-1", "a,b"].iter().all(|text| shares::<2>(text).is_err()));
    }
}
