//! One guest of User Mode Linux, from its start to its end, with its network interfaces and the processor that it is held to.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use virtbench_agent::enclosure::usable_processors;
use virtbench_agent::protocol::Greeting;
use virtbench_agent::{Console, LINE, carry_as_host};
use virtbench_host::with_descendants;

use super::disk::{DiskServers, UmlDisk, UmlDiskKind, own_socket};
use super::kernel::UmlImage;
use super::memory::GuestMemory;
use crate::connection::{Connection, ConnectionError};
use crate::guest::{BOOT_LIMIT, pin};
use crate::guest_network::{CableEnd, PortKind, Tap};
use crate::process::{AgentProcess, MachineError};
use crate::start_folder::start_folder;

/// How long a guest may take to power off.
const POWER_OFF_LIMIT: Duration = Duration::from_secs(10);

/// What the kernel of a guest needs for itself beside the guest's memory, in bytes.
const OVERHEAD: u64 = 16 << 20;

/// The kind of a virtio block device (VIRTIO 1.2, section 5).
const VIRTIO_BLOCK: u32 = 2;

/// What a guest is made of.
#[derive(Debug, Clone)]
pub struct UmlConfig {
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// Its disks.
    pub disks: Vec<UmlDisk>,
    /// Its network interfaces.
    pub interfaces: Vec<UmlInterface>,
    /// How long it may take to boot.
    pub boot_limit: Duration,
    /// The processor of this host that it is held to. On two each crossing into its kernel would cost several times more.
    pub processor: usize,
}

impl UmlConfig {
    /// A guest of 256 MiB without a disk.
    #[must_use]
    pub fn new(processor: usize) -> Self {
        Self {
            memory_bytes: 256 << 20,
            disks: Vec::new(),
            interfaces: Vec::new(),
            boot_limit: BOOT_LIMIT,
            processor,
        }
    }
}

/// What the kernel prints where the host does not let it trace processes. It tries that where it cannot filter their system calls.
const TRACING_FORBIDDEN: &str = "ptrace: Operation not permitted";

const NO_CROSSING: &str = "this host forbids ptrace and, as far as the guest's kernel can use them, filters of system calls (seccomp): \
    a guest of User Mode Linux needs one of the two. A container gets both by `--security-opt seccomp=unconfined`";

/// A running guest. Dropping it kills it; nothing of it is left behind.
#[derive(Debug)]
pub struct UmlGuest {
    process: AgentProcess,
    servers: DiskServers,
    _memory: GuestMemory,
    connection: Connection,
    greeting: Greeting,
    command_line: Vec<String>,
    boot: Duration,
}

impl UmlGuest {
    /// Starts the kernel and waits for the agent's greeting.
    ///
    /// # Errors
    /// The kernel does not start or panics, there is no room for its memory, or it says nothing within its limit.
    pub fn boot(image: &UmlImage, config: &UmlConfig) -> Result<Self, MachineError> {
        let program = image.kernel.program.clone();
        let failed = |source| MachineError::Start { program: program.clone(), source };
        let lacking = |why: String| MachineError::Lacking { why };
        let wanted_bytes = config.memory_bytes.saturating_add(OVERHEAD);
        let mut memory = GuestMemory::reserve(wanted_bytes).map_err(lacking)?;
        let folder = start_folder(memory.folder(), "uml").map_err(failed)?;
        let started = Instant::now();
        let (mut connection, plain) = Connection::pair().map_err(failed)?;
        let (line, guest_line) = UnixStream::pair().map_err(failed)?;
        carry_as_host(UnixStream::from(plain), line).map_err(failed)?;
        let guest_line = OwnedFd::from(guest_line);
        let (initramfs, initramfs_path) = image.initramfs.lend().map_err(failed)?;
        let mut servers = DiskServers::start(&config.disks, folder.path())?;
        let mut arguments =
            arguments(config, folder.path(), &initramfs_path, guest_line.as_raw_fd()).map_err(lacking)?;
        let mut inherited = vec![guest_line, initramfs];
        for (number, interface) in config.interfaces.iter().enumerate() {
            let (argument, descriptor) = interface.argument(number).map_err(failed)?;
            arguments.push(argument);
            inherited.push(descriptor);
        }
        let mut command = Command::new(&program);
        command.args(&arguments).env("TMPDIR", memory.folder()).env("HOME", folder.path());
        let mut process = AgentProcess::spawn_guarded(command, inherited, "User Mode Linux")?;
        memory.taken_by(process.id());
        tracing::info!(
            process = process.id(),
            memory_bytes = config.memory_bytes,
            processor = config.processor,
            "User Mode Linux started"
        );
        pin(process.id(), &[config.processor]).map_err(failed)?;
        servers.take_along(process.id()).map_err(failed)?;
        let greeting = connection.greet(config.boot_limit);
        let greeting = greeting.map_err(|error| explain_start(&mut servers, &mut process, error))?;
        let boot = started.elapsed();
        // Sockets in it are connected. Without it a kill leaves nothing.
        drop(folder);
        tracing::info!(boot_ms = boot.as_millis(), kernel = greeting.kernel, "the guest's agent answers");
        let command_line = std::iter::once(program.to_string_lossy().into_owned()).chain(arguments).collect();
        Ok(Self { process, servers, _memory: memory, connection, greeting, command_line, boot })
    }

