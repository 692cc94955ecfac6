//! An appliance's root, put together of disks and memory.
//!
//! ```text
//! root ── overlay ── base (read-only disk) + layer (memory)
//!   ├── dev, proc, sys, run, tmp    of its own
//!   └── the data's folder           a disk
//! ```

use std::ffi::CString;
use std::fs;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat, sync};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::umask;
use virtbench_recipe::Init;

use super::program::{find_user, inside, own_folder};
use crate::block_device::{node, wait_for_disk_number};
use crate::protocol::appliance::{DataOrder, DiskPlace, HostName, MountOrder};

/// Where everything is put together. Nothing of the agent is there, and in namespaces of its own nobody else sees it.
const PLACE: &str = "/tmp";
/// How long an unmounting may be refused because something still uses it.
const BUSY_LIMIT: Duration = Duration::from_secs(3);

/// Character devices that programs expect: name, major and minor number.
const DEVICES: [(&str, u32, u32); 6] =
    [("null", 1, 3), ("zero", 1, 5), ("full", 1, 7), ("random", 1, 8), ("urandom", 1, 9), ("tty", 5, 0)];

/// A root that is mounted; it goes with this.
pub(crate) struct Root {
    /// The root folder.
    pub(crate) path: PathBuf,
    /// Where the data are mounted, from outside.
    pub(crate) data: Option<PathBuf>,
    /// The hierarchy of control groups, where the root has an init that needs one.
    pub(crate) control_groups: Option<PathBuf>,
    /// In the order of mounting.
    mounts: Vec<PathBuf>,
}

impl Root {
    /// Puts it together.
    ///
    /// # Errors
    /// In words, with the next step.
    pub(crate) fn mount(order: &MountOrder) -> Result<Self, String> {
        // Users of its own have to enter what is made here, whatever the host's user keeps to himself.
        umask(Mode::from_raw_mode(0o022));
        let place = Path::new(PLACE);
        let mut root =
            Self { path: place.join("root"), data: None, control_groups: None, mounts: Vec::new() };
        fs::create_dir_all(place).map_err(|error| format!("{PLACE} cannot be made: {error}"))?;
        root.put("tmpfs", "tmpfs", place, MountFlags::empty(), "mode=0755")?;
        for name in ["base", "upper", "work", "root"] {
            make(&place.join(name))?;
        }
        let base = find(&order.root)?;
        root.put_disk(&base, &place.join("base"), MountFlags::RDONLY, "noload", "the root")?;
        let layers = format!("lowerdir={PLACE}/base,upperdir={PLACE}/upper,workdir={PLACE}/work");
        root.put("overlay", "overlay", &place.join("root"), MountFlags::empty(), &layers)?;
        root.furnish(order.screen)?;
        root.name_hosts(&order.hosts)?;
        if order.init == Init::Full {
            root.add_control_groups()?;
        }
        if let Some(data) = &order.data {
            root.add_data(data)?;
        }
        Ok(root)
    }

    /// What every Linux program expects and, with `screen`, what an X server does.
    fn furnish(&mut self, screen: bool) -> Result<(), String> {
        let inner = self.path.clone();
        let plain = MountFlags::NOSUID | MountFlags::NODEV;
        for (kind, name, flags, options) in [
            ("proc", "proc", plain | MountFlags::NOEXEC, ""),
            ("sysfs", "sys", plain | MountFlags::NOEXEC | MountFlags::RDONLY, ""),
            ("tmpfs", "run", plain, "mode=0755"),
            ("tmpfs", "tmp", plain, "mode=1777"),
            ("tmpfs", "dev", MountFlags::NOSUID, "mode=0755"),
            ("tmpfs", "dev/shm", plain, "mode=1777"),
            (
                "devpts",
                "dev/pts",
                MountFlags::NOSUID | MountFlags::NOEXEC,
                "newinstance,ptmxmode=0666,mode=0620",
            ),
        ] {
            // A link such as /run to /var/run would lead out of the root.
            let place = inner.join(name);
            if fs::symlink_metadata(&place).is_ok_and(|facts| facts.is_symlink()) {
                return Err(format!("/{name} is a link in the root; it has to be a folder"));
            }
            make(&place)?;
            self.put(kind, kind, &place, flags, options)?;
        }
        let dev = inner.join("dev");
        let furnished = furnish_dev(&dev).and_then(|()| if screen { furnish_screen(&dev) } else { Ok(()) });
        furnished.map_err(|error| format!("/dev cannot be furnished: {error}"))?;
        let hosts = inside(&inner, || {
            if fs::exists("/etc/hosts")? { Ok(()) } else { fs::write("/etc/hosts", "127.0.0.1 localhost\n") }
        });
        hosts.and_then(|done| done).map_err(|error| format!("/etc/hosts cannot be written: {error}"))
    }

    /// Has programs find others by name.
    fn name_hosts(&self, hosts: &[HostName]) -> Result<(), String> {
        let line = |host: &HostName| format!("{} {}\n", Ipv4Addr::from(host.address), host.name);
        let lines: String = hosts.iter().map(line).collect();
        let add = || fs::OpenOptions::new().append(true).open("/etc/hosts")?.write_all(lines.as_bytes());
        if lines.is_empty() {
            return Ok(());
        }
        let added = inside(&self.path, add).and_then(|done| done);
        added.map_err(|error| format!("/etc/hosts cannot be written: {error}"))
    }

