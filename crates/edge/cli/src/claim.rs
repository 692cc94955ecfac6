//! Measurements on one host find each other, and one says whether it has the host to itself.
//!
//! Whatever measures holds a socket with a name in the abstract namespace, which the kernel lists in
//! `/proc/net/unix` for everyone and forgets with the process, however that ends. So there is no file
//! that a kill could leave, and users see each other. Containers with networks of their own do not.

use std::collections::BTreeSet;
use std::fs;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use virtbench_lab::CpuSample;
use virtbench_model::{busy_host, is_busy};
use virtbench_record::HostUse;

#[cfg(feature = "full")]
use crate::args::drivers::OltpCommand;
use crate::args::{Command, StudyCommand};
use crate::say::tell;

/// How the names begin.
const PREFIX: &str = "virtbench-measures/";

/// Held for as long as this process measures.
#[derive(Debug)]
pub struct Claim {
    _socket: Option<UnixDatagram>,
}

/// Another process that measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Other {
    /// What it does, such as `study adapters`.
    pub what: String,
    /// Its id, as it sees itself.
    pub process_id: u32,
}

impl Other {
    /// Such as `virtbench load (process 12)`.
    pub fn words(&self) -> String {
        format!("virtbench {} (process {})", self.what, self.process_id)
    }
}

/// Says that other measurements ran, each given in words, for terminal and record.
pub fn beside<'a>(others: impl ExactSizeIterator<Item = &'a String>) -> String {
    /// So many are named; the rest are counted.
    const NAMED: usize = 3;
    let count = others.len();
    let mut names = others.take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    if count > NAMED {
        names += &format!(" and {} more", count - NAMED);
    }
    format!("measurements ran on this host at the same time: {names}; each disturbs the others")
}

impl Claim {
    /// Lets others see what this process does. Where it cannot be said, it is still done.
    pub fn for_command(command: &Command) -> Option<Self> {
        let name = format!("{PREFIX}{}/{}", std::process::id(), what(command)?);
        let address = SocketAddr::from_abstract_name(name).ok();
        Some(Self { _socket: address.and_then(|address| UnixDatagram::bind_addr(&address).ok()) })
    }
}

/// Who else measures now.
pub fn others() -> Vec<Other> {
    let sockets = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    parse(&sockets, std::process::id())
}

/// The sockets of others in a text as `/proc/net/unix` (proc(5)), where `@` stands for the zero byte with
/// which abstract names begin.
fn parse(sockets: &str, own: u32) -> Vec<Other> {
    let names = sockets.lines().filter_map(|line| line.split_once(" @")?.1.strip_prefix(PREFIX));
    let others = names.filter_map(|name| {
        let (process_id, what) = name.split_once('/')?;
        let process_id = process_id.parse().ok().filter(|process_id| *process_id != own)?;
        Some(Other { what: what.to_owned(), process_id })
    });
    others.collect()
}

/// What a command measures; nothing for those that measure nothing.
fn what(command: &Command) -> Option<&'static str> {
    Some(match command {
        Command::Load(_) => "load",
        Command::Workload(_) => "workload",
        #[cfg(feature = "full")]
        Command::Oltp(OltpCommand::Run(_)) => "oltp",
        #[cfg(feature = "full")]
        Command::Users(_) => "users",
        Command::Saturate(_) => "saturate",
        Command::Surface(_) => "surface",
        #[cfg(feature = "full")]
        Command::Costs(_) => "costs",
        Command::Study(study) => match study {
            StudyCommand::NativeVsVm(_) => "study native-vs-vm",
            StudyCommand::Adapters(_) => "study adapters",
            StudyCommand::Compare(_) => "study compare",
            StudyCommand::Neighbours(_) => "study neighbours",
            #[cfg(feature = "full")]
            StudyCommand::Deviation(_) => "study deviation",
            #[cfg(feature = "full")]
            StudyCommand::Predictions(_) => "study predictions",
            #[cfg(feature = "full")]
            StudyCommand::Oltp(_) => "study oltp",
            #[cfg(feature = "full")]
            StudyCommand::Operations(_) => "study operations",
            #[cfg(feature = "full")]
            StudyCommand::Application(_) => "study application",
            #[cfg(feature = "full")]
            StudyCommand::Desktops(_) => "study desktops",
            #[cfg(feature = "full")]
            StudyCommand::Tiles(_) => "study tiles",
            StudyCommand::Network(_) => "study network",
            // Its parts claim the machine themselves.
            StudyCommand::Platform(_) => return None,
        },
        _ => return None,
    })
}

