//! How the agent of an appliance is started in each place: in a guest of QEMU, of User Mode Linux or of a hypervisor, on this
//! host, and on a machine of the user's; and what it is told that the appliance stands on.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use virtbench_agent::enclosure::{Limits, LoopCache, LoopDevice};
use virtbench_agent::protocol::appliance::{AddressOrder, DataOrder, DiskPlace, InterfaceOrder, MountOrder};
use virtbench_recipe::Init;

use super::error::ApplianceError;
use super::network::{Network, NetworkNamespace};
use super::spec::{ApplianceSpec, GuestPlace, UmlPlace};
use super::tiers::host_names;
use crate::adapters::{Adapter, DEFAULT_ADAPTER};
use crate::connection::ConnectionError;
use crate::guest::{Guest, GuestConfig};
use crate::guest_disk::{GuestDisk, io_without_uring};
use crate::guest_network::{CableEnd, GuestNetwork, PortKind};
use crate::libvirt::{DomainAppliance, LibvirtAppliances};
use crate::native::NativeAgent;
use crate::process::MachineError;
use crate::remote::{EnclosedAppliance, SshAppliances};
use crate::uml::{UML_INTERFACE, UmlConfig, UmlDisk, UmlGuest, UmlInterface, uml_processor};

/// What the kernel of a guest calls what it finds, less a letter or number at the end.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeviceNames {
    /// The disk of its root.
    pub(super) root: &'static str,
    /// The disk of its data.
    pub(super) data: &'static str,
    /// Network interfaces.
    pub(super) interface: &'static str,
}

impl DeviceNames {
    /// Those of a guest of a hypervisor, whose data are on this adapter.
    pub(super) fn of_adapter(data: &Adapter) -> Self {
        Self { root: DEFAULT_ADAPTER.disk_prefix, data: data.disk_prefix, interface: "eth" }
    }

    /// The interface at the end of a cable; the kernel numbers them in the order of the devices.
    fn link(self, (number, cable): (usize, &CableEnd)) -> InterfaceOrder {
        let (address, prefix) = (cable.address().octets(), cable.prefix());
        let address = AddressOrder::Fixed { address, prefix };
        InterfaceOrder { name: format!("{}{number}", self.interface), address }
    }
}

/// Natively: block devices by their nodes, and an interface where it has one of its own.
pub(crate) fn mount_order_of_nodes(
    spec: &ApplianceSpec,
    root: &str,
    data: Option<&str>,
    interface: Option<InterfaceOrder>,
) -> MountOrder {
    let node = |path: &str| DiskPlace::Node(path.to_owned());
    MountOrder {
        host_name: spec.recipe.name.clone(),
        init: spec.recipe.init,
        root: node(root),
        data: data.zip(spec.recipe.data.as_ref()).map(|(path, data)| DataOrder {
            disk: node(path),
            folder: data.folder.clone(),
            user: data.user.clone(),
        }),
        interface,
        links: Vec::new(),
        hosts: host_names(&spec.tiers),
        screen: false,
    }
}

/// The root is the guest's first disk, the data the next.
pub(super) fn mount_order(spec: &ApplianceSpec, names: DeviceNames, address: AddressOrder) -> MountOrder {
    let disk = |prefix: &str, index| DiskPlace::Disk { name_prefix: prefix.to_owned(), index };
    let (root, prefix) = (names.root, names.data);
    MountOrder {
        host_name: spec.recipe.name.clone(),
        init: spec.recipe.init,
        root: disk(root, 0),
        data: spec.recipe.data.as_ref().map(|data| DataOrder {
            disk: disk(prefix, usize::from(prefix == root)),
            folder: data.folder.clone(),
            user: data.user.clone(),
        }),
        links: (1..).zip(&spec.tiers.cables).map(|end| names.link(end)).collect(),
        hosts: host_names(&spec.tiers),
        screen: spec.recipe.screen,
        interface: Some(InterfaceOrder { name: format!("{}0", names.interface), address }),
    }
}

/// Boots a guest; returns it with what it is to mount, and with what is to be noted. `port` is one more to be reached. A boot that
/// hangs or panics is repeated once.
pub(crate) fn boot_guest(
    spec: &ApplianceSpec,
    place: &GuestPlace,
    port: u16,
) -> Result<(Guest, MountOrder, Vec<String>), ApplianceError> {
    let network = match &spec.network {
        Network::User => {
            let ports = spec.recipe.ports().into_iter().chain([port]).collect();
            GuestNetwork::User { ports, datagram_ports: Vec::new() }
        }
        Network::Namespace(namespace) => GuestNetwork::Tap(Arc::new(namespace.tap()?)),
    };
    let (mut settings, mut notes) = (place.settings.clone(), Vec::new());
    let (mut has_uring, mut is_repeated) = (true, false);
    let failed = |source| ApplianceError::Machine { name: spec.name.clone(), source };
    let guest = loop {
        let config = config(spec, place, &settings, has_uring, &network);
        let error = match Guest::boot(&place.qemu, &place.image, &config) {
            Ok(guest) => break guest,
            Err(error) => error,
        };
        if let Some(note) = has_uring.then(|| io_without_uring(&error, &mut settings)).flatten() {
            (has_uring, notes) = (false, vec![format!("{}: {note}", spec.name)]);
        } else if is_repeated {
            return Err(failed(error));
        } else {
            is_repeated = true;
            notes.push(note_of_second_boot(&spec.name, error).map_err(failed)?);
        }
    };
    let (address, prefix) = network.address();
    let address = AddressOrder::Fixed { address: address.octets(), prefix };
    let order = mount_order(spec, DeviceNames::of_adapter(place.adapter), address);
    Ok((guest, order, notes))
}

