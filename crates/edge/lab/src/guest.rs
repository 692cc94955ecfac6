//! One QEMU guest, from its start to its end.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};
use virtbench_agent::Console;
use virtbench_agent::protocol::{Greeting, PORT_NAME, ProtocolError};

use crate::adapters::Transport;
use crate::clock::host_tsc_khz;
use crate::connection::{Connection, ConnectionError};
use crate::guest_disk::{GuestDisk, of_guest};
use crate::guest_network::{CableEnd, GuestNetwork, forwarded_ports};
use crate::image::GuestImage;
use crate::io_limit::IoGroup;
use crate::process::{AgentProcess, MachineError};
use crate::qemu::{KvmCpu, Qemu};
use crate::qemu_tools::StorageDaemon;
use crate::qmp::Qmp;

/// How long a guest may take to boot, unless told otherwise: 2 s when alone under emulation, more
/// when it shares its processor with others.
pub const BOOT_LIMIT: Duration = Duration::from_secs(60);
/// Width and height of a guest's screen, in pixels.
const SCREEN: (u32, u32) = (1024, 768);
/// How long a guest may take to power off.
const POWER_OFF_LIMIT: Duration = Duration::from_secs(10);

/// The guest kernel's command line.
///
/// - `console=ttyS0`, and no `quiet`: what the kernel says last is what an error shows. It says it
///   before the first I/O, so it costs no measurement anything.
/// - `panic=-1`: a panic restarts at once, which QEMU's `-no-reboot` turns into its end.
/// - `tsc=reliable`: a clock reading costs 0.1 us; under contention the kernel would else distrust
///   the TSC in mid-run and fall back to HPET, where it costs 0.9 us.
/// - `no_timer_check`: under contention the check fails and the kernel would panic.
/// - `cryptomgr.notests`: trying its ciphers takes the kernel an eighth of an emulated boot.
///
/// `mitigations=off` and the like are left out on purpose: the guest is to be what users run.
const KERNEL_ARGUMENTS: &str = "console=ttyS0 panic=-1 tsc=reliable no_timer_check cryptomgr.notests";

/// The same with the frequency of the time stamp counter, which under TCG is the host's. The kernel else
/// measures it against emulated timers while it boots. Of nine guests booted together on a host that was
/// six times overcommitted none could do so by the PIT, and what the HPET gave was up to 0.15 % off; a guest
/// has been seen whose clock ran 12 times too fast.
pub(crate) fn kernel_arguments(accelerator: Accelerator, host_tsc_khz: Option<u64>) -> String {
    match (accelerator, host_tsc_khz) {
        (Accelerator::Tcg, Some(khz)) => format!("{KERNEL_ARGUMENTS} tsc_early_khz={khz}"),
        _ => KERNEL_ARGUMENTS.to_owned(),
    }
}

/// What executes a guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Accelerator {
    /// The processor, through the kernel's KVM, as a guest sees it so.
    Kvm(KvmCpu),
    /// QEMU's translator, with a thread per virtual processor.
    Tcg,
}

impl Accelerator {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kvm(_) => "kvm",
            Self::Tcg => "tcg",
        }
    }

    /// Whether the processor executes the guest's instructions itself.
    #[must_use]
    pub fn is_kvm(self) -> bool {
        matches!(self, Self::Kvm(_))
    }

    /// QEMU's arguments for it. The CPU is the best it offers; emulated, without the promise that string moves are fast byte by
    /// byte, which they are not.
    fn arguments(self) -> [&'static str; 4] {
        match self {
            Self::Kvm(cpu) => ["-accel", "kvm", "-cpu", cpu.model()],
            Self::Tcg => ["-accel", "tcg,thread=multi", "-cpu", "max,-erms,-fsrm"],
        }
    }
}

