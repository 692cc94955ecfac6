//! The command line. Help, manual page and completions are generated from this.

#[cfg(feature = "full")]
pub mod appliance;
#[cfg(feature = "full")]
pub mod appliance_studies;
pub mod compare;
#[cfg(feature = "full")]
mod deviation;
#[cfg(feature = "full")]
pub mod drivers;
#[cfg(feature = "full")]
pub mod fence;
#[cfg(feature = "full")]
pub mod fence_changes;
mod groups;
#[cfg(feature = "full")]
pub mod history;
mod left_out;
mod load_args;
pub mod numbers;
#[cfg(feature = "full")]
pub mod operations;
pub mod platform_study;
#[cfg(feature = "full")]
pub mod predict;
pub mod shape;
pub mod study;
#[cfg(feature = "full")]
pub mod tiles_study;
pub mod workload;

use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};

#[cfg(feature = "full")]
pub use deviation::{DeviationArgs, SaturatingArg, Systems};
pub use groups::{command, study as study_command};
pub use left_out::{left_out, refuse_left_out};
pub use load_args::{ApplyArgs, ExportArg, ExportFormat, SpecArgs, TraceArgs};
pub use shape::ShapeArgs;
pub use study::{AdaptersArgs, CompareArgs, FolderArgs, GuestArgs, NativeVsVmArgs, NeighboursArgs, RunArgs};

/// Measures, predicts and fences the performance of virtual machines.
#[derive(Debug, Parser)]
#[command(
    name = "virtbench",
    version,
    max_term_width = 100,
    after_help = "\
VIRTBENCH_LOG says the same as --verbose in more detail: error, warn, info, debug or trace, for all of virtbench or for a \
part of it, such as info,virtbench_lab=trace. A study also writes virtbench.log into its run folder."
)]
pub struct Arguments {
    /// Say what happens meanwhile, on stderr: guests and processes that start and end, connections, the daemon. Twice says
    /// more
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// How a command says on stderr how far it is: a bar on a terminal and nothing elsewhere, lines at intervals for the log of
    /// a job, or, for a study, a JSON object a line for programs that watch
    #[arg(long, global = true, value_enum, default_value = "text", hide_default_value = true)]
    pub progress: ProgressArg,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// For whom progress is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProgressArg {
    /// A bar on a terminal, nothing elsewhere
    Text,
    /// Lines, for the log of a job
    Lines,
    /// Programs
    Json,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Apply an Iometer-style load to a file or device and report what came of it
    Load(Box<LoadArgs>),
    /// Run a classic workload on this machine: memory throughput, a suite of computations
    Workload(Box<workload::WorkloadArgs>),
    /// Load a database with TPC-C's transactions: populate it, run users, check its consistency
    #[command(subcommand)]
    #[cfg(feature = "full")]
    Oltp(drivers::OltpCommand),
    /// Let users ask a service for what it has: pages of a web server, keys and values, mail
    #[command(subcommand)]
    #[cfg(feature = "full")]
    Users(drivers::UsersCommand),
    /// Find the highest rate that a target keeps up with, and what latency costs on the way there
    Saturate(Box<shape::SaturateArgs>),
    /// Predict a whole throughput surface from the points that tell most about it
    Surface(shape::SurfaceArgs),
    /// Run an experiment and write its report
    #[command(subcommand)]
    Study(StudyCommand),
    /// Run a study that stands in a file
    Run(study::RunFileArgs),
    /// Compare configurations with each other: a run's, or those of a table somebody published
    Analyse(compare::AnalyseArgs),
    /// Did it get worse? Compare two runs of one plan, before a change and after it
    Compare(compare::CompareRunsArgs),
    /// Did it get worse over time? Every run in a catalogue, and where its figures changed
    #[command(subcommand)]
    #[cfg(feature = "full")]
    History(history::HistoryCommand),
    /// Do the papers' conclusions hold here? Runs beside what five papers conclude
    #[cfg(feature = "full")]
    Papers(compare::PapersArgs),
    /// Characterise what an application does to its storage
    #[cfg(feature = "full")]
    Profile(Box<predict::ProfileArgs>),
    /// Measure what user code, kernel code, copying and waiting cost in a VM, against natively
    #[cfg(feature = "full")]
    Costs(Box<predict::CostsArgs>),
    /// Predict how an application will do in a VM, from its profile
    #[cfg(feature = "full")]
    Predict(Box<predict::PredictArgs>),
    /// Give each virtual machine the same storage performance, alone or in company
    #[command(subcommand)]
    #[cfg(feature = "full")]
    Fence(fence::FenceCommand),
    /// Make guests with real software: root file systems of the distribution's own packages
    #[command(subcommand)]
    #[cfg(feature = "full")]
    Appliance(appliance::ApplianceCommand),
    /// Show what runs have left on a hypervisor or a vCenter, and remove it with consent
    #[cfg(feature = "full")]
    Sweep(operations::SweepArgs),
    /// Write the report of a run folder again, or a summary to paste, to show or to print
    Report(compare::ReportArgs),
    /// Show what this machine has and lacks, with the command that mends it
    Doctor(DoctorArgs),
    /// Write the manual pages
    #[command(hide = true)]
    Man(ManArgs),
    /// Write a completion script for a shell to stdout
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
}

