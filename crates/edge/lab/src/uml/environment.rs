//! The UML environment: a guest of User Mode Linux with one disk that loads are applied to; and whether such guests boot here.

use std::sync::OnceLock;

use virtbench_agent::protocol::{Greeting, TargetRef};
use virtbench_record::{AcceleratorFacts, GuestFacts};

use super::disk::UmlDiskKind;
use super::guest::{UmlConfig, UmlGuest, uml_processor};
use super::kernel::{UmlImage, UmlKernel};
use crate::connection::{Connection, ConnectionError};
use crate::guest::BOOT_LIMIT;
use crate::machine::{Environment, LabError, Machine};
use crate::process::MachineError;

/// Loads are applied to the first disk of a guest of User Mode Linux.
#[derive(Debug, Clone)]
pub struct Uml {
    name: String,
    image: UmlImage,
    /// How it was chosen.
    accelerator: AcceleratorFacts,
    config: UmlConfig,
}

impl Uml {
    /// Guests as `config` says, which were chosen for this reason.
    #[must_use]
    pub fn new(name: &str, image: UmlImage, why: &str, config: UmlConfig) -> Self {
        let why = format!("{why}; {} runs as a process", image.kernel().program.display());
        let accelerator = AcceleratorFacts { name: "uml".to_owned(), why };
        Self { name: name.to_owned(), image, accelerator, config }
    }
}

impl Environment for Uml {
    fn name(&self) -> &str {
        &self.name
    }

    fn start(&mut self) -> Result<Box<dyn Machine>, LabError> {
        let _guest = tracing::info_span!("guest", name = self.name).entered();
        let failed = |source| LabError::of(&self.name, source);
        let guest = UmlGuest::boot(&self.image, &self.config).map_err(failed)?;
        Ok(Box::new(UmlMachine { environment: self.clone(), guest }))
    }
}

#[derive(Debug)]
struct UmlMachine {
    environment: Uml,
    guest: UmlGuest,
}

impl UmlMachine {
    fn kind(&self) -> UmlDiskKind {
        self.environment.config.disks.first().map_or(UmlDiskKind::VirtioBlk, |disk| disk.kind)
    }
}

impl Machine for UmlMachine {
    fn name(&self) -> &str {
        &self.environment.name
    }

    fn connection(&mut self) -> &mut Connection {
        self.guest.connection()
    }

    fn greeting(&self) -> &Greeting {
        self.guest.greeting()
    }

    fn target(&self) -> TargetRef {
        TargetRef::Disk { name_prefix: self.kind().disk_prefix().to_owned() }
    }

    fn guest(&self) -> Option<GuestFacts> {
        let greeting = self.guest.greeting();
        let kernel = self.environment.image.kernel();
        Some(GuestFacts {
            accelerator: self.environment.accelerator.clone(),
            qemu: format!("User Mode Linux {}", kernel.release),
            kernel: greeting.kernel.clone(),
            vcpus: greeting.processors,
            memory_bytes: greeting.memory_bytes,
            adapter: self.kind().name().to_owned(),
            command_line: self.guest.command_line().to_vec(),
            boot_ns: u64::try_from(self.guest.boot_time().as_nanos()).unwrap_or(u64::MAX),
            crossing: Some(greeting.crossing),
        })
    }

    fn notes(&self) -> Vec<String> {
        let cached = self.kind().is_cached().then(|| {
            format!(
                "{}: {} reads and writes through the page cache of this host, the native side past it: choose disk=virtio-blk to \
                 compare both",
                self.environment.name,
                self.kind().name()
            )
        });
        cached.into_iter().collect()
    }

    fn shares_host_clock(&self) -> bool {
        false
    }

    fn processes(&self) -> Vec<u32> {
        vec![self.guest.process_id()]
    }

    fn servers(&self) -> Vec<u32> {
        self.guest.server_ids()
    }

    fn check(&mut self) -> Result<(), MachineError> {
        self.guest.check()
    }

    fn explain(&mut self, error: ConnectionError) -> MachineError {
        self.guest.explain(error)
    }

    fn shut_down(self: Box<Self>) {
        self.guest.shut_down();
    }
}

/// The answer, which holds as long as this process.
static ANSWER: OnceLock<Result<(), String>> = OnceLock::new();

/// Boots a guest without a disk on the first call; it takes about as long as booting one.
///
/// # Errors
/// Why it does not boot, in words: the system forbids what the kernel needs, or there is no memory for it.
pub fn probe_uml(kernel: &UmlKernel) -> Result<(), String> {
    ANSWER.get_or_init(|| boot(kernel)).clone()
}

fn boot(kernel: &UmlKernel) -> Result<(), String> {
    let image = UmlImage::new(kernel, &[]).map_err(|error| error.to_string())?;
    let config = UmlConfig { boot_limit: BOOT_LIMIT, ..UmlConfig::new(uml_processor(&[])) };
    let first_line = |error: MachineError| error.to_string().lines().next().unwrap_or_default().to_owned();
    UmlGuest::boot(&image, &config).map(UmlGuest::shut_down).map_err(first_line)
}
