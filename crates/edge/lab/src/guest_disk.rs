//! A guest's disk: from the file on the host to the adapter that the guest sees.
//!
//! Beside it, operations of the disk that an appliance has its data on, counted where they leave it: by the kernel for a block device of this
//! host, by QEMU for a guest's disk.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde_json::{Value, json};

use crate::adapters::{Adapter, DiskSettings, Transport};
use crate::io_limit::IoLimits;
use crate::process::MachineError;

/// Name of the export of an NBD server.
pub(crate) const EXPORT: &str = "disk";

/// How long QEMU looks for an NBD server that went away, in seconds, before the guest's requests fail.
const RECONNECT_S: u32 = 60;

/// What is in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageFormat {
    /// The disk's blocks, nothing else.
    Raw,
    /// A qcow2 image.
    Qcow2 {
        /// The raw file with the blocks that are not in it.
        backing: Option<PathBuf>,
    },
}

/// A guest's disk.
#[derive(Debug, Clone)]
pub struct GuestDisk {
    /// What the guest sees it through.
    pub adapter: &'static Adapter,
    /// The file or block device on the host.
    pub path: PathBuf,
    /// What is in it.
    pub format: ImageFormat,
    /// What is set about it; by default QEMU passes by the host's page cache, with io_uring.
    pub settings: DiskSettings,
    /// Whether QEMU reaches it over NBD, from a qemu-storage-daemon.
    pub nbd: bool,
    /// The socket of a server that is there already, in place of a server of its own: of vhost-user-blk for that adapter,
    /// of NBD for others. QEMU connects again when that server goes and comes back.
    pub server: Option<PathBuf>,
    /// What the disk is called by that server, where it is NBD's.
    pub export: Option<String>,
    /// The socket of an NBD server that has the blocks, in place of the file.
    pub served_at: Option<PathBuf>,
    /// QEMU, or the daemon that serves the disk, lets the guest have so many I/Os a second, in a throttle group of its own. Not where
    /// `server` is one of vhost-user: I/O passes QEMU by.
    pub throttle_iops: Option<u32>,
    /// The host's kernel lets QEMU have so many I/Os a second on this disk, which is a block device of the host.
    pub limits: Option<IoLimits>,
    /// Whether the guest can only read it. Then others may read the same file.
    pub read_only: bool,
    /// Whether other guests have the same file, which then is not locked: they are not loaded at the
    /// same time.
    pub shared: bool,
}

impl GuestDisk {
    /// A raw file or block device behind `adapter`, everything as it comes.
    #[must_use]
    pub fn new(adapter: &'static Adapter, path: PathBuf) -> Self {
        let settings = DiskSettings::default();
        Self {
            adapter,
            path,
            format: ImageFormat::Raw,
            settings,
            nbd: false,
            server: None,
            export: None,
            served_at: None,
            throttle_iops: None,
            limits: None,
            read_only: false,
            shared: false,
        }
    }

    /// Whether a process of its own serves it.
    pub(crate) fn is_served(&self) -> bool {
        self.server.is_none() && (self.nbd || self.adapter.transport == Transport::VhostUser)
    }

    /// The arguments that describe its blocks to QEMU or to a server, as the block node `node`. In
    /// JSON, because a path may hold commas.
    pub(crate) fn block_arguments(&self, node: &str) -> Vec<String> {
        let (file, unlimited) = (format!("{node}-file"), format!("{node}-unlimited"));
        let cache = self.cache();
        let name = if self.throttle_iops.is_some() { &unlimited } else { node };
        let mut format = match &self.format {
            ImageFormat::Raw => json!({ "driver": "raw", "node-name": name, "file": file, "cache": cache }),
            ImageFormat::Qcow2 { backing } => {
                let backing = backing.as_ref().map(|path| {
                    let mut file = self.file_node(path);
                    file["read-only"] = true.into();
                    json!({ "driver": "raw", "read-only": true, "file": file, "cache": cache })
                });
                json!({
                    "driver": "qcow2", "node-name": name, "file": file, "cache": cache, "backing": backing,
                })
            }
        };
        let mut lower = match &self.served_at {
            Some(socket) => {
                json!({ "driver": "nbd", "server": { "type": "unix", "path": socket }, "cache": cache })
            }
            None => self.file_node(&self.path),
        };
        lower["node-name"] = file.into();
        lower["read-only"] = self.read_only.into();
        format["read-only"] = self.read_only.into();
        let mut arguments: Vec<String> =
            ["--blockdev".into(), lower.to_string(), "--blockdev".into(), format.to_string()].into();
        arguments.extend(self.throttled(node, name));
        arguments
    }

    /// The block node `node` over `lower`, with the I/Os a second that the disk is limited to; nothing where it is not.
    fn throttled(&self, node: &str, lower: &str) -> Vec<String> {
        let Some(iops) = self.throttle_iops else { return Vec::new() };
        let group = format!("{node}-limits");
        let limits = format!("throttle-group,id={group},x-iops-total={iops}");
        let node = json!({
            "driver": "throttle", "node-name": node, "throttle-group": group, "file": lower, "cache": self.cache(),
            "read-only": self.read_only,
        });
        ["--object".into(), limits, "--blockdev".into(), node.to_string()].into()
    }