/// Which experiment.
#[derive(Debug, Subcommand)]
pub enum StudyCommand {
    /// What does virtualization cost my storage? The same load natively and in a VM
    NativeVsVm(Box<NativeVsVmArgs>),
    /// Which virtual adapter, over which backing? The same load through each, and what it costs the host
    Adapters(Box<AdaptersArgs>),
    /// Which of these machines is faster? The same load on this host, guests, and machines that exist
    Compare(Box<CompareArgs>),
    /// Do my VMs get even shares? The same workload in one VM, in two, in three, ... at once
    Neighbours(Box<NeighboursArgs>),
    /// Do my VMs disturb each other? Each alone and all together, and how far they deviate
    #[cfg(feature = "full")]
    Deviation(Box<DeviationArgs>),
    /// Are predictions right? Applications profiled, predicted, and then run in a VM
    #[cfg(feature = "full")]
    Predictions(Box<predict::PredictionsArgs>),
    /// What does my database do in a VM? TPC-C's transactions on one appliance, natively and in VMs
    #[cfg(feature = "full")]
    Oltp(Box<appliance_studies::OltpStudyArgs>),
    /// How fast is the control plane? Management operations on a hypervisor's VMs, and where their time goes
    #[cfg(feature = "full")]
    Operations(Box<operations::OperationsArgs>),
    /// What does my application do in a VM? Any appliance under any client, natively and in VMs, alone and beside neighbours
    #[cfg(feature = "full")]
    Application(Box<appliance_studies::ApplicationStudyArgs>),
    /// How many desktops fit? Users of more and more of them at once, and how long each operation takes them
    #[cfg(feature = "full")]
    Desktops(Box<appliance_studies::DesktopsStudyArgs>),
    /// How many different VMs fit? More and more tiles of them at once, until a service level breaks
    #[cfg(feature = "full")]
    Tiles(Box<tiles_study::TilesStudyArgs>),
    /// What does virtualization cost my network? Streams, requests and datagrams natively, to guests and between guests
    Network(Box<platform_study::NetworkStudyArgs>),
    /// What does virtualization cost on this platform? Domain by domain, with a score and a report card
    Platform(Box<platform_study::PlatformStudyArgs>),
}

impl StudyCommand {
    /// Where its run goes.
    pub fn folder_mut(&mut self) -> &mut FolderArgs {
        match self {
            Self::NativeVsVm(args) => &mut args.run.folder,
            Self::Adapters(args) => &mut args.run.folder,
            Self::Compare(args) => &mut args.run.folder,
            Self::Neighbours(args) => &mut args.sets.folder,
            #[cfg(feature = "full")]
            Self::Deviation(args) => &mut args.sets.folder,
            #[cfg(feature = "full")]
            Self::Predictions(args) => &mut args.folder,
            #[cfg(feature = "full")]
            Self::Oltp(args) => &mut args.folder,
            #[cfg(feature = "full")]
            Self::Operations(args) => &mut args.folder,
            #[cfg(feature = "full")]
            Self::Application(args) => &mut args.folder,
            #[cfg(feature = "full")]
            Self::Desktops(args) => &mut args.folder,
            #[cfg(feature = "full")]
            Self::Tiles(args) => &mut args.folder,
            Self::Network(args) => &mut args.folder,
            Self::Platform(args) => &mut args.folder,
        }
    }
}