/// What a guest is made of.
#[derive(Debug, Clone)]
pub struct GuestConfig {
    /// Virtual processors.
    pub vcpus: u32,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// What executes it.
    pub accelerator: Accelerator,
    /// Its disks.
    pub disks: Vec<GuestDisk>,
    /// How long it may take to boot.
    pub boot_limit: Duration,
    /// Processors of the host that it is held to, all its threads; every one where this is empty.
    pub processors: Vec<usize>,
    /// How its network interface is connected, if it has one.
    pub network: Option<GuestNetwork>,
    /// Cables to other guests, an interface for each.
    pub cables: Vec<CableEnd>,
    /// Whether it has a graphics adapter, a keyboard and a pointer. Its image has their drivers then.
    pub screen: bool,
    /// Whether its boot ends where this process is to stop. Otherwise the caller looks at that afterwards.
    pub ends_with_stop: bool,
}

impl GuestConfig {
    /// A guest of one virtual processor and 256 MiB, without a disk.
    #[must_use]
    pub fn new(accelerator: Accelerator) -> Self {
        Self {
            vcpus: 1,
            memory_bytes: 256 << 20,
            accelerator,
            disks: Vec::new(),
            boot_limit: BOOT_LIMIT,
            processors: Vec::new(),
            network: None,
            cables: Vec::new(),
            screen: false,
            ends_with_stop: false,
        }
    }
}

/// A running guest. Dropping it kills it; nothing of it is left behind.
#[derive(Debug)]
pub struct Guest {
    process: AgentProcess,
    servers: Vec<StorageDaemon>,
    connection: Connection,
    qmp: Qmp,
    greeting: Greeting,
    command_line: Vec<String>,
    boot: Duration,
    has_screen: bool,
    // They go after QEMU, which is dropped first.
    _limits: Vec<IoGroup>,
}

