//! `virtbench study deviation`

use std::path::Path;

use clap::{Args, ValueEnum};
use virtbench_study::{NamedJob, System, read_user_file};
use virtbench_units::parse_bytes;

use super::study::SetsArgs;
use super::workload::read_job;

/// `virtbench study deviation`
#[derive(Debug, Args)]
#[command(after_help = "\
First the workload runs as fast as it can in one VM: that is its saturation. Then each VM of --pattern \
runs at its share of it, alone and with all the others, and the deviation is told: how far throughput \
and mean response time beside the others are from those alone, in percent, VM by VM and on average.

With --matrix each workload runs alone, and in one VM beside each workload in another, as fast as it \
can: who disturbs whom. Workloads and loads are written as for `study neighbours`; loads and workloads \
on files do not go together.

With --environment the machines live in environments, on one host or several, as for `study neighbours`; with --matrix \
there are two. Shares are of the saturation that the first machine finds, or with --saturating all of what all do together.

With --systems the VMs' disks are the fence daemon's, on devices that behave as a hard disk and a \
solid-state drive, shared in one way after the other. Each has a run of its own in --out; the table \
that compares them, with what the simulator says of the same load, is table.md (and table.json); all \
VMs are in comparison.csv. With --resume, systems that are finished are left alone. qemu-raw and blkio \
make block devices of the host and need root, /dev/fuse and loop devices; a system that cannot be had \
is marked, and the others are measured. Those with time slots also have them of another length than \
20 ms: VirtualFence:30ms.

Examples:
  virtbench study deviation --workload mailserver:files=200
  virtbench study deviation --workload load:size=4k,read=50,random=100 --pattern 5,5,5,5 --time 10s
  virtbench study deviation --workload fileserver:files=500 --backing loop --pattern shares.txt
  virtbench study deviation --workload load:size=4k,read=50 --pattern 10,40 --environment metal --environment qemu:
  virtbench study deviation --systems none,VirtualFence,VirtualFence:30ms --size 64MiB --memory 128MiB --time 30s \\
      --workload load:size=4k,read=50,random=100,outstanding=8
  virtbench study deviation --matrix --workload cpu:kernel=200ms --workload memory --workload load:read=50")]
pub struct DeviationArgs {
    /// What the VMs run; with --matrix two at least
    #[arg(long, value_name = "WORKLOAD", value_parser = read_job, required_unless_present = "resume")]
    pub workload: Vec<NamedJob>,
    /// A VM for each share of saturation, in percent ([VirtualFence 2013], sections 4.3 and 7.2: 8,24,24,24 and 5,5,5,5), or a file of them
    #[arg(long, value_name = "SHARE,...|FILE", default_value = "8,24,24,24", value_parser = read_pattern)]
    pub pattern: Pattern,
    /// Who disturbs whom, each workload against each
    #[arg(long, conflicts_with = "pattern")]
    pub matrix: bool,
    #[arg(long, value_name = "NAME,...", help = systems_help(), value_delimiter = ',', value_parser = read_system,
        conflicts_with_all = ["matrix", "adapter", "backing", "environment"])]
    pub systems: Vec<Systems>,
    /// Which VMs run while saturation is looked for [default: one; all with --systems]
    #[arg(long, value_enum, conflicts_with = "matrix")]
    pub saturating: Option<SaturatingArg>,
    /// Virtual processors of each VM
    #[arg(long, value_name = "N", default_value = "1")]
    pub vcpus: u32,
    /// Memory of each VM ([VirtualFence 2013]: 512 MiB)
    #[arg(long, value_name = "SIZE", default_value = "512MiB", value_parser = parse_bytes)]
    pub memory: u64,
    /// How they run, and where results go
    #[command(flatten)]
    pub sets: SetsArgs,
}

/// Which VMs run while saturation is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SaturatingArg {
    /// The first, alone
    One,
    /// All at once: what they do together
    All,
}

/// A name of `--systems`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Systems {
    /// Each there is.
    All,
    /// The one of that name.
    One(System),
}

fn systems_help() -> String {
    format!(
        "Ways of sharing one emulated hard disk and solid-state drive, each measured in turn, or `all`: {}",
        System::names()
    )
}

