//! `virtbench study operations`, and `virtbench sweep`, which removes what killed runs have left on a platform.

use clap::{Args, ValueEnum};
use virtbench_record::CloneKind;
use virtbench_study::NamedJob;
use virtbench_units::{parse_bytes, parse_duration_ns, parse_positive_duration_ns};

use super::numbers::percent;
use super::study::{FolderArgs, QemuArgs};
use super::workload::read_job;

/// The most operations a minute that can be asked for: more would need more clients than threads are sensible for.
const MOST_PER_MINUTE: f64 = 100_000.0;

/// `virtbench study operations`
#[derive(Debug, Args)]
#[command(after_help = "\
VMs of the run's own are made on the platform, half of them are started, and operations arrive in the mix of [Platform 2014], \
Table 2, or in that of a file, each on a VM that is in a state for it. Of each is recorded where its time went: waiting for a \
client, in virtbench itself, until it was accepted, queued, running, until it was said to be done, and until its effect was seen \
(the guest answers or is gone; the inventory shows it). Everything that is made carries the run's mark and is removed in the \
end; what a killed run has left is removed by the next one, or by virtbench sweep. Nothing else is ever touched.

Platforms:
  libvirt+URI[?pool=NAME]  a hypervisor by a URI of libvirt's, with persistent domains whose disks are volumes of the pool
                           (default); guests are real, except on libvirt's own test:///default?pool=default-pool
  vsphere+https://USER@HOST/sdk[?OPTIONS]
                           a vCenter or a host; the password is in VIRTBENCH_VSPHERE_PASSWORD or, with password-file=FILE, in
                           a file; TLS is verified by the system's authorities, or by ca=FILE, thumbprint=HEX, or not
                           (verify=no); template=NAME or its path (/DC/vm/NAME) is a VM of which VMs are made; datacenter=,
                           cluster=, folder=, pool=, datastore= and host= say where, and must where there are several
  proxmox:[USER@REALM[!TOKEN]@]HOST[:PORT][?OPTIONS]
                           a cluster of Proxmox VE by one of its nodes, as root@pam where nobody is named; the password, or the
                           token's secret, is in VIRTBENCH_PROXMOX_PASSWORD or in password-file=FILE; ca=, thumbprint= and verify=no
                           as above; node=, storage=, pool= and bridge= say where VMs are made; template= is a template (linked
                           clones) or a VM (full ones) of which they are made, by number or name
  openstack:[CLOUD][?OPTIONS]
                           a project of a cloud that clouds.yaml (and secure.yaml) names, or that OS_CLOUD or OS_AUTH_URL, OS_USERNAME,
                           OS_PASSWORD and so on do; secrets are there alone; flavor=, image= and network= (none where it does not
                           say) are what servers are made of, key= and security-group= how they are reached, volume=GIB has their
                           first disks be volumes of Cinder's; other-flavor= is what they are resized to and back; region=,
                           interface= and zone= say where; ca=, thumbprint= and verify=no as above
Operations: power_on, power_off, clone, migrate, remove, create_snapshot, delete_snapshot, reconfigure, suspend, resume,
  attach_disk, detach_disk, console, list; on Proxmox VE also cold_migrate, shutdown, reset, revert_snapshot, move_disk, resize_disk;
  on OpenStack also reset, revert_snapshot, cold_migrate, resize, rebuild, shelve, unshelve, attach_port, detach_port.
  A mix is a TOML file with their shares, such as power_on = 8

Examples:
  virtbench study operations --platform libvirt+qemu:///system --leave-out
  virtbench study operations --platform libvirt+qemu:///system --destination libvirt+qemu+ssh://root@hv2/system --vms 10,25,50
  virtbench study operations --platform libvirt+qemu:///system --mix mine.toml --rate 100/min,500/min --time 12h --piece 10m
  virtbench study operations --platform libvirt+qemu:///system --leave-out --tenant 'a=libvirt+qemu:///system' --tenant b=qemu:
  virtbench study operations --platform libvirt+qemu:///system --leave-out --rate max --latency-limit 5s
  virtbench study operations --platform 'libvirt+qemu:///system?pool=xfs' --leave-out --clone full,linked,reflink --disk 4GiB
  virtbench study operations --platform 'vsphere+https://user%40vsphere.local@vcenter/sdk?ca=vcenter.pem' --vms 100
  virtbench study operations --platform 'proxmox:root@pam!bench@pve1?ca=pve.pem&storage=ceph&template=9000' --clone full,linked
  virtbench study operations --platform 'openstack:mycloud?flavor=m1.tiny&image=cirros' --leave-out --clients 8")]
