//! The VM environment: a QEMU guest with one disk that loads are applied to, and which of its settings came out other than asked for.

use std::fs::File;
use std::time::Duration;

use virtbench_agent::protocol::{Greeting, TargetRef};
use virtbench_record::{AcceleratorFacts, DeviceFacts, GuestFacts, NotHonoured, SetupFacts};

use crate::adapters::{DiskSettings, Transport};
use crate::connection::{Connection, ConnectionError};
use crate::guest::{Guest, GuestConfig};
use crate::guest_disk::{GuestDisk, io_without_uring};
use crate::image::GuestImage;
use crate::machine::{Environment, LabError, Machine};
use crate::process::MachineError;
use crate::qemu::Qemu;

/// How long a guest's disk may take to be described: the agent waits for it to appear.
const DESCRIBE_LIMIT: Duration = Duration::from_secs(30);

/// Loads are applied to the disk of a QEMU guest.
#[derive(Debug, Clone)]
pub struct Vm {
    name: String,
    qemu: Qemu,
    image: GuestImage,
    accelerator: AcceleratorFacts,
    config: GuestConfig,
    disk: GuestDisk,
    setup: Option<SetupFacts>,
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
        Self { name: name.to_owned(), qemu, image, accelerator, config, disk, setup: None, notes: Vec::new() }
    }

    /// The same as one configuration of several: what was asked for is in `asked`, what is found is
    /// filled in when a guest has booted.
    #[must_use]
    pub fn with_setup(self, asked: SetupFacts) -> Self {
        Self { setup: Some(asked), ..self }
    }

    /// The same, with its guests held to these processors of the host.
    #[must_use]
    pub fn with_processors(mut self, processors: Vec<usize>) -> Self {
        self.config.processors = processors;
        self
    }

    fn boot(&self) -> Result<Guest, MachineError> {
        let mut config = self.config.clone();
        config.disks.insert(0, self.disk.clone());
        config.ends_with_stop = true;
        Guest::boot(&self.qemu, &self.image, &config)
    }
}

impl Environment for Vm {
    fn name(&self) -> &str {
        &self.name
    }

    fn start(&mut self) -> Result<Box<dyn Machine>, LabError> {
        let _guest =
            tracing::info_span!("guest", name = self.name, adapter = self.disk.adapter.name).entered();
        let mut booted = self.boot();
        let other = booted.as_ref().err().and_then(|error| io_without_uring(error, &mut self.disk.settings));
        if let Some(note) = other {
            self.notes.push(format!("{}: {note}", self.name));
            booted = self.boot();
        }
        let failed = |source| LabError::of(&self.name, source);
        let mut guest = booted.inspect_err(|error| tracing::warn!(%error, "no guest")).map_err(failed)?;
        let setup = match &self.setup {
            Some(asked) => Some(self.found(asked, &mut guest).map_err(failed)?),
            None => None,
        };
        Ok(Box::new(VmMachine { environment: self.clone(), guest, setup }))
    }
}

impl Vm {
    /// What a configuration was found to be.
    fn found(&self, asked: &SetupFacts, guest: &mut Guest) -> Result<SetupFacts, MachineError> {
        let disk = &self.disk;
        let device: DeviceFacts = guest
            .connection()
            .describe(disk.adapter.disk_prefix, DESCRIBE_LIMIT)
            .map_err(|error| guest.explain(error))?;
        let iothreads = match disk.adapter.transport {
            Transport::Qemu => Some(guest.iothreads()?),
            Transport::VhostUser => None,
        };
        let vcpus = guest.greeting().processors;
        let mut list = not_honoured(&disk.settings, &ObservedDisk { device: &device, vcpus, iothreads });
        let aio = disk.settings.aio().name();
        if let Some(asked) = asked.settings.get("aio").filter(|asked| *asked != aio) {
            list.push(NotHonoured { setting: "aio".into(), asked: asked.clone(), found: aio.into() });
        }
        Ok(SetupFacts {
            command_line: guest.command_line().to_vec(),
            server_command_line: guest.server_command_line().to_vec(),
            boot_ns: u64::try_from(guest.boot_time().as_nanos()).unwrap_or(u64::MAX),
            found: Some(device),
            not_honoured: list,
            ..asked.clone()
        })
    }
}

#[derive(Debug)]
struct VmMachine {
    environment: Vm,
    guest: Guest,
    setup: Option<SetupFacts>,
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
            crossing: Some(greeting.crossing),
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

