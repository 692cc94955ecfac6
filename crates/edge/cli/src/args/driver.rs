//! What drivers of users are told, whatever their users do.

use std::num::NonZero;
use std::thread::available_parallelism;

use clap::Args;
use virtbench_units::{parse_duration_ns, parse_positive_duration_ns};

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
