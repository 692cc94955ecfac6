//! What a disk adapter is.

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