/// Shorter than this, the processors' accounts, kept in ticks of 10 ms, tell little.
const LOOK_FOR: Duration = Duration::from_secs(1);

/// How often other measurements are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What is known of who else uses the host.
pub struct Company {
    others: BTreeSet<String>,
    looked: Instant,
    /// The beginning of the stretch that is looked at, until it has been judged.
    since: Option<(Instant, CpuSample)>,
}

/// What has been said already: a search applies many loads.
static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

static BUSY_SAID: AtomicBool = AtomicBool::new(false);

impl Company {
    /// From now on. Another measurement that runs already is said at once.
    pub fn new() -> Self {
        let since = CpuSample::take().ok().map(|sample| (Instant::now(), sample));
        let mut company = Self { others: BTreeSet::new(), looked: Instant::now(), since };
        company.find_others();
        company
    }

    /// Looks again, now and then; cheap enough to be called at every turn.
    pub fn look(&mut self) {
        if self.looked.elapsed() >= LOOK_EVERY {
            self.looked = Instant::now();
            self.find_others();
        }
        if let Some((_, sample)) = self.since.take_if(|(since, _)| since.elapsed() >= LOOK_FOR)
            && let Ok(now) = CpuSample::take()
        {
            self.judge(&sample.until(&now));
        }
    }

    /// Says, once, that other programs use the host, if they did.
    pub fn judge(&self, host: &HostUse) {
        if is_busy(host) && !BUSY_SAID.swap(true, Ordering::Relaxed) {
            let used = host.others_percent.unwrap_or(0.0) / 100.0;
            tell!(
                "note: other programs use {used:.1} of this host's {} processors: the figures will show that as well",
                host.processors
            );
        }
    }

    /// What a record says of it: other measurements, and other programs over the measuring times given.
    pub fn notes<'a>(&mut self, hosts: impl IntoIterator<Item = &'a HostUse>) -> Vec<String> {
        self.find_others();
        let others = (!self.others.is_empty()).then(|| beside(self.others.iter()));
        others.into_iter().chain(busy_host(hosts).map(|busy| busy.words())).collect()
    }

    fn find_others(&mut self) {
        let others: Vec<String> = self::others().iter().map(Other::words).collect();
        let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
        let new: Vec<&String> = others.iter().filter(|words| said.insert((*words).clone())).collect();
        if !new.is_empty() {
            tell!("note: {}", beside(new.into_iter()));
        }
        self.others.extend(others);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_list_is_read_and_oneself_is_not_in_it() {
        let text = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                    0000000000000000: 00000002 00000000 00000000 0002 01 1045 @virtbench-measures/12/load\n\
                    0000000000000000: 00000002 00000000 00000000 0002 01 1046 @virtbench-measures/13/study adapters\n\
                    0000000000000000: 00000002 00000000 00000000 0002 01 1047 /run/virtbench-measures/14/load\n\
                    0000000000000000: 00000002 00000000 00000000 0002 01 1048 @virtbench-measures/x/load\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 1049\n";
        assert_eq!(parse(text, 12), [Other { what: "study adapters".into(), process_id: 13 }]);
        assert_eq!(parse(text, 1).len(), 2);
    }

    #[test]
    fn some_are_named_and_the_rest_counted() {
        let others: Vec<String> =
            (1..=5u32).map(|process_id| Other { what: "load".into(), process_id }.words()).collect();
        let words = beside(others.iter());
        assert!(words.contains("virtbench load (process 3) and 2 more; each"), "{words}");
    }
}