/// What is to be noted of a guest that is booted a second time.
///
/// # Errors
/// The error itself, where the next boot would hardly go better.
pub(super) fn note_of_second_boot(name: &str, error: MachineError) -> Result<String, MachineError> {
    if !may_pass(&error) {
        return Err(error);
    }
    tracing::warn!(%error, "the guest is booted a second time");
    let first = error.to_string();
    let first = first.lines().next().unwrap_or_default();
    Ok(format!("{name}: booted a second time, because {first}"))
}

/// Whether the next boot may well go better.
fn may_pass(error: &MachineError) -> bool {
    matches!(
        error,
        MachineError::Panicked { .. }
            | MachineError::Conversation { source: ConnectionError::TimedOut { .. }, .. }
    )
}

fn config(
    spec: &ApplianceSpec,
    place: &GuestPlace,
    settings: &crate::adapters::DiskSettings,
    has_uring: bool,
    network: &GuestNetwork,
) -> GuestConfig {
    let mut root = GuestDisk { read_only: true, ..GuestDisk::new(DEFAULT_ADAPTER, spec.root.clone()) };
    if !has_uring {
        root.settings.replace_io_uring();
    }
    let data = spec
        .data
        .iter()
        .map(|data| GuestDisk { settings: settings.clone(), ..GuestDisk::new(place.adapter, data.clone()) });
    GuestConfig {
        vcpus: spec.vcpus,
        memory_bytes: spec.memory_bytes,
        disks: [root].into_iter().chain(data).collect(),
        boot_limit: place.boot_limit,
        processors: spec.processors.clone(),
        network: Some(network.clone()),
        cables: spec.tiers.cables.clone(),
        screen: spec.recipe.screen,
        ..GuestConfig::new(place.accelerator)
    }
}

/// The network of a guest that was to have QEMU's own: User Mode Linux has none, so it gets a namespace for itself.
///
/// # Errors
/// Root is needed.
pub(super) fn own_network() -> Result<Network, ApplianceError> {
    NetworkNamespace::new().map(Network::Namespace)
}

/// Boots a guest; returns it with what it is to mount, and with what is to be noted. A boot that hangs or panics is repeated once.
pub(super) fn boot_uml(
    spec: &ApplianceSpec,
    place: &UmlPlace,
) -> Result<(UmlGuest, MountOrder, Vec<String>), ApplianceError> {
    let Network::Namespace(namespace) = &spec.network else {
        return Err(ApplianceError::Spec {
            name: spec.name.clone(),
            why: "it has no network: a defect".into(),
        });
    };
    let failed = |source| ApplianceError::Machine { name: spec.name.clone(), source };
    let tap = Arc::new(namespace.plain_tap()?);
    let note = format!("{}: its network is a packet socket: there is no tap device for this user", spec.name);
    let mut notes: Vec<String> = (tap.kind == PortKind::Packet).then_some(note).into_iter().collect();
    let address = AddressOrder::Fixed { address: tap.address.octets(), prefix: tap.prefix };
    let cables = spec.tiers.cables.iter().cloned().map(UmlInterface::Cable);
    let root = UmlDisk::new(place.disk, spec.root.clone()).read_only();
    let data = spec.data.iter().map(|data| UmlDisk::new(place.disk, data.clone()));
    let config = UmlConfig {
        memory_bytes: spec.memory_bytes,
        disks: [root].into_iter().chain(data).collect(),
        interfaces: [UmlInterface::Tap(tap)].into_iter().chain(cables).collect(),
        boot_limit: place.boot_limit,
        processor: uml_processor(&spec.processors),
    };
    let guest = UmlGuest::boot(&place.image, &config)
        .or_else(|error| {
            notes.push(note_of_second_boot(&spec.name, error)?);
            UmlGuest::boot(&place.image, &config)
        })
        .map_err(failed)?;
    let prefix = place.disk.disk_prefix();
    let names = DeviceNames { root: prefix, data: prefix, interface: UML_INTERFACE };
    Ok((guest, mount_order(spec, names, address), notes))
}

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
        let agent = NativeAgent::start("--alone", vec![network_fd], |command| {
            limits.apply(command).map(|()| Vec::new())
        })?;
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

/// Boots a domain; returns it with what it is to mount.
pub(crate) fn boot_domain(
    spec: &ApplianceSpec,
    place: &LibvirtAppliances,
) -> Result<(DomainAppliance, MountOrder), MachineError> {
    let names = DeviceNames::of_adapter(DEFAULT_ADAPTER);
    Ok((place.boot(&spec.parts())?, mount_order(spec, names, AddressOrder::Granted)))
}

/// Encloses one; returns it with what it is to mount.
pub(crate) fn start(
    spec: &ApplianceSpec,
    place: &SshAppliances,
) -> Result<(EnclosedAppliance, MountOrder), MachineError> {
    let appliance = place.enclose(&spec.parts())?;
    let enclosed = &appliance.enclosed;
    let interface = InterfaceOrder { name: enclosed.interface.clone(), address: AddressOrder::Granted };
    let order = mount_order_of_nodes(spec, &enclosed.root, enclosed.data.as_deref(), Some(interface));
    Ok((appliance, order))
}
