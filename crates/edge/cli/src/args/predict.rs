//! `virtbench predict`

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use virtbench_model::predict::PredictionMethod;

use super::vm::{VerifyArgs, VmArgs};

/// How to predict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MethodArg {
    /// Whichever fits what is known
    Auto,
    /// The surface's ratio where it is like the application ([ESX Disk 2003], section 4)
    Ratio,
    /// Latencies of a model load on both sides, added up ([ESX Disk 2003], section 5)
    Latency,
    /// Each part of the application's time by what it costs in the VM (`virtbench costs`)
    Scaling,
    /// A closed queueing network of processors and disk
    Queueing,
}

impl MethodArg {
    /// The method, or none for a choice.
    pub fn method(self) -> Option<PredictionMethod> {
        match self {
            Self::Auto => None,
            Self::Ratio => Some(PredictionMethod::Ratio),
            Self::Latency => Some(PredictionMethod::Latency),
            Self::Scaling => Some(PredictionMethod::Scaling),
            Self::Queueing => Some(PredictionMethod::Queueing),
        }
    }
}

/// `virtbench predict`
#[derive(Debug, Args)]
#[command(after_help = "\
A surface is the run folder of `study native-vs-vm`, or of `study adapters` for the VM's side beside it. A \
model load's results are figures in TOML, such as docs/data/paper1-thar-vm.toml.

A side is the name of an environment of the surface: native, vm, or vm:SETUP where SETUP is an adapter or a \
configuration, such as vm:nvme or vm:virtio-blk,iothread=on.

Examples:
  virtbench predict --profile db.json --surface run
  virtbench predict --profile db.json --surface run --surface adapters --to vm:nvme --html prediction.html
  virtbench predict --profile db.json --costs costs.json --verify
  virtbench predict --profile db.json --run-model --model-out runs.toml --verify
  virtbench predict --profile docs/data/paper1-mailserver.toml --model docs/data/paper1-thar-vm.toml --as-published")]
pub struct PredictArgs {
    /// The application: a profile of `virtbench profile --out`, or figures in TOML
    #[arg(long, value_name = "FILE")]
    pub profile: PathBuf,
    /// Where it ran
    #[arg(long, value_name = "SIDE", default_value = "native")]
    pub from: String,
    /// Where it is to run
    #[arg(long, value_name = "SIDE", default_value = "vm")]
    pub to: String,
    /// Run folder that holds a side, or both; may be given twice
    #[arg(long, value_name = "DIR")]
    pub surface: Vec<PathBuf>,
    /// Results of a model load on both sides
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,
    /// Run a load like the application's on both sides, with the think time with which it does as much I/O on this
    /// host, and take its results; --size and --target-dir say where
    #[arg(long, conflicts_with = "model")]
    pub run_model: bool,
    /// Write those results here, for --model
    #[arg(long, value_name = "FILE", requires = "run_model")]
    pub model_out: Option<PathBuf>,
    /// What pieces of work cost on both sides: the file of `virtbench costs --out`
    #[arg(long, value_name = "FILE")]
    pub costs: Option<PathBuf>,
    /// How to predict
    #[arg(long, value_enum, default_value = "auto")]
    pub method: MethodArg,
    /// How much longer computing takes in the VM, in percent: one figure, or user,system
    #[arg(long, value_name = "PERCENT[,PERCENT]", value_parser = overheads, allow_negative_numbers = true)]
    pub cpu_overhead: Option<(f64, f64)>,
    /// Time of the same computation there as a multiple of that here, where the processors differ
    #[arg(long, value_name = "FACTOR", requires = "cpu_overhead", default_value = "1")]
    pub time_factor: f64,
    /// Processors of the VM [default: those of the surface's VM, or of the costs']
    #[arg(long, value_name = "N")]
    pub vcpus: Option<u32>,
    /// Use a surface of another host than the profile, or of another adapter than --to names
    #[arg(long)]
    pub allow_other: bool,
    /// Round where [ESX Disk 2003] does: times to 0.1 ms, the ratio to two digits
    #[arg(long)]
    pub as_published: bool,
    /// Write a page with the breakdown of an operation's time here
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
    /// Trying it
    #[command(flatten)]
    pub verify: VerifyArgs,
    /// The VM
    #[command(flatten)]
    pub vm: VmArgs,
}

/// User's and system's, as shares.
fn overheads(text: &str) -> Result<(f64, f64), String> {
    let share = |text: &str| {
        let value: Option<f64> = text.trim().trim_end_matches('%').trim().parse().ok();
        value
            .filter(|percent| (-90.0..=100_000.0).contains(percent))
            .map(|percent| percent / 100.0)
            .ok_or_else(|| "write percentages above -90, such as 9.4 or 3,25".to_owned())
    };
    match text.split_once(',') {
        Some((user, system)) => Ok((share(user)?, share(system)?)),
        None => share(text).map(|both| (both, both)),
    }
}

#[cfg(test)]
mod tests {
    use super::overheads;

    #[test]
    fn overheads_are_one_or_two_percentages() {
        assert_eq!(overheads("9.4%"), Ok((0.094, 0.094)));
        assert_eq!(overheads("3,25"), Ok((0.03, 0.25)));
        for text in ["", "x", "-95", "1,", "NaN"] {
            assert!(overheads(text).is_err(), "{text}");
        }
    }
}