    /// The conversation with its agent.
    pub fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// What its agent said of it.
    #[must_use]
    pub fn greeting(&self) -> &Greeting {
        &self.greeting
    }

    /// The kernel's command line. Its `/proc/self/fd` paths and descriptors mean something to that process only.
    #[must_use]
    pub fn command_line(&self) -> &[String] {
        &self.command_line
    }

    /// From the kernel's start to the agent's greeting.
    #[must_use]
    pub fn boot_time(&self) -> Duration {
        self.boot
    }

    /// The process of its kernel, of which all others descend.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// The processes that make it up: one of this host for each address space of the guest.
    #[must_use]
    pub fn process_ids(&self) -> Vec<u32> {
        with_descendants(self.process.id())
    }

    /// Process ids of the servers of its disks.
    #[must_use]
    pub fn server_ids(&self) -> Vec<u32> {
        self.servers.ids()
    }

    /// What it printed last.
    #[must_use]
    pub fn console(&self) -> &Console {
        self.process.console()
    }

    /// Whether its kernel and the servers of its disks still run; if not, why.
    ///
    /// # Errors
    /// One has ended.
    pub fn check(&mut self) -> Result<(), MachineError> {
        self.servers.check()?;
        self.process.check()
    }

    /// Says what a broken conversation means, by what became of the kernel and stands on the console.
    pub fn explain(&mut self, error: ConnectionError) -> MachineError {
        explain(&mut self.servers, &mut self.process, error)
    }

    /// Has the guest power off; one that does not is killed: a kernel that hangs does not end by SIGTERM.
    pub fn shut_down(mut self) {
        let told = self.connection.shut_down().is_ok();
        tracing::info!(process = self.process.id(), told, "the guest powers off");
        self.process.end_within(if told { POWER_OFF_LIMIT } else { Duration::ZERO });
    }
}

/// A server that has ended is the reason for whatever the kernel says.
fn explain(servers: &mut DiskServers, process: &mut AgentProcess, error: ConnectionError) -> MachineError {
    servers.check().err().unwrap_or_else(|| process.explain(error))
}

/// Explains also what the host forbids, which shows while the kernel starts.
fn explain_start(
    servers: &mut DiskServers,
    process: &mut AgentProcess,
    error: ConnectionError,
) -> MachineError {
    match explain(servers, process, error) {
        MachineError::Ended { .. } if process.console().contains(TRACING_FORBIDDEN) => {
            MachineError::Lacking { why: NO_CROSSING.to_owned() }
        }
        error => error,
    }
}

/// The kernel's arguments.
///
/// # Errors
/// A path that the kernel cannot be given, in words.
fn arguments(config: &UmlConfig, folder: &Path, initramfs: &Path, line: i32) -> Result<Vec<String>, String> {
    let mut arguments = vec![
        format!("mem={}M", config.memory_bytes.div_ceil(1 << 20)),
        format!("uml_dir={}", folder.display()),
        "umid=guest".to_owned(),
        format!("initrd={}", initramfs.display()),
        // The console goes to the process's output; nobody types.
        "con=null".to_owned(),
        "con0=null,fd:1".to_owned(),
        "console=tty0".to_owned(),
        "panic=-1".to_owned(),
        "ssl=null".to_owned(),
        format!("ssl0=fd:{line}"),
        format!("{LINE}=ttyS0"),
        // Crossings cost half of what they do by ptrace, which is used where the system forbids this. Kernels before 6.16 do not know
        // it. It does not keep the guest's user code from the memory of the guest's kernel; both are virtbench's.
        "seccomp=auto".to_owned(),
    ];
    for (number, disk) in config.disks.iter().enumerate() {
        let path = match (disk.kind, disk.server()) {
            (UmlDiskKind::Ubd { .. }, _) => disk.blocks.path.clone(),
            (UmlDiskKind::VirtioBlk, None) => own_socket(folder, number),
            (UmlDiskKind::VirtioBlk, Some(server)) => server.to_owned(),
        };
        let path = path.to_string_lossy();
        if path.contains([',', ':']) {
            return Err(format!(
                "{path}: User Mode Linux takes no path with a comma or a colon: rename the folder"
            ));
        }
        arguments.push(match disk.kind {
            UmlDiskKind::Ubd { synchronous } => {
                let (read_only, synchronous) = (flag(disk.blocks.read_only, "r"), flag(synchronous, "s"));
                format!("ubd{number}{read_only}{synchronous}c={path}")
            }
            UmlDiskKind::VirtioBlk => format!("virtio_uml.device={path}:{VIRTIO_BLOCK}"),
        });
    }
    Ok(arguments)
}