    fn file_node(&self, path: &Path) -> Value {
        let is_device = fs::metadata(path).is_ok_and(|facts| facts.file_type().is_block_device());
        let mut node = json!({
            "driver": if is_device { "host_device" } else { "file" },
            "filename": path,
            "aio": self.settings.aio().name(),
            "cache": self.cache(),
        });
        if self.shared {
            node["locking"] = "off".into();
        }
        node
    }

    fn cache(&self) -> Value {
        json!({ "direct": self.settings.cache().is_direct(), "no-flush": false })
    }

    /// QEMU's arguments for the disk number `index`; `socket` is the connection to its server, if it
    /// has one.
    pub(crate) fn arguments(&self, index: usize, socket: Option<i32>) -> Vec<String> {
        let drive = format!("disk{index}");
        let mut arguments = match (socket, self.adapter.transport) {
            (None, Transport::VhostUser) if self.server.is_some() => {
                let path = self.server.as_ref().map_or_else(String::new, |path| escape(path));
                vec!["-chardev".into(), format!("socket,id={drive},path={path},reconnect=1")]
            }
            (None, Transport::Qemu) if self.server.is_some() => self.named_server_arguments(&drive),
            (None, _) => self.block_arguments(&drive),
            (Some(socket), Transport::VhostUser) => {
                vec!["-chardev".into(), format!("socket,id={drive},fd={socket}")]
            }
            (Some(socket), Transport::Qemu) => {
                let server = json!({ "type": "fd", "str": socket.to_string() });
                let node = json!({
                    "driver": "nbd", "node-name": drive, "server": server, "export": EXPORT,
                });
                vec!["--blockdev".into(), node.to_string()]
            }
        };
        let mut settings = self.settings.clone();
        if self.adapter.transport == Transport::VhostUser {
            // The server does the I/O, so they are its business.
            (settings.iothread, settings.cache) = (None, None);
        }
        arguments.extend(self.adapter.arguments(&format!("adapter{index}"), &drive, &settings));
        arguments
    }
}

impl GuestDisk {
    /// The node `drive` over a server with a name, through a throttle group if there is a limit.
    fn named_server_arguments(&self, drive: &str) -> Vec<String> {
        let lower = format!("{drive}-nbd");
        let name = if self.throttle_iops.is_some() { &lower } else { drive };
        let node = json!({
            "driver": "nbd",
            "node-name": name,
            "server": { "type": "unix", "path": self.server },
            "export": self.export.as_deref().unwrap_or(EXPORT),
            "reconnect-delay": RECONNECT_S,
            "cache": self.cache(),
        });
        let mut arguments = vec!["--blockdev".to_owned(), node.to_string()];
        arguments.extend(self.throttled(drive, &lower));
        arguments
    }
}

/// A comma ends a value for QEMU, two stand for one.
fn escape(path: &Path) -> String {
    path.to_string_lossy().replace(',', ",,")
}

/// Reads and writes of a block device that were completed so far (Linux, Documentation/block/stat.rst).
///
/// # Errors
/// Its accounts cannot be read.
pub(crate) fn of_block_device(device: &Path) -> io::Result<u64> {
    let name = device.file_name().unwrap_or_default();
    of_device(&fs::read_to_string(Path::new("/sys/class/block").join(name).join("stat"))?)
}

fn of_device(stat: &str) -> io::Result<u64> {
    let numbers: Vec<u64> = stat.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match numbers.as_slice() {
        [reads, _, _, _, writes, ..] => Ok(reads + writes),
        _ => Err(io::Error::other("a block device's accounts have another form")),
    }
}

/// The same of a guest's disk, the block node `node`, out of what QEMU answers to `query-blockstats`.
///
/// # Errors
/// There is no such disk in it.
pub(crate) fn of_guest(answer: &Value, node: &str) -> io::Result<u64> {
    let disks = answer.as_array().map_or(&[][..], Vec::as_slice);
    let disk = disks.iter().find(|disk| disk["node-name"] == node);
    let count = |name: &str| disk?["stats"][name].as_u64();
    let both = count("rd_operations").zip(count("wr_operations"));
    both.map(|(reads, writes)| reads + writes)
        .ok_or_else(|| io::Error::other(format!("QEMU does not count operations of {node}")))
}

