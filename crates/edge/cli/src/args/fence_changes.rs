//! `virtbench fence resize`, `add`, `remove` and `reslot`

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use virtbench_fence_daemon::config::{SHARE, SLOT_MS, SLOTS, within};
use virtbench_units::parse_bytes;

/// `virtbench fence resize`
#[derive(Debug, Args)]
#[command(after_help = "\
A disk grows where it is if there is room, else it is copied to a free piece of its device; new room holds zeroes. While \
the fence is served its daemon does it: a disk grows where it is, and its guest sees that at once (QEMU's \
vhost-user-blk), an NBD client when it connects anew; to become smaller, to move, or for another part of the cache the \
daemon must be stopped. When the cache is divided anew, what it alone has is written to the disks first. Devices change \
first, the configuration last; the same command again completes what was interrupted, by a crash as well.

Examples:
  virtbench fence resize fence.toml web --size 20GiB
  virtbench fence resize fence.toml web --cache 2GiB")]
pub struct ResizeArgs {
    /// The configuration, as for `fence serve`; it is changed too
    #[arg(value_name = "CONFIG")]
    pub config: PathBuf,
    /// The disk's name
    #[arg(value_name = "DISK")]
    pub disk: String,
    /// Its new size
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, required_unless_present = "cache")]
    pub size: Option<u64>,
    /// Its new part of the cache
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub cache: Option<u64>,
    /// Give up the end of a disk that becomes smaller
    #[arg(long)]
    pub force: bool,
}

/// `virtbench fence add`
#[derive(Debug, Args)]
#[command(after_help = "\
The disk goes to the first free piece of its device that has room, and holds zeroes. What the cache alone has is written to \
the disks first, since it is divided anew. A daemon that serves the fence serves the disk from then on: clients of the others keep \
their connections, and wait until the cache is written and divided. Without a daemon the next one serves it. Devices change first, \
the configuration last; the same command again completes what was interrupted.

Examples:
  virtbench fence add fence.toml web2 --size 20GiB --cache 2GiB --socket /run/virtbench/web2.sock
  virtbench fence add fence.toml db2 --pool ssd --size 20GiB --cache 2GiB --export db2")]
pub struct AddArgs {
    /// The configuration, as for `fence serve`; it is changed too
    #[arg(value_name = "CONFIG")]
    pub config: PathBuf,
    /// The pool that it comes to, where the configuration has several
    #[arg(long, value_name = "NAME")]
    pub pool: Option<String>,
    /// The disk's name
    #[arg(value_name = "DISK")]
    pub disk: String,
    /// Its size
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub size: u64,
    /// Its part of the cache
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub cache: Option<u64>,
    /// How long a stream of its writes is before the rest of it goes past the cache [default: none does]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub bypass: Option<u64>,
    /// Its time slots in a rotation
    #[arg(long, value_name = "N", value_parser = |text: &str| number(text, &SLOTS), default_value = "1")]
    pub slots: u32,
    /// Its share under the scheduler `paced`
    #[arg(long, value_name = "SHARE", value_parser = |text: &str| number(text, &SHARE))]
    pub share: Option<f64>,
    /// Where it is served over vhost-user-blk
    #[arg(long, value_name = "PATH", required_unless_present = "export")]
    pub socket: Option<PathBuf>,
    /// What it is called over NBD
    #[arg(long, value_name = "NAME")]
    pub export: Option<String>,
}

/// `virtbench fence remove`
#[derive(Debug, Args)]
#[command(after_help = "\
The others stay where they are; what the cache alone has of them is written to them first. A daemon may serve the fence: the disk \
must have no client, and clients of the others wait meanwhile.

Example:
  virtbench fence remove fence.toml web2 --force")]
pub struct RemoveArgs {
    /// The configuration, as for `fence serve`; it is changed too
    #[arg(value_name = "CONFIG")]
    pub config: PathBuf,
    /// The disk's name
    #[arg(value_name = "DISK")]
    pub disk: String,
    /// Give up all that the disk holds
    #[arg(long, required = true)]
    pub force: bool,
}

/// `virtbench fence reslot`
#[derive(Debug, Args)]
#[command(after_help = "\
A daemon that serves the fence goes by it from its next rotation on, with nothing that is queued lost; shares count for \
what comes from then on. The configuration is changed with it. A rotation is one pool's: that of the disks that are named, or \
--pool; it is written under [pool.NAME.scheduler].

Examples:
  virtbench fence reslot fence.toml --slots web=2 --slots mail=1 --spare 1
  virtbench fence reslot fence.toml --slot-ms 10")]
pub struct ReslotArgs {
    /// The configuration, as for `fence serve`
    #[arg(value_name = "CONFIG")]
    pub config: PathBuf,
    /// The pool whose rotation changes, where the configuration has several and no disk is named
    #[arg(long, value_name = "NAME")]
    pub pool: Option<String>,
    /// Time slots of a disk; may be repeated
    #[arg(long, value_name = "DISK=N", value_parser = |text: &str| named(text, &SLOTS))]
    pub slots: Vec<(String, u32)>,
    /// Share of a disk under the scheduler `paced`; may be repeated
    #[arg(long, value_name = "DISK=SHARE", value_parser = |text: &str| named(text, &SHARE))]
    pub share: Vec<(String, f64)>,
    /// Slots that belong to nobody
    #[arg(long, value_name = "N", value_parser = |text: &str| number(text, &SLOTS))]
    pub spare: Option<u32>,
    /// Length of a slot, milliseconds
    #[arg(long, value_name = "MS", value_parser = |text: &str| number(text, &SLOT_MS))]
    pub slot_ms: Option<f64>,
}

fn number<T: FromStr + PartialOrd + Display>(text: &str, bounds: &RangeInclusive<T>) -> Result<T, String> {
    let use_these = || format!("use {} to {}", bounds.start(), bounds.end());
    within(text.parse().map_err(|_| use_these())?, bounds)
}

fn named<T: FromStr + PartialOrd + Display>(
    text: &str,
    bounds: &RangeInclusive<T>,
) -> Result<(String, T), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("{text:?}: write DISK=NUMBER"))?;
    Ok((name.to_owned(), number(value, bounds)?))
}