impl Guest {
    /// Starts QEMU and waits for the agent's greeting.
    ///
    /// # Errors
    /// QEMU does not start or ends, the guest panics, or it says nothing within its limit.
    pub fn boot(qemu: &Qemu, image: &GuestImage, config: &GuestConfig) -> Result<Self, MachineError> {
        let failed = |source| MachineError::Start { program: qemu.path.clone(), source };
        let started = Instant::now();
        let (mut connection, agent_end) = Connection::pair().map_err(failed)?;
        let (initramfs, initramfs_path) = image.initramfs.lend().map_err(failed)?;

        let mut arguments = machine_arguments(config);
        let mut add = |words: &[&str]| arguments.extend(words.iter().map(|word| (*word).to_owned()));
        add(&["-kernel", &image.kernel.to_string_lossy(), "-initrd", &initramfs_path.to_string_lossy()]);
        add(&["-append", &kernel_arguments(config.accelerator, host_tsc_khz())]);
        // Sockets made here and inherited: no path, so no limit on its length and no file to clean up.
        add(&["-chardev", &format!("socket,id=agent,fd={}", agent_end.as_raw_fd())]);
        add(&["-device", "virtio-serial-pci,id=serial"]);
        add(&["-device", &format!("virtserialport,bus=serial.0,chardev=agent,name={PORT_NAME}")]);
        let (qmp, qmp_end) = Qmp::pair().map_err(failed)?;
        add(&["-chardev", &format!("socket,id=qmp,fd={}", qmp_end.as_raw_fd())]);
        add(&["-mon", "chardev=qmp,mode=control"]);
        let (mut servers, mut inherited) = (Vec::new(), vec![agent_end, initramfs, qmp_end]);
        for (index, disk) in config.disks.iter().enumerate() {
            let mut socket = None;
            if disk.is_served() {
                let (server, client) = StorageDaemon::start(disk, config.vcpus)?;
                socket = Some(client.as_raw_fd());
                servers.push(server);
                inherited.push(client);
            }
            arguments.extend(disk.arguments(index, socket));
        }
        if let Some(network) = &config.network {
            let (words, descriptor) = network.arguments().map_err(failed)?;
            arguments.extend(words);
            inherited.extend(descriptor);
        }
        for cable in &config.cables {
            let (words, descriptor) = cable.arguments().map_err(failed)?;
            arguments.extend(words);
            inherited.push(descriptor);
        }
        let mut command = Command::new(&qemu.path);
        command.args(&arguments);

        let mut process = AgentProcess::spawn(command, inherited, "QEMU")?;
        tracing::info!(
            process = process.id(),
            vcpus = config.vcpus,
            memory_bytes = config.memory_bytes,
            "QEMU started"
        );
        // QEMU may have ended already, which the conversation tells.
        let _ = qmp.watch(process.id());
        pin(process.id(), &config.processors).map_err(failed)?;
        let _limits = limited(process.id(), &config.disks)?;
        let greeting = match greet(&mut connection, config) {
            Ok(greeting) => greeting,
            Err(error) => {
                let error = explain(&mut process, &qmp, error);
                // A server that has ended is the reason for whatever QEMU says.
                servers.iter_mut().try_for_each(StorageDaemon::check)?;
                return Err(error);
            }
        };
        tracing::info!(
            boot_ms = started.elapsed().as_millis(),
            kernel = greeting.kernel,
            "the guest's agent answers"
        );
        let command_line =
            std::iter::once(qemu.path.to_string_lossy().into_owned()).chain(arguments).collect();
        let boot = started.elapsed();
        let has_screen = config.screen;
        Ok(Self { process, servers, connection, qmp, greeting, command_line, boot, has_screen, _limits })
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

    /// QEMU's command line. Its `/proc/self/fd` paths and descriptors mean something to that QEMU only.
    #[must_use]
    pub fn command_line(&self) -> &[String] {
        &self.command_line
    }

    /// From QEMU's start to the agent's greeting.
    #[must_use]
    pub fn boot_time(&self) -> Duration {
        self.boot
    }

    /// QEMU's process id.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Process ids of the servers of its disks.
    #[must_use]
    pub fn server_ids(&self) -> Vec<u32> {
        self.servers.iter().map(StorageDaemon::id).collect()
    }

    /// The command line of the first server of its disks; empty where there is none.
    #[must_use]
    pub fn server_command_line(&self) -> &[String] {
        self.servers.first().map_or(&[], StorageDaemon::command_line)
    }

    /// Stops its virtual processors, once the I/O in flight is done; its clock stands still then.
    ///
    /// # Errors
    /// QEMU does not do it within its limit.
    pub fn pause(&mut self) -> Result<(), MachineError> {
        self.qmp("stop").map(drop)
    }

    /// Lets its virtual processors go on.
    ///
    /// # Errors
    /// QEMU does not do it within its limit.
    pub fn unpause(&mut self) -> Result<(), MachineError> {
        self.qmp("cont").map(drop)
    }

    /// Threads that QEMU has for the I/O of disks alone.
    ///
    /// # Errors
    /// QEMU does not answer.
    pub fn iothreads(&mut self) -> Result<usize, MachineError> {
        Ok(self.qmp("query-iothreads")?.as_array().map_or(0, Vec::len))
    }

    /// Operations of its disk of this number, as QEMU counts them.
    pub(crate) fn disk_operations(&mut self, number: usize) -> io::Result<u64> {
        of_guest(&self.qmp.execute("query-blockstats")?, &format!("disk{number}"))
    }

    /// The ports of the host's loopback that lead to the guest: for each of the guest's ports the host's.
    ///
    /// # Errors
    /// QEMU does not answer.
    pub fn forwarded_ports(&mut self) -> Result<BTreeMap<u16, u16>, MachineError> {
        self.forwarded("TCP")
    }

    /// The same of UDP ports.
    ///
    /// # Errors
    /// QEMU does not answer.
    pub(crate) fn forwarded_datagram_ports(&mut self) -> Result<BTreeMap<u16, u16>, MachineError> {
        self.forwarded("UDP")
    }

    fn forwarded(&mut self, protocol: &str) -> Result<BTreeMap<u16, u16>, MachineError> {
        let line = serde_json::json!({ "command-line": "info usernet" });
        let answer = self.qmp.execute_with("human-monitor-command", line);
        let answer =
            answer.map_err(|error| explain(&mut self.process, &self.qmp, ProtocolError::Io(error).into()))?;
        Ok(forwarded_ports(answer.as_str().unwrap_or_default(), protocol))
    }

    /// A connection to QEMU's VNC server, which shows its screen. Nobody else can connect to that server.
    ///
    /// # Errors
    /// It has no screen, or QEMU refuses.
    pub fn connect_to_screen(&mut self) -> io::Result<TcpStream> {
        if !self.has_screen {
            // QEMU would take the connection, and never say a word.
            return Err(io::Error::other("the guest has no screen"));
        }
        let (ours, theirs) = connected_pair()?;
        self.qmp.lend("screen", theirs.into())?;
        let client = serde_json::json!({ "protocol": "vnc", "fdname": "screen", "skipauth": true });
        self.qmp.execute_with("add_client", client)?;
        Ok(ours)
    }

    fn qmp(&mut self, command: &str) -> Result<serde_json::Value, MachineError> {
        self.qmp
            .execute(command)
            .map_err(|error| explain(&mut self.process, &self.qmp, ProtocolError::Io(error).into()))
    }

    /// What it printed last.
    #[must_use]
    pub fn console(&self) -> &Console {
        self.process.console()
    }

    /// Whether QEMU and the servers of its disks still run; if not, why.
    ///
    /// # Errors
    /// One has ended.
    pub fn check(&mut self) -> Result<(), MachineError> {
        self.servers.iter_mut().try_for_each(StorageDaemon::check)?;
        self.process.check().map_err(|error| paused(&self.process, &self.qmp).unwrap_or(error))
    }

    /// Says what a broken conversation means, by what became of QEMU and stands on the console.
    pub fn explain(&mut self, error: ConnectionError) -> MachineError {
        let dead = self.servers.iter_mut().find_map(|server| server.check().err());
        dead.unwrap_or_else(|| explain(&mut self.process, &self.qmp, error))
    }

    /// Has the guest power off. One that does not is told to end by SIGTERM, upon which QEMU closes
    /// its disks in good order (what QMP's `quit` does), and at last is killed.
    pub fn shut_down(mut self) {
        let told = self.connection.shut_down().is_ok();
        tracing::info!(process = self.process.id(), told, "the guest powers off");
        self.process.end_within(if told { POWER_OFF_LIMIT } else { Duration::ZERO });
    }
}

/// What QEMU writes where KVM cannot go on; a dump of registers follows, which is longer than what an error carries.
const KVM_GIVES_UP: &str = "KVM internal error";

/// That QEMU has paused the guest for good, if it has.
fn paused(process: &AgentProcess, qmp: &Qmp) -> Option<MachineError> {
    let state = qmp.paused()?;
    let console = process.console();
    let state = format!("QEMU paused the guest ({state})");
    Some(MachineError::Paused { state, words: console.line_with(KVM_GIVES_UP), console: console.tail() })
}

fn greet(connection: &mut Connection, config: &GuestConfig) -> Result<Greeting, ConnectionError> {
    if config.ends_with_stop {
        connection.greet_unless_stopped(config.boot_limit)
    } else {
        connection.greet(config.boot_limit)
    }
}

/// Says what a broken conversation means, by what became of QEMU.
fn explain(process: &mut AgentProcess, qmp: &Qmp, error: ConnectionError) -> MachineError {
    let broken = process.explain(error);
    paused(process, qmp).unwrap_or(broken)
}

/// Holds a process to the limits of these disks, while what is returned is there.
fn limited(process_id: u32, disks: &[GuestDisk]) -> Result<Vec<IoGroup>, MachineError> {
    let limited = disks.iter().filter_map(|disk| Some((disk, disk.limits?)));
    let limits = limited.map(|(disk, limits)| IoGroup::limit(process_id, &disk.path, limits));
    Ok(limits.collect::<Result<_, _>>()?)
}

/// Holds a process to some of the host's processors. Threads that it makes later are held with it.
pub(crate) fn pin(process_id: u32, processors: &[usize]) -> io::Result<()> {
    if processors.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for processor in processors.iter().filter(|processor| **processor < CpuSet::MAX_CPU) {
        set.set(*processor);
    }
    // QEMU may have made threads already, each of which has a set of its own.
    for task in std::fs::read_dir(format!("/proc/{process_id}/task"))?.flatten() {
        let thread = task.file_name().to_string_lossy().parse().ok().and_then(Pid::from_raw);
        if let Some(thread) = thread {
            sched_setaffinity(Some(thread), &set)?;
        }
    }
    Ok(())
}

/// The two ends of a TCP connection on loopback.
fn connected_pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let ours = TcpStream::connect(listener.local_addr()?)?;
    // Another client of the port is turned away meanwhile.
    loop {
        let (theirs, from) = listener.accept()?;
        if from == ours.local_addr()? {
            return Ok((ours, theirs));
        }
    }
}

