//! Appliances on a machine that exists, natively: their roots and data as files there, their addresses by DHCP.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use virtbench_agent::protocol::appliance::{EncloseOrder, Enclosed, PIECE_BYTES, Piece};
use virtbench_record::HostFacts;
use virtbench_units::format_bytes;

use super::address::SshHost;
use super::remote_agent::RemoteAgent;
use crate::appliance::ApplianceParts;
use crate::connection::{Connection, ConnectionError};
use crate::machine::LabError;
use crate::process::MachineError;

/// The agent that keeps the files.
const KEEPER: &str = "tiles";
const NAME: &str = "ssh";

/// Whether appliances can run there, as far as that shows without one.
///
/// # Errors
/// It cannot be reached, or something is missing there, with the next step.
pub fn check_ssh_host(host: &SshHost) -> Result<(), MachineError> {
    let mut agent = RemoteAgent::start(NAME, &host.address.clone().with_agent_name(KEEPER))?;
    check_bridge(&mut agent, host)
}

fn check_bridge(agent: &mut RemoteAgent, host: &SshHost) -> Result<(), MachineError> {
    agent.connection.check_bridge(&host.bridge).map_err(|error| {
        let why = agent.process.explain(error);
        MachineError::Unreachable { why: format!("{host}: {why}"), console: Vec::new() }
    })
}

/// A machine that has what appliances are made of. Dropping it removes that.
#[derive(Debug)]
pub struct SshAppliances {
    host: SshHost,
    facts: HostFacts,
    /// Names there of the files that were sent.
    files: BTreeMap<PathBuf, String>,
    /// The number of the next appliance.
    next: AtomicUsize,
    /// Its files are gone when the run is.
    _keeper: RemoteAgent,
}

impl SshAppliances {
    /// Logs in and sends `files`: roots of appliances, and data that each gets a copy of. `on_progress` is told what is made, bytes
    /// done, and bytes in all.
    ///
    /// # Errors
    /// The machine cannot be used or has no room, a file cannot be read, or `stop` was set. What was sent is removed.
    pub fn prepare(
        host: &SshHost,
        files: &[PathBuf],
        stop: &AtomicBool,
        on_progress: &mut dyn FnMut(&str, u64, u64),
    ) -> Result<Self, LabError> {
        let failed = |source| LabError::of(&host.address.to_string(), source);
        let address = host.address.clone().with_agent_name(KEEPER);
        let mut keeper = RemoteAgent::start(NAME, &address).map_err(failed)?;
        check_bridge(&mut keeper, host).map_err(failed)?;
        let facts = keeper.connection.facts(".").map_err(|error| failed(keeper.process.explain(error)))?;
        let mut sent = BTreeMap::new();
        for path in files {
            if sent.contains_key(path) {
                continue;
            }
            let name = sent.len().to_string();
            send(&mut keeper, path, &name, stop, on_progress).map_err(|error| match error {
                Unsent::Stopped => LabError::Stopped,
                Unsent::Unread(source) => {
                    let why = format!("{} cannot be read: {source}", path.display());
                    failed(MachineError::Unreachable { why, console: Vec::new() })
                }
                Unsent::Machine(error) => failed(error),
            })?;
            sent.insert(path.clone(), name);
        }
        Ok(Self { host: host.clone(), facts, files: sent, next: AtomicUsize::new(0), _keeper: keeper })
    }

    /// What a reader should know of it.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let (facts, host) = (&self.facts, &self.host);
        let memory = format_bytes(facts.memory_bytes >> 20 << 20);
        vec![format!(
            "{}: {}, {} processors, {memory}, Linux {}; members natively there, addresses by DHCP on {}",
            host.address,
            facts.cpu,
            facts.processors,
            facts.kernel,
            host.network()
        )]
    }

    /// Memory of the machine, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.facts.memory_bytes
    }

    /// Encloses an appliance there, with a copy of its data.
    pub(crate) fn enclose(&self, parts: &ApplianceParts<'_>) -> Result<EnclosedAppliance, MachineError> {
        let begun = Instant::now();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let order = EncloseOrder {
            kept_by: KEEPER.to_owned(),
            root: self.sent(parts.root)?,
            data: parts.data.map(|data| self.sent(data)).transpose()?,
            memory_bytes: parts.memory_bytes,
            vcpus: parts.vcpus,
            number,
            has_init: parts.has_init,
            bridge: self.host.bridge.clone(),
        };
        let address = self.host.address.clone().enclosing(&format!("{KEEPER}-{number}"));
        let mut agent = RemoteAgent::start(parts.name, &address)?;
        let enclosed = agent.connection.enclose(order).map_err(|error| agent.process.explain(error))?;
        Ok(EnclosedAppliance { agent, enclosed, boot: begun.elapsed(), network: self.host.network() })
    }

    fn sent(&self, path: &Path) -> Result<String, MachineError> {
        self.files.get(path).cloned().ok_or_else(|| MachineError::Unreachable {
            why: format!("{} was not sent: a defect", path.display()),
            console: Vec::new(),
        })
    }
}

/// An appliance in an enclosure there. Dropping it ends it in good order, within a time limit, with all that it has there.
#[derive(Debug)]
pub(crate) struct EnclosedAppliance {
    /// Its services and its data are gone once it has ended.
    agent: RemoteAgent,
    /// What it has got.
    pub(crate) enclosed: Enclosed,
    pub(crate) boot: Duration,
    /// What it is on.
    pub(crate) network: String,
}

impl EnclosedAppliance {
    pub(crate) fn connection(&mut self) -> &mut Connection {
        &mut self.agent.connection
    }

    pub(crate) fn check(&mut self) -> Result<(), MachineError> {
        self.agent.process.check()
    }

    pub(crate) fn explain(&mut self, error: ConnectionError) -> MachineError {
        self.agent.process.explain(error)
    }
}

/// Why a file was not sent.
enum Unsent {
    Stopped,
    Unread(io::Error),
    Machine(MachineError),
}

/// Sends what of a file is not zeros.
fn send(
    keeper: &mut RemoteAgent,
    path: &Path,
    name: &str,
    stop: &AtomicBool,
    on_progress: &mut dyn FnMut(&str, u64, u64),
) -> Result<(), Unsent> {
    let mut file = File::open(path).map_err(Unsent::Unread)?;
    let file_bytes = file.metadata().map_err(Unsent::Unread)?.len();
    let what = "what members are made of";
    let zeros = vec![0; PIECE_BYTES];
    for offset in (0..file_bytes.max(1)).step_by(PIECE_BYTES) {
        if stop.load(Ordering::Relaxed) {
            return Err(Unsent::Stopped);
        }
        let mut bytes = Vec::with_capacity(PIECE_BYTES);
        (&mut file).take(PIECE_BYTES as u64).read_to_end(&mut bytes).map_err(Unsent::Unread)?;
        // The first makes the file.
        if offset == 0 || !zeros.starts_with(&bytes) {
            let piece = Piece { name: name.to_owned(), file_bytes, offset, bytes };
            let stored = keeper.connection.store(piece);
            stored.map_err(|error| Unsent::Machine(keeper.process.explain(error)))?;
        }
        on_progress(what, (offset + PIECE_BYTES as u64).min(file_bytes), file_bytes);
    }
    Ok(())
}