fn read_system(text: &str) -> Result<Systems, String> {
    if text == "all" {
        return Ok(Systems::All);
    }
    System::find(text).map(Systems::One).ok_or_else(|| {
        let names = System::names();
        let slots = "slots of 1ms to 10s, as VirtualFence:30ms, for those that have time slots";
        format!("{text} is no system: choose all, or of {names}; {slots}")
    })
}

/// Shares of saturation, one for each VM, in percent.
#[derive(Debug, Clone, PartialEq)]
pub struct Pattern(pub Vec<f64>);

/// The most VMs.
const MAX_VMS: usize = 64;
/// The most of a file that is read, in characters.
const MAX_TEXT: usize = 4096;

/// Reads shares, or the file that holds them: numbers between commas or white space, `#` to the end of
/// a line is passed over.
///
/// # Errors
/// What cannot be read, in words.
fn read_pattern(text: &str) -> Result<Pattern, String> {
    let is_list = text.chars().all(|letter| letter.is_ascii_digit() || ",. %".contains(letter));
    let read = if is_list {
        text.to_owned()
    } else {
        read_user_file(Path::new(text))
            .map_err(|error| format!("cannot read the shares in {text}: {error}"))?
    };
    if read.len() > MAX_TEXT {
        return Err(format!("{text} is too long for a list of shares"));
    }
    let bare =
        read.lines().map(|line| line.split('#').next().unwrap_or_default()).collect::<Vec<_>>().join(" ");
    let words =
        bare.split([',', ' ', '\t']).map(|word| word.trim_end_matches('%')).filter(|word| !word.is_empty());
    let share = |word: &str| {
        let value: Option<f64> = word.parse().ok().filter(|value| (0.01..=1000.0).contains(value));
        value.ok_or_else(|| format!("{word}: a share lies between 0.01 and 1000 percent of saturation"))
    };
    let shares: Vec<f64> = words.map(share).collect::<Result<_, _>>()?;
    if !(2..=MAX_VMS).contains(&shares.len()) {
        return Err(format!("{} shares: VMs disturb each other from 2 to {MAX_VMS}", shares.len()));
    }
    Ok(Pattern(shares))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn help_and_refusals_list_what_the_catalogue_has() {
        use clap::CommandFactory;

        let served = || virtbench_fence::catalogue::served().map(|variant| variant.name);
        let mut command = crate::args::Arguments::command();
        let mut help = |words: [&str; 2]| {
            let command = words.iter().fold(&mut command, |command, word| {
                command.find_subcommand_mut(word).unwrap_or_else(|| panic!("{word}"))
            });
            command.render_long_help().to_string()
        };
        let serve = help(["fence", "serve"]);
        let listed: Vec<&str> = serve
            .split_once("Schedulers (")
            .and_then(|(_, list)| list.split_once('\n'))
            .map(|(_, list)| list.lines().filter_map(|line| line.split_whitespace().next()).collect())
            .unwrap_or_default();
        assert_eq!(listed, served().collect::<Vec<_>>(), "{serve}");
        let (deviation, refusal) = (help(["study", "deviation"]), read_system("best").unwrap_err());
        let unfenced = virtbench_fence::catalogue::PASS_THROUGH.name;
        for name in served().filter(|name| *name != unfenced) {
            assert!(deviation.contains(name) && refusal.contains(name), "{name}");
        }
    }

    #[test]
    fn shares_are_listed_or_in_a_file() {
        assert_eq!(read_pattern("8,24, 24%,24"), Ok(Pattern(vec![8.0, 24.0, 24.0, 24.0])));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("shares");
        fs::write(&file, "8 # the victim\n24\n24.5\n").unwrap();
        assert_eq!(read_pattern(file.to_str().unwrap()), Ok(Pattern(vec![8.0, 24.0, 24.5])));
        for (text, word) in
            [("8", "1 shares"), ("8,0", "0: a share"), ("/none", "/none"), ("8,2.2.2", "2.2.2")]
        {
            assert!(read_pattern(text).unwrap_err().contains(word), "{text}");
        }
    }
}
