//! An appliance on this host: the agent in namespaces of its own, its disks by loop devices.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use virtbench_agent::enclosure::{Limits, LoopCache, LoopDevice};
use virtbench_agent::protocol::appliance::MountOrder;
use virtbench_recipe::Init;

use super::error::ApplianceError;
use super::mount_order::mount_order_of_nodes;
use super::network::{Network, NetworkNamespace};
use super::spec::ApplianceSpec;
use crate::native_agent::NativeAgent;
use crate::process::MachineError;

/// The agent with what it stands on. Dropping it kills it with all that it has started.
#[derive(Debug)]
pub(crate) struct NativeAppliance {
    pub(crate) agent: NativeAgent,
    pub(crate) boot: Duration,
    pub(crate) network: Arc<NetworkNamespace>,
    /// The block device of its data.
    pub(crate) data: Option<PathBuf>,
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
        // What is a block device needs no loop.
        let own = spec.data.as_deref().filter(|data| is_block_device(data));
        let data = spec.data.as_deref().filter(|_| own.is_none());
        let data = data.map(|data| LoopDevice::attach(data, LoopCache::Direct)).transpose()?;
        let data_path = data.as_ref().map(LoopDevice::path).or(own);
        let shown = |path: &Path| path.to_string_lossy().into_owned();
        let order = mount_order_of_nodes(spec, &shown(root.path()), data_path.map(shown).as_deref(), None);
        let data_path = data_path.map(Path::to_owned);
        let disks = [root].into_iter().chain(data).collect();
        let started = Self::start_agent(spec, network, data_path, disks);
        started
            .map(|native| (native, order))
            .map_err(|source| ApplianceError::Machine { name: spec.name.clone(), source })
    }

    fn start_agent(
        spec: &ApplianceSpec,
        network: Arc<NetworkNamespace>,
        data: Option<PathBuf>,
        disks: Vec<LoopDevice>,
    ) -> Result<Self, MachineError> {
        let begun = Instant::now();
        let failed = |source: io::Error| MachineError::Start { program: "virtbench-agent".into(), source };
        let mut limits = Limits::make(spec.memory_bytes, spec.vcpus, &spec.processors).map_err(failed)?;
        if spec.recipe.init == Init::Full {
            limits.add_init().map_err(|why| failed(io::Error::other(no_init(&why))))?;
        }
        let network_fd = network.own.descriptor().map_err(failed)?;
        let agent = NativeAgent::start("--alone", vec![network_fd], |command| limits.apply(command))?;
        tracing::info!(
            name = spec.name,
            process = agent.process.id(),
            "the native agent answers in namespaces of its own"
        );
        let boot = begun.elapsed();
        Ok(Self { agent, boot, network, data, _disks: disks, limits })
    }

    /// Ends it in good order, within a time limit.
    pub(crate) fn shut_down(self) {
        self.agent.shut_down();
    }
}

fn no_init(why: &str) -> String {
    format!("the root's own init is unavailable natively: {why}; use a VM, or init = \"agent\"")
}

fn is_block_device(path: &Path) -> bool {
    path.metadata().is_ok_and(|facts| facts.file_type().is_block_device())
}