pub struct OperationsArgs {
    /// Whose operations: libvirt+URI, vsphere+https://USER@HOST/sdk, proxmox:HOST or openstack:CLOUD
    #[arg(long, value_name = "ADDRESS")]
    pub platform: String,
    /// Where VMs are migrated to and back: another hypervisor with the same storage
    #[arg(long, value_name = "ADDRESS")]
    pub destination: Option<String>,
    /// Shares of the operations: paper, or a TOML file
    #[arg(long, value_name = "paper|FILE", default_value = "paper")]
    pub mix: String,
    /// Leave out what the platform cannot do; the others keep their ratios
    #[arg(long)]
    pub leave_out: bool,
    /// Operations a minute, alternating piece by piece where there are several, or max: the highest rate that is sustained
    #[arg(long, value_name = "N/min,...|max", default_value = "100/min,500/min", value_parser = rate)]
    pub rate: RateArg,
    /// A closed loop of so many clients instead of a rate
    #[arg(long, value_name = "N", conflicts_with = "rate", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub clients: Option<u32>,
    /// With --rate max: 95 % of operations take no longer
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_positive_duration_ns)]
    pub latency_limit: u64,
    /// VMs to begin with; several for a sweep over density
    #[arg(long, value_name = "LIST", default_value = "10", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub vms: Vec<u32>,
    /// Measuring time at each number of VMs
    #[arg(long, value_name = "TIME", default_value = "4m", value_parser = parse_positive_duration_ns)]
    pub time: u64,
    /// Length of a piece: each is a line of the results, and a run that is stopped goes on with the next one
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = parse_positive_duration_ns)]
    pub piece: u64,
    /// Before the first piece at each number of VMs
    #[arg(long, alias = "ramp-up", value_name = "TIME", default_value = "10s", value_parser = parse_duration_ns)]
    pub ramp: u64,
    /// The longest that an operation may take
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = parse_positive_duration_ns)]
    pub limit: u64,
    /// Operations in flight at once, at most
    #[arg(long, value_name = "N", default_value = "64", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub at_once: u32,
    /// How a clone's disk is made; several take turns, clone by clone, and are compared with the first
    #[arg(long, value_name = "WAY,...", value_enum, default_value = "full", value_delimiter = ',')]
    pub clone: Vec<CloneArg>,
    /// With --clone array: what has the storage clone a volume, for the shell on this machine. $SOURCE and $TARGET are the names of
    /// the volumes, $SOURCE_PATH and $TARGET_PATH where they are; the run folder has it, so that it must hold no secret
    #[arg(long, value_name = "COMMAND")]
    pub array_command: Option<String>,
    /// A machine with a load of its own meanwhile, as study compare's --environment; may be repeated. Pieces without operations
    /// then alternate with those with them
    #[arg(long, value_name = "URI")]
    pub tenant: Vec<String>,
    /// What tenants do, as study neighbours' --workload: load:KEY=VALUE,..., memory or cpu [default: 4 KiB at random, 70 % reads, one
    /// at a time]
    #[arg(long, value_name = "WORKLOAD", value_parser = read_job, requires = "tenant")]
    pub tenant_workload: Option<NamedJob>,
    /// Disk of each tenant
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_bytes)]
    pub tenant_size: u64,
    /// Memory of each VM
    #[arg(long, value_name = "SIZE", default_value = "128MiB", value_parser = parse_bytes)]
    pub memory: u64,
    /// Disk of each VM, all of it data
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_bytes)]
    pub disk: u64,
    /// What runs the VMs
    #[command(flatten)]
    pub qemu: QemuArgs,
    /// End with exit code 5 where more of a step's operations failed than failures=PERCENT, or none was done; with 10 where undecided is given
    /// and pieces are too short to tell whether the platform kept up. A piece of which less than 90 % was issued is no result, and ends with 10
    /// in any case
    #[arg(long, value_name = "failures=PERCENT,undecided", value_delimiter = ',', value_parser = fail_on)]
    pub fail_on: Vec<OperationsFailOn>,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// Where the run goes
    #[command(flatten)]
    pub folder: FolderArgs,
}

/// How a clone's disk is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CloneArg {
    /// Every byte is copied
    Full,
    /// An overlay on the bytes that all disks begin with
    Linked,
    /// The file system shares the blocks of both: XFS or Btrfs, raw disks
    Reflink,
    /// The storage does it by itself, told by --array-command: raw disks
    Array,
}