fn flag(is_set: bool, letter: &'static str) -> &'static str {
    if is_set { letter } else { "" }
}

/// What the guest's kernel calls its first interface, less the number.
pub(crate) const INTERFACE: &str = "vec";

/// What a network interface is connected to. Cloning gives another handle.
#[derive(Debug, Clone)]
pub enum UmlInterface {
    /// A tap device whose frames have no header.
    Tap(Arc<Tap>),
    /// One end of a cable to another guest.
    Cable(CableEnd),
}

impl UmlInterface {
    /// The kernel's argument for the interface of this number, and the descriptor that it inherits.
    pub(super) fn argument(&self, number: usize) -> io::Result<(String, OwnedFd)> {
        let (descriptor, mac, batches, mtu) = match self {
            // A tap device is read and written frame by frame: it is no socket.
            Self::Tap(tap) if tap.kind == PortKind::Tap => (tap.file.as_fd(), tap.mac(), ",vec=0", tap.mtu),
            Self::Tap(port) => (port.file.as_fd(), port.mac(), "", port.mtu),
            Self::Cable(cable) => (cable.socket(), cable.mac(), "", None),
        };
        let mtu = mtu.map(|mtu| format!(",mtu={mtu}")).unwrap_or_default();
        let descriptor = descriptor.try_clone_to_owned()?;
        let fd = descriptor.as_raw_fd();
        Ok((format!("{INTERFACE}{number}:transport=fd,fd={fd},mac={mac}{batches}{mtu}"), descriptor))
    }
}

/// Guests that were told of no processor.
static UNHELD: AtomicUsize = AtomicUsize::new(0);

/// The first that a guest is to be held to, else each of those that this process may use in turn, the last first: interrupts are
/// handled by the first.
#[must_use]
pub fn uml_processor(held_to: &[usize]) -> usize {
    let in_turn = || {
        let usable = usable_processors().unwrap_or_default();
        let turn = UNHELD.fetch_add(1, Ordering::Relaxed).checked_rem(usable.len())?;
        usable.iter().rev().nth(turn).copied()
    };
    held_to.first().copied().or_else(in_turn).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn disks_follow_each_other_and_paths_that_would_be_split_are_refused() {
        let disk =
            |path: &str, synchronous| UmlDisk::new(UmlDiskKind::Ubd { synchronous }, PathBuf::from(path));
        let with = |disks| {
            let config = UmlConfig { disks, ..UmlConfig::new(0) };
            arguments(&config, Path::new("/run"), Path::new("/i"), 7)
        };
        let read = disk("/c", false).read_only();
        let words = with(vec![disk("/a", false), disk("/b", true), read]).unwrap();
        for word in ["ubd0c=/a", "ubd1sc=/b", "ubd2rc=/c"] {
            assert!(words.iter().any(|one| one == word), "{words:?}");
        }
        assert!(with(vec![disk("/a,b", false)]).unwrap_err().contains("comma"));
    }

    #[test]
    fn both_ends_of_a_cable_are_interfaces_with_addresses_of_their_own() {
        let (first, second) = CableEnd::pair(3).unwrap();
        let words = [first, second].map(|end| UmlInterface::Cable(end).argument(1).unwrap().0);
        assert!(words[0].starts_with("vec1:transport=fd,fd=") && words[0].contains("mac=52:54:00:76:71:03"));
        assert!(words[1].contains("mac=52:54:00:76:72:03") && !words[1].contains("vec=0"), "{words:?}");
    }

    #[test]
    fn guests_that_are_held_to_no_processor_take_turns() {
        let usable = usable_processors().unwrap();
        let mut taken: Vec<usize> = usable.iter().map(|_| uml_processor(&[])).collect();
        taken.sort_unstable();
        assert_eq!((taken, uml_processor(&[7, 8])), (usable, 7));
    }
}
