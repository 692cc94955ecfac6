//! `virtbench study desktops`

use std::path::PathBuf;

use clap::Args;
use virtbench_desktops::{Link, NoAddress, VncAddress};
use virtbench_record::DesktopNumbers;
use virtbench_units::{parse_bytes, parse_positive_duration_ns};

use super::folder::FolderArgs;
use super::number_list::auto_or_list;
use super::place::{Place, place as here};
use super::qemu::QemuArgs;

/// The most desktops that a search tries.
const MOST_DESKTOPS: u32 = 64;

/// `virtbench study desktops`
#[derive(Debug, Args)]
#[command(after_help = "\
Each user sits before a desktop of its own: types through VNC, watches the picture, and times each operation from its last key to \
the marker that the session draws when it is over. Users are content while 95 % of the interactive operations (group A) take 1 s \
at most and 95 % of the slow ones (group B) 6 s. The number of desktops is raised until they no longer are.

Natively (as sessions on this host) it needs root. The first run builds the desktop (`virtbench appliance`).

Examples:
  virtbench study desktops
  virtbench study desktops --day office --desktops 1,2,4,8 --time 5m --out desktops
  virtbench study desktops --day my-day.toml --recipe my-desktop.toml
  virtbench study desktops --environment vm --desktops 1,2 --accelerator tcg
  virtbench study desktops --environment vm --desktops 1,2 --accelerator uml
  virtbench study desktops --link delay=50ms,rate=10mbit
  virtbench study desktops --environment vnc://desk1,vnc://desk2:1 --password-file secret --day typing

Existing desktops (vnc://) have nobody inside: whatever has the keyboard there is typed into, an operation is over with the last \
change of the picture, and a day can only have keys and text. Their password is in VIRTBENCH_VNC_PASSWORD or in --password-file. \
Each user has a desktop of its own, so there can be as many users as addresses.")]
pub struct DesktopsStudyArgs {
    /// How many desktops at once: auto, or numbers with commas between them
    #[arg(long, value_name = "auto|LIST", default_value = "auto", value_parser = numbers)]
    pub desktops: DesktopNumbers,
    /// What users do: small, office (LibreOffice), typing, or a file
    #[arg(long, value_name = "NAME|FILE", default_value = "small")]
    pub day: String,
    /// The desktop: a recipe's name or file [default: the day's]
    #[arg(long, value_name = "NAME|FILE")]
    pub recipe: Option<String>,
    /// Where desktops run: natively as sessions on this host, each in a VM, or where they are already, with commas between them
    #[arg(long, value_name = "native|vm|vnc://HOST[:DISPLAY|::PORT]", default_value = "native", value_parser = place)]
    pub environment: DesktopPlaceArg,
    /// The file, of one line, with the password of existing desktops
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// A slower link between users and desktops, such as delay=50ms,rate=10mbit,loss=0.5%: what it adds to each way
    #[arg(long, value_name = "delay=TIME,rate=RATE,loss=SHARE")]
    pub link: Option<Link>,
    /// A part of every picture whose changes say nothing of an operation, as WIDTHxHEIGHT+X+Y; may be repeated. What changes all the time
    /// before users begin, such as a clock, is left out by itself
    #[arg(long, value_name = "PART")]
    pub mask: Vec<virtbench_record::PicturePart>,
    /// How long users work with each number of desktops
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = parse_positive_duration_ns)]
    pub time: u64,
    /// Repetitions of each number of desktops
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repetitions: u32,
    /// Limit of group A [default: the day's, else 1s]
    #[arg(long, value_name = "TIME", value_parser = parse_positive_duration_ns)]
    pub limit_a: Option<u64>,
    /// Limit of group B [default: the day's, else 6s]
    #[arg(long, value_name = "TIME", value_parser = parse_positive_duration_ns)]
    pub limit_b: Option<u64>,
    /// Operations that may fail, in percent
    #[arg(long, value_name = "PERCENT", default_value = "5", value_parser = percent)]
    pub errors: f64,
    /// Processors of each desktop
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub vcpus: u32,
    /// Memory of each desktop [default: the least that the recipe needs]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub memory: Option<u64>,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// What runs the VMs
    #[command(flatten)]
    pub qemu: QemuArgs,
    /// Where the run goes
    #[command(flatten)]
    pub folder: FolderArgs,
}

impl DesktopsStudyArgs {
    /// Whether desktops are in guests of User Mode Linux, which are named for it.
    pub fn are_in_uml(&self) -> bool {
        self.environment == DesktopPlaceArg::Vm && self.qemu.is_uml()
    }
}

/// Where desktops run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DesktopPlaceArg {
    /// A session each on this host, in namespaces of its own.
    Native,
    /// The same session in a VM each.
    Vm,
    /// They are there already.
    Existing(Vec<VncAddress>),
}

fn place(text: &str) -> Result<DesktopPlaceArg, String> {
    if let Some(place) = here(text).transpose()? {
        return Ok(match place {
            Place::Native => DesktopPlaceArg::Native,
            Place::Vm => DesktopPlaceArg::Vm,
        });
    }
    match text {
        others if others.starts_with("vnc:") => {
            let addresses = others.split(',').map(|one| one.trim().parse()).collect::<Result<_, _>>();
            addresses.map(DesktopPlaceArg::Existing).map_err(|error: NoAddress| error.to_string())
        }
        other if other.starts_with("ssh:") => Err(format!(
            "{other:?} is no place: desktops are sessions of Linux, natively here or in VMs; one that is there already, of whatever system, \
             is used by its screen, as in vnc://desk1"
        )),
        other => Err(format!(
            "{other:?} is no place: write native, vm, or addresses such as vnc://desk1,vnc://desk2:1"
        )),
    }
}

fn numbers(text: &str) -> Result<DesktopNumbers, String> {
    let given = auto_or_list(text, "desktops", 1000)?;
    Ok(given.map_or(DesktopNumbers::Auto { most: MOST_DESKTOPS }, DesktopNumbers::Given))
}

fn percent(text: &str) -> Result<f64, String> {
    let percent = text.parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent));
    percent.ok_or_else(|| format!("{text:?} is no share in percent: from 0 to 100"))
}