/// A QEMU built without io_uring, or a host that forbids it, is done without: if `error` is because of that, `settings` are
/// changed, and what is to be noted of it is returned.
pub(crate) fn io_without_uring(error: &MachineError, settings: &mut DiskSettings) -> Option<String> {
    let MachineError::Ended { console, .. } = error else { return None };
    let complaint = console.iter().find(|line| line.contains("io_uring"))?;
    let aio = settings.replace_io_uring()?;
    Some(format!("aio={} instead of io_uring, as QEMU said: {complaint}", aio.name()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::{DEFAULT_ADAPTER, find_adapter};

    fn node(argument: &str) -> Value {
        serde_json::from_str(argument).unwrap()
    }

    #[test]
    fn a_path_with_commas_stays_one_path() {
        let mut disk = GuestDisk::new(DEFAULT_ADAPTER, "/a,b=\"c\"".into());
        disk.settings = DiskSettings::parse("aio=native").unwrap();
        let arguments = disk.arguments(3, None);
        let lower = node(&arguments[1]);
        assert_eq!((&lower["filename"], &lower["aio"]), (&"/a,b=\"c\"".into(), &"native".into()));
        assert_eq!(arguments[5], "virtio-blk-pci,id=adapter3,drive=disk3");
    }

    #[test]
    fn the_cache_mode_reaches_every_node_and_the_device() {
        let mut disk = GuestDisk::new(DEFAULT_ADAPTER, "/a".into());
        disk.format = ImageFormat::Qcow2 { backing: Some("/base".into()) };
        disk.settings = DiskSettings::parse("cache=writethrough").unwrap();
        let arguments = disk.arguments(0, None);
        for argument in [&arguments[1], &arguments[3]] {
            assert_eq!(node(argument)["cache"]["direct"], false, "{argument}");
        }
        let backing = &node(&arguments[3])["backing"];
        assert_eq!((&backing["read-only"], &backing["file"]["filename"]), (&true.into(), &"/base".into()));
        assert!(arguments[5].ends_with(",write-cache=off"), "{}", arguments[5]);
    }

    #[test]
    fn a_limit_lies_over_the_blocks_wherever_they_are() {
        let (served_at, throttle_iops) = (Some("/s".into()), Some(500));
        let arguments =
            GuestDisk { served_at, throttle_iops, ..GuestDisk::new(DEFAULT_ADAPTER, "/a".into()) }
                .block_arguments("disk0");
        let [lower, format, limited] = [1, 3, 7].map(|place| node(&arguments[place]));
        assert_eq!((&lower["driver"], &lower["server"]["path"]), (&"nbd".into(), &"/s".into()));
        assert_eq!((&format["file"], &limited["file"]), (&lower["node-name"], &format["node-name"]));
        assert_eq!(limited["node-name"], "disk0");
        assert_eq!(arguments[5], "throttle-group,id=disk0-limits,x-iops-total=500");
    }

    #[test]
    fn a_served_disk_is_a_socket_to_qemu() {
        let mut disk = GuestDisk::new(DEFAULT_ADAPTER, "/a".into());
        disk.nbd = true;
        assert!(disk.is_served());
        let server = &node(&disk.arguments(0, Some(7))[1])["server"];
        assert_eq!(server, &json!({ "type": "fd", "str": "7" }));
        let vhost = GuestDisk::new(find_adapter("vhost-user-blk").unwrap(), "/a".into());
        assert!(vhost.is_served() && vhost.arguments(0, Some(7))[1] == "socket,id=disk0,fd=7");
        let there = GuestDisk { server: Some("/a,b".into()), ..vhost };
        assert!(!there.is_served());
        assert_eq!(there.arguments(0, None)[1], "socket,id=disk0,path=/a,,b,reconnect=1");
        let (server, export) = (Some("/a,b".into()), Some("web".into()));
        let over_nbd = GuestDisk { server, export, throttle_iops: Some(16), ..disk };
        assert!(!GuestDisk { nbd: false, ..over_nbd.clone() }.is_served());
        let arguments = over_nbd.arguments(0, None);
        let (nbd, throttle) = (node(&arguments[1]), node(&arguments[5]));
        assert_eq!((&nbd["server"]["path"], &nbd["export"]), (&"/a,b".into(), &"web".into()));
        assert_eq!(arguments[3], "throttle-group,id=disk0-limits,x-iops-total=16");
        assert_eq!((&throttle["file"], &throttle["node-name"]), (&nbd["node-name"], &"disk0".into()));
    }
}

#[cfg(test)]
mod disk_operations_tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn operations_are_read_from_what_the_kernel_and_qemu_write() {
        let recorded = "    4711        3   100000      900     1289      200    50000      800        0     1200     1700        0        0        0        0       10        5\n";
        assert_eq!(of_device(recorded).unwrap(), 6000);
        assert!(of_device("").is_err());
        let recorded = json!([
            { "device": "", "node-name": "disk0", "stats": { "rd_operations": 900, "wr_operations": 0 } },
            { "device": "", "node-name": "disk1", "stats": { "rd_operations": 30, "wr_operations": 12 } },
        ]);
        assert_eq!(of_guest(&recorded, "disk1").unwrap(), 42);
        assert!(of_guest(&recorded, "disk2").unwrap_err().to_string().contains("disk2"));
    }
}