/// `virtbench doctor`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  virtbench doctor
  virtbench doctor --fix
  virtbench doctor --fix --yes")]
pub struct DoctorArgs {
    /// Folder whose storage would be measured
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub target_dir: PathBuf,
    /// Kernel of guests [default: the one that set-up prepared, else the host's]
    #[arg(long, value_name = "FILE")]
    pub kernel: Option<PathBuf>,
    /// Probe the accelerator again
    #[arg(long)]
    pub probe: bool,
    /// Print only what is missing
    #[arg(long)]
    pub quiet: bool,
    /// Print the command that installs the packages that are missing or would help; with --yes also run it
    #[arg(long, conflicts_with = "json")]
    pub fix: bool,
    /// Run what --fix prints, as root or by sudo
    #[arg(long, requires = "fix")]
    pub yes: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Where the manual pages go.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Folder to write them into
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

/// `virtbench load`
#[derive(Debug, Args)]
#[command(after_help = "\
Each operation is a read with the probability --read, and seeks to a random aligned offset with the \
probability --random; otherwise it goes on from where the worker's last operation ended. A file that \
does not exist is made and written first. Files that virtbench did not make, and block devices, are \
never written without --allow-overwrite; nor is what an NBD or vhost-user server serves.

Examples:
  virtbench load --target /srv/test.img --size 1GiB --bs 4k --read 70 --random 100
  virtbench load --target 'nbd+unix:///?socket=/run/disk.sock' --outstanding 32
  virtbench load --target vhost-user:/run/disk.sock --workers 2
  virtbench load --target /srv/test.img --mix size=4k,share=80,read=70 --mix size=64k,share=20,read=0,random=0
  virtbench load --target /srv/test.img --json | jq .total.iops
  virtbench load --trace day.csv --pace 2x --target /srv/test.img
  virtbench load --environment ssh://root@metal/srv --size 4GiB --outstanding 32
  virtbench load --environment ssh://me@box/C:/bench --spec profile.xml --export diskspd=results.xml
  virtbench load --spec mailserver.icf --target /srv/test.img --time 30s --export fio-json=mail.json")]
#[command(group(ArgGroup::new("what").args(["target", "spec", "fio", "environment"]).required(true).multiple(true)))]
pub struct LoadArgs {
    /// Apply the load, or the jobs of --spec or --fio one after another, in environments, each in turn, to a test file
    /// of --size: [NAME=]URI or a name from virtbench.toml, as study compare has them; may be repeated
    #[arg(long, value_name = "URI|NAME", conflicts_with_all = [
        "target", "trace", "live", "fault", "verify_only", "steady", "grow", "allow_overwrite"
    ])]
    pub environment: Vec<String>,
    /// The load
    #[command(flatten)]
    pub shape: ShapeArgs,
    /// A load from a file, and results into files
    #[command(flatten)]
    pub spec: SpecArgs,
    /// A recorded trace
    #[command(flatten)]
    pub trace: TraceArgs,
    /// Show IOPS, bandwidth and a latency heat map on stderr while the load runs; a line a second where
    /// stderr is no terminal
    #[arg(long)]
    pub live: bool,
    /// How it is applied
    #[command(flatten)]
    pub apply: ApplyArgs,
    /// Steady state and repetitions
    #[command(flatten)]
    pub repeat: numbers::RepeatArgs,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    /// What may last no time at all: what is left out or waited for before something else.
    const MAY_BE_NOTHING: [&str; 2] = ["ramp", "think"];

    /// Calls `look` with the words that lead to each command.
    fn each_command(at: &clap::Command, words: &[String], look: &mut dyn FnMut(&[String], &clap::Command)) {
        look(words, at);
        for inner in at.get_subcommands() {
            let words = [words, &[inner.get_name().to_owned()]].concat();
            each_command(inner, &words, look);
        }
    }

    #[test]
    fn a_time_of_nothing_is_refused_wherever_one_is_waited_for_or_measured() {
        let mut seen = 0;
        each_command(&Arguments::command(), &["virtbench".to_owned()], &mut |words, command| {
            let is_time = |arg: &&clap::Arg| {
                arg.get_value_names().is_some_and(|names| names.iter().any(|name| name == "TIME"))
            };
            let names = command.get_arguments().filter(is_time).filter_map(clap::Arg::get_long);
            for name in names.filter(|name| !MAY_BE_NOTHING.contains(name)) {
                let line = words.iter().cloned().chain([format!("--{name}=0s")]);
                let kind = Arguments::command().try_get_matches_from(line).map_err(|error| error.kind());
                assert_eq!(
                    kind.err(),
                    Some(clap::error::ErrorKind::ValueValidation),
                    "{words:?} --{name}=0s"
                );
                seen += 1;
            }
        });
        assert!(seen > 20, "{seen} times were found");
    }

    /// Options that studies share: name, placeholder, default and the first sentence of help. Where a study says more, or has a default of
    /// its own, there is none here.
    const SHARED: [(&str, &str, Option<&str>, Option<&str>); 10] = [
        ("out", "DIR", None, Some("Run folder [default: virtbench-STUDY-DATE]")),
        (
            "resume",
            "",
            None,
            Some("Go on with what is missing of the run in --out, with the options it was started with"),
        ),
        ("json", "", None, Some("Print one JSON object instead of sentences")),
        (
            "target-dir",
            "DIR",
            None,
            Some(
                "Folder for test disks and data; the storage under it is what is measured [default: the run folder]",
            ),
        ),
        ("seed", "N", Some("1"), Some("Seed of every random choice")),
        ("repetitions", "N", None, None),
        ("time", "TIME", None, None),
        ("ramp", "TIME", None, None),
        ("memory", "SIZE", None, None),
        ("size", "SIZE", None, None),
    ];

    #[test]
    fn what_studies_share_has_one_name_one_default_and_one_help() {
        let command = Arguments::command();
        let study = command.find_subcommand("study").unwrap();
        let mut found = std::collections::BTreeMap::<&str, usize>::new();
        for (one, arg) in
            study.get_subcommands().flat_map(|one| one.get_arguments().map(move |arg| (one, arg)))
        {
            let Some(name) = arg.get_long() else { continue };
            let at = format!("study {} --{name}", one.get_name());
            let old = ["ramp-up", "target", "folder", "output", "duration"];
            assert!(!old.contains(&name), "{at}: other studies call it by another name");
            let Some(shared) = SHARED.iter().find(|shared| shared.0 == name) else { continue };
            let (_, value, default, help) = *shared;
            // Its VM is that of `costs` and `predict`, whose disk lies in the current folder.
            let help = help.filter(|_| (one.get_name(), name) != ("predictions", "target-dir"));
            *found.entry(shared.0).or_default() += 1;
            let takes_value = arg.get_action().takes_values();
            let placeholder = arg.get_value_names().filter(|_| takes_value).map(|names| names[0].as_str());
            assert_eq!(placeholder.unwrap_or_default(), value, "{at}");
            if let Some(help) = help {
                assert_eq!(arg.get_help().unwrap().to_string(), help, "{at}");
                let defaults: Vec<_> =
                    arg.get_default_values().iter().map(|value| value.to_str().unwrap()).collect();
                assert_eq!(defaults.first().copied().filter(|_| takes_value), default, "{at}");
            }
        }
        let unshared: Vec<_> =
            SHARED.iter().filter(|shared| found.get(shared.0).is_none_or(|times| *times < 2)).collect();
        assert!(unshared.is_empty(), "{unshared:?}: fewer than two studies have it");
    }

    #[test]
    fn the_ramp_up_is_called_ramp_and_its_old_name_is_still_read() {
        let lines = [
            "study tiles",
            "study oltp",
            "study operations --platform test:",
            "users web host",
            "oltp run --database postgresql://a@b/c",
        ];
        for line in lines {
            for name in ["--ramp", "--ramp-up"] {
                let words = format!("virtbench {line} {name} 7s");
                assert!(Arguments::try_parse_from(words.split(' ')).is_ok(), "{words}");
            }
        }
    }
}