    fn servers(&self) -> Vec<u32> {
        self.guest.server_ids()
    }

    fn setup(&self) -> Option<SetupFacts> {
        self.setup.clone()
    }

    fn quiesce(&mut self) -> Result<(), MachineError> {
        self.guest.pause()?;
        let disk = &self.environment.disk;
        if !disk.settings.cache().is_direct() {
            // What QEMU has not flushed (that of a server) would be written back while another is measured.
            // A failure shows in the next load; there is nothing to be done about it here.
            let _ = File::open(&disk.path).and_then(|file| file.sync_data());
        }
        Ok(())
    }

    fn wake(&mut self) -> Result<(), MachineError> {
        self.guest.unpause()
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

/// VIRTIO_F_RING_PACKED (virtio 1.1, section 6).
const RING_PACKED: u8 = 34;

/// What can be seen of a disk: from inside the guest, and of QEMU.
#[derive(Debug)]
pub(crate) struct ObservedDisk<'a> {
    /// As the guest's kernel describes it.
    pub device: &'a DeviceFacts,
    /// Processors of the guest.
    pub vcpus: u32,
    /// Threads of QEMU for the I/O of disks; none where a server does it, which cannot be asked.
    pub iothreads: Option<usize>,
}

/// Every setting that was asked for and is not what was found, or cannot be seen.
pub(crate) fn not_honoured(asked: &DiskSettings, seen: &ObservedDisk<'_>) -> Vec<NotHonoured> {
    let mut list = Vec::new();
    let mut hold = |setting: &str, asked: String, found: String| {
        if asked != found {
            list.push(NotHonoured { setting: setting.to_owned(), asked, found });
        }
    };
    let unseen = || "not to be seen".to_owned();
    let device = seen.device;
    if let Some(queues) = asked.queues {
        let found = device.queues.map_or_else(unseen, |found| {
            if found < queues && found == seen.vcpus {
                format!("{found}, one for each processor of the guest")
            } else {
                found.to_string()
            }
        });
        hold("queues", queues.to_string(), found);
    }
    if let Some(depth) = asked.depth {
        // A SCSI disk has its own depth; elsewhere it is that of a queue.
        let found = device.queue_depth.or(device.queue_tags);
        hold("depth", depth.to_string(), found.map_or_else(unseen, |found| found.to_string()));
    }
    if let Some(cache) = asked.cache {
        let expected = if cache.acknowledges_early() { "write back" } else { "write through" };
        let found = device.write_cache.clone().unwrap_or_else(unseen);
        if found != expected {
            hold("cache", format!("{} ({expected} in the guest)", cache.name()), found);
        }
    }
    if let Some(packed) = asked.packed {
        let switch = |on: bool| if on { "on" } else { "off" }.to_owned();
        let found = if device.virtio_features.is_empty() {
            unseen()
        } else {
            switch(device.virtio_features.contains(&RING_PACKED))
        };
        hold("packed", switch(packed), found);
    }
    if let (Some(true), Some(threads)) = (asked.iothread, seen.iothreads) {
        hold("iothread", "on".into(), if threads > 0 { "on" } else { "QEMU has no such thread" }.into());
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(asked: &str, device: &DeviceFacts) -> Vec<String> {
        let asked = DiskSettings::parse(asked).unwrap();
        let seen = ObservedDisk { device, vcpus: 1, iothreads: Some(1) };
        let list = not_honoured(&asked, &seen);
        list.iter().map(|one| format!("{}: {} -> {}", one.setting, one.asked, one.found)).collect()
    }

    #[test]
    fn what_is_as_asked_is_not_mentioned() {
        let device = DeviceFacts {
            queues: Some(2),
            queue_tags: Some(64),
            write_cache: Some("write through".into()),
            virtio_features: vec![0, RING_PACKED],
            ..DeviceFacts::default()
        };
        let asked = "queues=2,depth=64,cache=directsync,packed=on,iothread=on,aio=threads";
        assert!(found(asked, &device).is_empty());
    }

    #[test]
    fn what_differs_or_cannot_be_seen_is_said() {
        let device = DeviceFacts { queues: Some(1), queue_depth: Some(30), ..DeviceFacts::default() };
        assert_eq!(
            found("queues=4,depth=64,cache=writeback,packed=on", &device),
            [
                "queues: 4 -> 1, one for each processor of the guest",
                "depth: 64 -> 30",
                "cache: writeback (write back in the guest) -> not to be seen",
                "packed: on -> not to be seen",
            ]
        );
    }
}