impl CloneArg {
    /// The same in a plan.
    pub fn kind(self) -> CloneKind {
        match self {
            Self::Full => CloneKind::Full,
            Self::Linked => CloneKind::Linked,
            Self::Reflink => CloneKind::Reflink,
            Self::Array => CloneKind::Array,
        }
    }
}

/// When a study of operations fails.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OperationsFailOn {
    /// More operations of a step failed than this, in percent.
    Failures(f64),
    /// It cannot be told whether the platform kept up.
    Undecided,
}

fn fail_on(text: &str) -> Result<OperationsFailOn, String> {
    match (text, text.strip_prefix("failures=")) {
        ("undecided", _) => Ok(OperationsFailOn::Undecided),
        (_, Some(most)) => {
            percent(most).map(OperationsFailOn::Failures).map_err(|why| format!("failures=: {why}"))
        }
        ("regression", _) => {
            Err("regression is of two runs: virtbench compare and virtbench history have it".into())
        }
        _ => Err(format!("{text:?} is none: write failures=1% or undecided")),
    }
}

/// How operations arrive in an open loop.
#[derive(Debug, Clone, PartialEq)]
pub enum RateArg {
    /// At these rates, in operations a minute.
    PerMinute(Vec<f64>),
    /// As fast as is sustained.
    Max,
}

fn rate(text: &str) -> Result<RateArg, String> {
    if text == "max" {
        return Ok(RateArg::Max);
    }
    text.split(',').map(per_minute).collect::<Result<Vec<f64>, String>>().map(RateArg::PerMinute)
}

/// Operations a minute.
pub fn per_minute(word: &str) -> Result<f64, String> {
    let number = word.trim().strip_suffix("/min").and_then(|number| number.parse::<f64>().ok());
    number.filter(|rate| (1.0..=MOST_PER_MINUTE).contains(rate)).ok_or_else(|| {
        format!("{word:?} is no rate: write such as 100/min (1 to {MOST_PER_MINUTE}), or max where a rate can be searched")
    })
}

/// `virtbench sweep`
#[derive(Debug, Args)]
#[command(after_help = "\
Everything that a study makes on a hypervisor or a vCenter says which run made it: domains and VMs in their configuration, volumes \
by the domain that lists them. A run removes its own in the end, and what runs have left that were killed on this machine is removed \
by the next one. This command also finds what runs have left that were killed on another machine, in a container, or before this \
machine was started anew. A run whose process cannot be looked for lives as long as it gives a sign every minute; after ten minutes \
without one it is thought dead. What has no mark of virtbench's is never touched, whatever its name, nor what a live run has.

Exit codes: 0 nothing is left there, or it was removed; 12 something is left and was not removed.

Examples:
  virtbench sweep --platform libvirt+qemu:///system
  virtbench sweep --platform libvirt+qemu+ssh://root@hv/system --yes
  virtbench sweep --platform 'vsphere+https://user%40vsphere.local@vcenter/sdk?ca=vcenter.pem' --json
  virtbench sweep --platform openstack:mycloud")]
pub struct SweepArgs {
    /// Where to look: libvirt+URI, vsphere+https://USER@HOST/sdk, proxmox:HOST or openstack:CLOUD
    #[arg(long, value_name = "ADDRESS")]
    pub platform: String,
    /// Only what belongs to this run: its id, or how the names of its VMs begin
    #[arg(long, value_name = "LABEL")]
    pub label: Option<String>,
    /// Remove what is left without asking
    #[arg(long)]
    pub yes: bool,
    /// Print JSON; nothing is removed without --yes
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_run_fails_on_is_read_or_refused_with_the_reason() {
        assert_eq!(fail_on("failures=1%"), Ok(OperationsFailOn::Failures(1.0)));
        assert_eq!(fail_on("undecided"), Ok(OperationsFailOn::Undecided));
        for (text, why) in
            [("failures=101%", "between 0 and 100"), ("failures", "failures=1%"), ("regression", "compare")]
        {
            assert!(fail_on(text).unwrap_err().contains(why), "{text}");
        }
    }

    #[test]
    fn rates_are_read_or_refused_by_name() {
        assert_eq!(rate("100/min,500/min"), Ok(RateArg::PerMinute(vec![100.0, 500.0])));
        assert_eq!(rate("max"), Ok(RateArg::Max));
        for text in ["", "100", "0/min", "-1/min", "1e9/min", "NaN/min", "100/min,"] {
            assert!(rate(text).unwrap_err().contains("is no rate"), "{text}");
        }
    }
}