fn machine_arguments(config: &GuestConfig) -> Vec<String> {
    let memory_mib = config.memory_bytes.div_ceil(1 << 20);
    let mut arguments: Vec<String> = ["-machine", "q35"].map(str::to_owned).into();
    if config.disks.iter().any(|disk| disk.adapter.transport == Transport::VhostUser) {
        // A server over vhost-user reads and writes the guest's memory itself.
        arguments[1].push_str(",memory-backend=memory");
        let memory = format!("memory-backend-memfd,id=memory,size={memory_mib}M,share=on");
        arguments.extend(["-object".into(), memory]);
    }
    arguments.extend(config.accelerator.arguments().map(str::to_owned));
    // With room for one processor only, TCG leaves out the memory barriers that a guest's drivers rely
    // on, although QEMU's I/O runs beside the guest, so that a virtio notification can be lost. Room
    // for a second processor keeps them. Guests' disks had stood still twice in some 300 points; that
    // this was why is likely and not shown: the stall could not be brought about at will.
    let smp = format!("cpus={},maxcpus={}", config.vcpus, config.vcpus.max(2));
    arguments.extend(["-smp".into(), smp, "-m".into(), format!("{memory_mib}M")]);
    // Standard input is null, and `-nographic` would spin on it; `-serial` prints to the same pipe as
    // QEMU itself, so its own errors stand between the guest's lines.
    let fixed = "-nodefaults -no-user-config -display none -no-reboot -serial file:/dev/stdout";
    arguments.extend(fixed.split(' ').map(str::to_owned));
    if config.screen {
        // No port is opened: who may see the screen is handed to QEMU as a connection.
        let screen = format!("-vnc none -device VGA,xres={},yres={}", SCREEN.0, SCREEN.1);
        let input = "-device virtio-keyboard-pci -device virtio-tablet-pci";
        arguments.extend(screen.split(' ').chain(input.split(' ')).map(str::to_owned));
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_rounded_up_to_what_qemu_takes() {
        let config = GuestConfig { memory_bytes: (64 << 20) + 1, ..GuestConfig::new(Accelerator::Tcg) };
        assert!(machine_arguments(&config).contains(&"65M".to_owned()));
    }

    #[test]
    fn a_guest_of_one_processor_has_room_for_two() {
        for (vcpus, smp) in [(1, "cpus=1,maxcpus=2"), (2, "cpus=2,maxcpus=2"), (4, "cpus=4,maxcpus=4")] {
            let config = GuestConfig { vcpus, ..GuestConfig::new(Accelerator::Tcg) };
            assert!(machine_arguments(&config).contains(&smp.to_owned()), "{smp}");
        }
    }
}
