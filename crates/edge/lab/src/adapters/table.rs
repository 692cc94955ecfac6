//! What a disk adapter is. All there is to one stands in its row here: a new one is a new row.

/// A disk adapter as QEMU emulates it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Adapter {
    /// Its name on virtbench's command line.
    pub name: &'static str,
    /// What it is, for the user.
    pub summary: &'static str,
    /// The values of QEMU's `-device`, in order. `{id}` stands for the adapter, `{drive}` for what
    /// it serves, `{controller}` and `{disk}` for where properties of either go; an adapter on a bus
    /// has one device for its controller and one for the disk.
    pub devices: &'static [&'static str],
    /// The drivers a guest needs, without what they depend on.
    pub modules: &'static [&'static str],
    /// How the guest's kernel names its disks.
    pub disk_prefix: &'static str,
    /// What it can do at most.
    pub limits: Limits,
    /// What of it can be set, beside the cache mode and the kind of I/O, which belong to the disk.
    pub accepts: Accepts,
    /// Who does the I/O.
    pub transport: Transport,
}

/// What an adapter can do at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Queues.
    pub queues: u32,
    /// Requests a queue of the device takes at once, as it comes; more wait inside the guest.
    pub outstanding: u32,
    /// The largest queue depth that can be asked for.
    pub depth: u32,
}

/// Which settings an adapter takes, by the name of QEMU's property for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepts {
    /// The property for the number of queues.
    pub queues: Option<&'static str>,
    /// The property for the requests that a queue, or the device, takes at once.
    pub depth: Option<&'static str>,
    /// Whether a depth must be a power of two.
    pub depth_is_power_of_two: bool,
    /// Whether a thread of its own can do its I/O.
    pub iothread: bool,
    /// Whether it knows packed rings.
    pub packed: bool,
}

/// Who does an adapter's I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// QEMU itself.
    Qemu,
    /// A server that shares the guest's memory: qemu-storage-daemon over vhost-user.
    VhostUser,
}

/// Nothing can be set.
const FIXED: Accepts =
    Accepts { queues: None, depth: None, depth_is_power_of_two: false, iothread: false, packed: false };

/// The disk of every SCSI controller.
const SCSI_DISK: &str = "scsi-hd,bus={id}.0,drive={drive}{disk}";

/// All adapters. Depths are what the guest's kernel shows with QEMU's defaults, held by a test that
/// boots each.
pub const ADAPTERS: &[Adapter] = &[
    Adapter {
        name: "virtio-blk",
        summary: "virtio block device, paravirtual",
        devices: &["virtio-blk-pci,id={id},drive={drive}{controller}{disk}"],
        modules: &["virtio_pci", "virtio_blk"],
        disk_prefix: "vd",
        // One queue per vCPU, of 256 descriptors each, is QEMU's default since 5.2.
        limits: Limits { queues: 1024, outstanding: 256, depth: 1024 },
        accepts: Accepts {
            queues: Some("num-queues"),
            depth: Some("queue-size"),
            depth_is_power_of_two: true,
            iothread: true,
            packed: true,
        },
        transport: Transport::Qemu,
    },
    Adapter {
        name: "virtio-scsi",
        summary: "virtio SCSI controller, paravirtual",
        devices: &["virtio-scsi-pci,id={id}{controller}", SCSI_DISK],
        modules: &["virtio_pci", "virtio_scsi", "sd_mod"],
        disk_prefix: "sd",
        limits: Limits { queues: 1024, outstanding: 128, depth: 254 },
        accepts: Accepts {
            queues: Some("num_queues"),
            depth: Some("cmd_per_lun"),
            depth_is_power_of_two: false,
            iothread: true,
            packed: true,
        },
        transport: Transport::Qemu,
    },
    Adapter {
        name: "nvme",
        summary: "NVM Express controller",
        devices: &["nvme,id={id},serial={id},drive={drive}{controller}{disk}"],
        modules: &["nvme"],
        disk_prefix: "nvme",
        limits: Limits { queues: 64, outstanding: 1023, depth: 1023 },
        accepts: Accepts { queues: Some("max_ioqpairs"), ..FIXED },
        transport: Transport::Qemu,
    },
    Adapter {
        name: "pvscsi",
        summary: "VMware's paravirtual SCSI controller",
        devices: &["pvscsi,id={id}{controller}", SCSI_DISK],
        modules: &["vmw_pvscsi", "sd_mod"],
        disk_prefix: "sd",
        limits: Limits { queues: 1, outstanding: 254, depth: 254 },
        accepts: FIXED,
        transport: Transport::Qemu,
    },
    Adapter {
        name: "lsi53c895a",
        summary: "LSI Logic 53C895A, parallel SCSI",
        devices: &["lsi53c895a,id={id}{controller}", SCSI_DISK],
        modules: &["sym53c8xx", "sd_mod"],
        disk_prefix: "sd",
        limits: Limits { queues: 1, outstanding: 16, depth: 16 },
        accepts: FIXED,
        transport: Transport::Qemu,
    },
    Adapter {
        name: "mptsas1068",
        summary: "LSI Logic SAS1068, Fusion-MPT",
        // The driver passes over a disk without an address of its own, which QEMU's disks have not.
        devices: &[
            "mptsas1068,id={id}{controller}",
            "scsi-hd,bus={id}.0,drive={drive},wwn=0x5000000000000001{disk}",
        ],
        modules: &["mptsas", "sd_mod"],
        disk_prefix: "sd",
        limits: Limits { queues: 1, outstanding: 64, depth: 64 },
        accepts: FIXED,
        transport: Transport::Qemu,
    },
    Adapter {
        name: "megasas",
        summary: "LSI MegaRAID SAS 1078",
        devices: &["megasas,id={id}{controller}", SCSI_DISK],
        modules: &["megaraid_sas", "sd_mod"],
        disk_prefix: "sd",
        limits: Limits { queues: 1, outstanding: 256, depth: 1008 },
        accepts: Accepts { depth: Some("max_cmds"), ..FIXED },
        transport: Transport::Qemu,
    },
    Adapter {
        name: "ahci",
        summary: "AHCI (SATA) controller with native command queuing",
        devices: &["ich9-ahci,id={id}{controller}", "ide-hd,bus={id}.0,drive={drive}{disk}"],
        modules: &["ahci", "sd_mod"],
        disk_prefix: "sd",
        limits: Limits { queues: 1, outstanding: 32, depth: 32 },
        accepts: FIXED,
        transport: Transport::Qemu,
    },
    Adapter {
        name: "ide",
        summary: "IDE controller PIIX3, one command at a time",
        devices: &["piix3-ide,id={id}{controller}", "ide-hd,bus={id}.0,drive={drive}{disk}"],
        modules: &["ata_piix", "sd_mod"],
        disk_prefix: "sd",
        limits: Limits { queues: 1, outstanding: 1, depth: 1 },
        accepts: FIXED,
        transport: Transport::Qemu,
    },
    Adapter {
        name: "vhost-user-blk",
        summary: "virtio block device served by qemu-storage-daemon from shared memory",
        devices: &["vhost-user-blk-pci,id={id},chardev={drive}{controller}"],
        modules: &["virtio_pci", "virtio_blk"],
        disk_prefix: "vd",
        limits: Limits { queues: 1024, outstanding: 128, depth: 1024 },
        accepts: Accepts {
            queues: Some("num-queues"),
            depth: Some("queue-size"),
            depth_is_power_of_two: true,
            iothread: true,
            // Packed rings over vhost-user have not been seen to work, so they are not offered.
            packed: false,
        },
        transport: Transport::VhostUser,
    },
];