    /// What the root's own systemd finds mounted, because it has no right to mount.
    fn add_control_groups(&mut self) -> Result<(), String> {
        let (place, lock) = (Path::new(PLACE).join("groups"), self.path.join("run/lock"));
        make(&place)?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        self.put("cgroup2", "cgroup2", &place, flags, "").map_err(|error| {
            format!("{error}; the root's own init needs control groups of version 2: use init = \"agent\"")
        })?;
        self.control_groups = Some(place);
        make(&lock)?;
        self.put("tmpfs", "tmpfs", &lock, flags, "mode=1777,size=5m")
    }

    fn add_data(&mut self, data: &DataOrder) -> Result<(), String> {
        let disk = find(&data.disk)?;
        // The folder is followed inside the root, where its links mean what they say.
        let place = inside(&self.path, || {
            fs::create_dir_all(&data.folder)?;
            fs::canonicalize(&data.folder)
        });
        let place = place
            .and_then(|done| done)
            .map_err(|error| format!("the folder of the data, {}, cannot be made: {error}", data.folder))?;
        let place = self.path.join(place.strip_prefix("/").unwrap_or(&place));
        self.put_disk(&disk, &place, MountFlags::NOSUID | MountFlags::NODEV, "", "the data")?;
        self.data = Some(place);
        let owned = inside(&self.path, || {
            let user = find_user(&data.user)?;
            own_folder(&data.folder, &user)
                .map_err(|error| format!("{} cannot be given to {}: {error}", data.folder, data.user))
        });
        owned.map_err(|error| format!("the root cannot be entered: {error}"))?
    }

    fn put_disk(
        &mut self,
        disk: &Path,
        place: &Path,
        flags: MountFlags,
        options: &str,
        what: &str,
    ) -> Result<(), String> {
        self.put(&disk.to_string_lossy(), "ext4", place, flags, options)
            .map_err(|error| format!("{what}: {error}; its image has to be a whole ext4 file system"))
    }

    fn put(
        &mut self,
        source: &str,
        kind: &str,
        place: &Path,
        flags: MountFlags,
        options: &str,
    ) -> Result<(), String> {
        let data = CString::new(options).map_err(|error| error.to_string())?;
        let data = (!options.is_empty()).then_some(data.as_c_str());
        mount(source, place, kind, flags, data)
            .map_err(|error| format!("cannot mount {kind} of {source} on {}: {error}", place.display()))?;
        self.mounts.push(place.to_owned());
        Ok(())
    }

    /// Unmounts everything; returns what could not be done in good order.
    pub(crate) fn unmount(mut self) -> Vec<String> {
        sync();
        let mut notes = Vec::new();
        while let Some(place) = self.mounts.pop() {
            let begun = Instant::now();
            loop {
                match unmount(&place, UnmountFlags::empty()) {
                    Ok(()) => break,
                    Err(Errno::BUSY) if begun.elapsed() < BUSY_LIMIT => {
                        thread::sleep(Duration::from_millis(5))
                    }
                    Err(error) => {
                        notes.push(format!("{} could not be unmounted: {error}", place.display()));
                        let _ = unmount(&place, UnmountFlags::DETACH);
                        break;
                    }
                }
            }
        }
        sync();
        notes
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        while let Some(place) = self.mounts.pop() {
            let _ = unmount(&place, UnmountFlags::DETACH);
        }
    }
}

fn find(disk: &DiskPlace) -> Result<PathBuf, String> {
    match disk {
        DiskPlace::Node(path) => Ok(PathBuf::from(path)),
        DiskPlace::Disk { name_prefix, index } => Ok(node(&wait_for_disk_number(name_prefix, *index)?)),
    }
}

fn make(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("{} cannot be made: {error}", folder.display()))
}

/// What this machine's kernel has made of its graphics adapter, keyboard, pointer and first terminal.
fn furnish_screen(dev: &Path) -> io::Result<()> {
    let terminals = ["tty0", "tty1"].map(|name| Path::new("/dev").join(name));
    let mut devices = terminals.to_vec();
    for folder in ["dri", "input"] {
        fs::create_dir_all(dev.join(folder))?;
        let entries = fs::read_dir(Path::new("/dev").join(folder)).into_iter().flatten().flatten();
        devices.extend(entries.map(|entry| entry.path()));
    }
    for device in devices {
        let Ok(facts) = fs::metadata(&device) else { continue };
        if facts.file_type().is_char_device() {
            let path = dev.join(device.strip_prefix("/dev").unwrap_or(&device));
            mknodat(CWD, &path, FileType::CharacterDevice, Mode::from_raw_mode(0o600), facts.rdev())?;
        }
    }
    Ok(())
}

fn furnish_dev(dev: &Path) -> io::Result<()> {
    for (name, major, minor) in DEVICES {
        let path = dev.join(name);
        mknodat(CWD, &path, FileType::CharacterDevice, Mode::from_raw_mode(0o666), makedev(major, minor))?;
        // Whatever the umask is.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666))?;
    }
    for (to, name) in [
        ("/proc/self/fd", "fd"),
        ("/proc/self/fd/0", "stdin"),
        ("/proc/self/fd/1", "stdout"),
        ("/proc/self/fd/2", "stderr"),
        ("pts/ptmx", "ptmx"),
    ] {
        std::os::unix::fs::symlink(to, dev.join(name))?;
    }
    Ok(())
}
