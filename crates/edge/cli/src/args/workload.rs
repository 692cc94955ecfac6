//! `virtbench workload`

use std::path::PathBuf;

use clap::Args;
use virtbench_workload::{WorkloadSpec, parse_workload};

/// `virtbench workload`
#[derive(Debug, Args)]
#[command(after_help = "\
A workload is written as in studies: NAME[:KEY=VALUE,...].

  memory   COPY, SCALE, ADD and TRIAD over arrays, as STREAM and RAMSMP measure
           threads   [one on each processor]
           array     size of each of three arrays [four times the last-level cache]
           kernel    how long each is repeated in a run [300ms]
           stores    regular, non-temporal or both [both]
  cpu      twelve computations in the kinds of SPECjvm2008; results are checked
           threads   [one on each processor]
           kernel    how long each is repeated in a run [1s]
           kernels   some of parse+compress+aes+sha+sign-verify+fft+lu+monte-carlo+sor+sparse+serial+xml

Every workload has:
  runs          how often it is run, a sample of each figure a time [5]
  time          instead of runs: again and again for this long
  ramp          run for this long before measuring [0s]
  limit         ended after this long at the latest [1h]
  interval      of the series [500ms]
  seed          of random choices [1]
  ballast       memory kept resident meanwhile [none]
  drop-caches   empty the page cache before each run; on this host only of the workload's own files

Examples:
  virtbench workload memory
  virtbench workload memory:threads=1,stores=regular
  virtbench workload cpu:kernel=500ms,runs=3 --json
  virtbench workload cpu:kernels=aes+fft,ballast=1GiB")]
pub struct WorkloadArgs {
    /// What is run: NAME[:KEY=VALUE,...], see below
    #[arg(value_name = "WORKLOAD", value_parser = parse_workload)]
    pub workload: WorkloadSpec,
    /// Folder for workloads that need storage
    #[arg(long, value_name = "DIR")]
    pub place: Option<PathBuf>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}
