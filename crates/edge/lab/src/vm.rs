//! The VM environment: a QEMU guest with one disk that loads are applied to.

use virtbench_agent::protocol::{Greeting, TargetRef};
use virtbench_record::{AcceleratorFacts, GuestFacts};

use crate::connection::{Connection, ConnectionError};
use crate::error::LabError;
use crate::guest::{Aio, Guest, GuestConfig, GuestDisk};
use crate::image::GuestImage;
use crate::machine::{Environment, Machine};
use crate::process::MachineError;
use crate::qemu::Qemu;

/// Loads are applied to the disk of a QEMU guest.
#[derive(Debug, Clone)]
pub struct Vm {
    name: String,
    qemu: Qemu,
    image: GuestImage,
    accelerator: AcceleratorFacts,
    config: GuestConfig,
    disk: GuestDisk,
    notes: Vec<String>,
}

impl Vm {
    /// Guests as `config` says, with `disk` as well; `accelerator` is how `config`'s was chosen.
    #[must_use]
    pub fn new(
        name: &str,
        qemu: Qemu,
        image: GuestImage,
        accelerator: AcceleratorFacts,
        config: GuestConfig,
        disk: GuestDisk,
    ) -> Self {
        Self { name: name.to_owned(), qemu, image, accelerator, config, disk, notes: Vec::new() }
    }

    fn boot(&self) -> Result<Guest, MachineError> {
        let mut config = self.config.clone();
        config.disks.insert(0, self.disk.clone());
        Guest::boot(&self.qemu, &self.image, &config)
    }
}

impl Environment for Vm {
    fn name(&self) -> &str {
        &self.name
    }

    fn start(&mut self) -> Result<Box<dyn Machine>, LabError> {
        let mut booted = self.boot();
        // A QEMU built without io_uring, or a host that forbids it: said, and done without.
        if let Err(MachineError::Ended { console, .. }) = &booted {
            let complaint = console.iter().find(|line| line.contains("io_uring")).cloned();
            if let (Aio::IoUring, Some(complaint)) = (self.disk.aio, complaint) {
                self.disk.aio = Aio::Native;
                self.notes.push(format!("aio=native instead of io_uring, as QEMU said: {complaint}"));
                booted = self.boot();
            }
        }
        let guest = booted.map_err(|source| LabError::Machine { machine: self.name.clone(), source })?;
        Ok(Box::new(VmMachine { environment: self.clone(), guest }))
    }
}

#[derive(Debug)]
struct VmMachine {
    environment: Vm,
    guest: Guest,
}

impl Machine for VmMachine {
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
        TargetRef::Disk { name_prefix: self.environment.disk.adapter.disk_prefix.to_owned() }
    }

    fn guest(&self) -> Option<GuestFacts> {
        let greeting = self.guest.greeting();
        Some(GuestFacts {
            accelerator: self.environment.accelerator.clone(),
            qemu: self.environment.qemu.version.clone(),
            kernel: greeting.kernel.clone(),
            vcpus: greeting.processors,
            memory_bytes: greeting.memory_bytes,
            adapter: self.environment.disk.adapter.name.to_owned(),
            command_line: self.guest.command_line().to_vec(),
            boot_ns: u64::try_from(self.guest.boot_time().as_nanos()).unwrap_or(u64::MAX),
        })
    }

    fn notes(&self) -> Vec<String> {
        self.environment.notes.clone()
    }

    fn shares_host_clock(&self) -> bool {
        false
    }

    fn processes(&self) -> Vec<u32> {
        vec![self.guest.process_id()]
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
