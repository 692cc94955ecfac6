//! An appliance on this host: the agent in namespaces of its own, its disks by loop devices.

use std::io;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use virtbench_agent::protocol::appliance::{DataOrder, DiskPlace, MountOrder};

use super::error::ApplianceError;
use super::limits::Limits;
use super::network::{Network, NetworkNamespace};
use super::spec::ApplianceSpec;
use crate::agents::own_agent;
use crate::connection::Connection;
use crate::loop_device::{LoopCache, LoopDevice};
use crate::memory_file::MemoryFile;
use crate::process::{AgentProcess, MachineError};

/// How long the agent may take to greet, and to end.
const LIMIT: Duration = Duration::from_secs(10);

/// The agent with what it stands on. Dropping it kills it with all that it has started.
#[derive(Debug)]
pub(crate) struct NativeAppliance {
    pub(crate) process: AgentProcess,
    pub(crate) connection: Connection,
    pub(crate) boot: Duration,
    pub(crate) network: Arc<NetworkNamespace>,
    // They go after the process, which is dropped first.
    _disks: Vec<LoopDevice>,
    pub(crate) limits: Limits,
}

impl NativeAppliance {
    /// Starts the agent; returns it with what it is to mount.
    pub(crate) fn start(spec: &ApplianceSpec) -> Result<(Self, MountOrder), ApplianceError> {
        let network = match &spec.network {
            Network::User => NetworkNamespace::new()?,
            Network::Namespace(namespace) => Arc::clone(namespace),
        };
        let root = LoopDevice::attach_read_only(&spec.root, LoopCache::Direct)?;
        let data = spec.data.as_ref().map(|data| LoopDevice::attach(data, LoopCache::Direct)).transpose()?;
        let place = |device: &LoopDevice| DiskPlace::Node(device.path().to_string_lossy().into_owned());
        let order = MountOrder {
            host_name: spec.recipe.name.clone(),
            root: place(&root),
            data: data.as_ref().zip(spec.recipe.data.as_ref()).map(|(device, data)| DataOrder {
                disk: place(device),
                folder: data.folder.clone(),
                user: data.user.clone(),
            }),
            interface: None,
        };
        let disks = [root].into_iter().chain(data).collect();
        let started = Self::start_agent(spec, network, disks);
        started
            .map(|native| (native, order))
            .map_err(|source| ApplianceError::Machine { name: spec.name.clone(), source })
    }

    fn start_agent(
        spec: &ApplianceSpec,
        network: Arc<NetworkNamespace>,
        disks: Vec<LoopDevice>,
    ) -> Result<Self, MachineError> {
        let begun = Instant::now();
        let failed = |source: io::Error| MachineError::Start { program: "virtbench-agent".into(), source };
        let limits = Limits::make(spec.memory_bytes, spec.vcpus, &spec.processors).map_err(failed)?;
        let program = MemoryFile::new("virtbench-agent", own_agent()).map_err(failed)?;
        let (program_fd, program_path) = program.lend().map_err(failed)?;
        let (mut connection, agent_end) = Connection::pair().map_err(failed)?;
        let network_fd = network.descriptor().map_err(failed)?;
        let mut command = Command::new(program_path);
        command.args(["--alone", &agent_end.as_raw_fd().to_string(), &network_fd.as_raw_fd().to_string()]);
        limits.apply(&mut command).map_err(failed)?;
        let inherited = vec![agent_end, program_fd, network_fd];
        let mut process = AgentProcess::spawn(command, inherited, "the native agent")?;
        connection.greet(LIMIT).map_err(|error| process.explain(error))?;
        tracing::info!(
            name = spec.name,
            process = process.id(),
            "the native agent answers in namespaces of its own"
        );
        let boot = begun.elapsed();
        Ok(Self { process, connection, boot, network, _disks: disks, limits })
    }

    /// Ends it in good order, within a time limit.
    pub(crate) fn shut_down(mut self) {
        let told = self.connection.shut_down().is_ok();
        self.process.end_within(if told { LIMIT } else { Duration::ZERO });
    }
}
