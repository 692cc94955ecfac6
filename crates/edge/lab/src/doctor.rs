//! What virtbench needs on this host, and the command that mends what is missing.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use procfs::Current;
use rustix::fs::OFlags;
use rustix::process::{Resource, geteuid, getrlimit};
use serde::Serialize;
use virtbench_agent::enclosure::LoopDevice;
use virtbench_agents::own_agent;
use virtbench_host::free_bytes;
use virtbench_units::format_bytes;

use crate::accelerator::{AcceleratorChoice, KVM_LIMIT, choose_accelerator, open_kvm};
use crate::guest::Accelerator;
use crate::image::GuestImage;
use crate::kernel::{GuestKernel, find_kernel};
use crate::machine::LabError;
use crate::process::MachineError;
use crate::qemu::Qemu;
use crate::qemu_tools::{find_qemu_img, find_storage_daemon};
use crate::uml::UmlKernel;

/// Space that a quick study takes, in bytes.
const WANTED_SPACE_BYTES: u64 = 4 << 30;
/// Memory that a user must be able to lock, in bytes: io_uring's registered buffers count against it.
const WANTED_MEMLOCK_BYTES: u64 = 64 << 20;
/// How a kernel for guests is had, with its modules. Debian's own is named without a package's version.
const KERNEL: &str = "apt install linux-image-amd64 (in the source: make setup)";
/// Chromium by its several names.
const CHROMIUM: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Where Debian keeps what makes file systems, which is not on every user's path.
const SBIN_EXT4: [&str; 2] = ["mkfs.ext4", "/usr/sbin/mkfs.ext4"];
const SBIN_XFS: [&str; 2] = ["mkfs.xfs", "/usr/sbin/mkfs.xfs"];

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What is looked at.
    pub name: &'static str,
    /// What was found.
    #[serde(flatten)]
    pub status: Status,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Status {
    /// All is well.
    Ok {
        /// What it is.
        detail: String,
    },
    /// It works, but not as well as it could.
    Warning {
        /// What is the matter.
        why: String,
        /// What mends it.
        mend: String,
    },
    /// Measuring does without; who develops virtbench wants it.
    Development {
        /// What it is for.
        why: String,
        /// How it is had.
        mend: String,
    },
    /// It does not work without.
    Missing {
        /// What is the matter.
        why: String,
        /// What mends it.
        mend: String,
    },
}

impl Check {
    /// The Debian packages that mend it; none where all is well, where packages do not mend it, or where only development needs it.
    #[must_use]
    pub fn packages(&self) -> Vec<&str> {
        let (Status::Missing { mend, .. } | Status::Warning { mend, .. }) = &self.status else {
            return Vec::new();
        };
        let Some((_, named)) = mend.split_once(INSTALL) else { return Vec::new() };
        let is_package = |word: &&str| word.starts_with(|c: char| c.is_ascii_alphanumeric());
        named.split(' ').take_while(is_package).collect()
    }
}

/// What stands before the packages in the words that mend something.
const INSTALL: &str = "apt install ";

/// Looks at everything, for targets in `directory` and guests of the kernel that is named or found.
/// Where the accelerator is not known yet, guests are booted to find out, which takes up to a minute.
#[must_use]
pub fn examine_host(directory: &Path, named_kernel: Option<&Path>) -> Vec<Check> {
    let qemu = Qemu::find();
    let kernel = find_kernel(named_kernel);
    let image = kernel.as_ref().ok().map(|kernel| GuestImage::new(kernel, &all_adapters()));
    let mut checks = vec![
        check(
            "QEMU",
            match &qemu {
                Ok(qemu) => ok(format!("{} {}", qemu.path.display(), qemu.version)),
                Err(error) => missing(error, "apt install qemu-system-x86"),
            },
        ),
        check(
            "guest kernel",
            match &kernel {
                Ok(kernel) => ok(format!("{} {}", kernel.image.display(), kernel.release)),
                Err(error) => missing(error, KERNEL),
            },
        ),
        check(
            "guest modules",
            match image {
                Some(Ok(image)) => ok(format!("initramfs of {} KiB", image.initramfs_bytes >> 10)),
                Some(Err(error)) => missing(error, KERNEL),
                None => missing("there is no guest kernel", KERNEL),
            },
        ),
        check(
            "User Mode Linux",
            match UmlKernel::find() {
                Ok(kernel) => ok(format!("{} {}", kernel.program.display(), kernel.release)),
                Err(error) => warning(error, "make uml; environments uml: need it, others do not"),
            },
        ),
        check("accelerator", accelerator(qemu.as_ref().ok(), kernel.as_ref().ok())),
        check(
            "KVM",
            match open_kvm() {
                Ok(()) => ok("/dev/kvm can be opened (whether guests boot, `accelerator` tells)"),
                Err(why) => {
                    warning(why, "use a host with virtualization enabled, then: sudo usermod -aG kvm $USER")
                }
            },
        ),
        check("agent", agent()),
        check("io_uring", io_uring()),
        check("locked memory", locked_memory()),
        check("disk space", disk_space(directory)),
        check("direct I/O", direct_io(directory)),
    ];
    checks.extend(programs());
    checks
}

const fn check(name: &'static str, status: Status) -> Check {
    Check { name, status }
}

fn agent() -> Status {
    match own_agent() {
        Ok(program) => ok(format!("{} KiB, static", program.len() >> 10)),
        Err(error) => missing(error, "make build"),
    }
}

/// Programs of others, and loop devices.
fn programs() -> Vec<Check> {
    vec![
        check(
            "storage daemon",
            match find_storage_daemon() {
                Ok(path) => ok(path.display()),
                Err(error) => warning(error, "apt install qemu-system-common"),
            },
        ),
        check(
            "qemu-img",
            match find_qemu_img() {
                Ok(path) => ok(path.display()),
                Err(error) => {
                    warning(error, "apt install qemu-utils (the backings qcow2 and overlay need it)")
                }
            },
        ),
        check(
            "loop devices",
            match LoopDevice::check() {
                Ok(()) => ok("can be made (the backing loop)"),
                Err(error) => warning(error, "run as root, or leave the backing loop out"),
            },
        ),
        check(
            "ssh",
            program(&["ssh"], "machines that exist are reached by it", "apt install openssh-client"),
        ),
        check(
            "libvirt",
            match virtbench_libvirt::load() {
                Ok(()) => ok("hypervisors that exist are reached by it"),
                Err(error @ virtbench_libvirt::LibvirtError::Static) => warning(error, "make install"),
                Err(_) => warning(
                    "its library is not installed; hypervisors that exist are reached by it",
                    "apt install libvirt0",
                ),
            },
        ),
        check(
            "mkfs.ext4",
            program(&SBIN_EXT4, "workloads on files in guests need it", "apt install e2fsprogs"),
        ),
        check("mkfs.xfs", program(&SBIN_XFS, "guests with XFS need it", "apt install xfsprogs")),
        check("fio", of_developers(&["fio"], "`make bench` measures beside it", "apt install fio")),
        check(
            "Chromium",
            of_developers(&CHROMIUM, "`make test` opens reports in it", "apt install chromium"),
        ),
    ]
}

/// A program that only development needs.
fn of_developers(names: &[&str], why: &str, mend: &str) -> Status {
    match program(names, why, mend) {
        Status::Warning { why, mend } => Status::Development { why, mend },
        found => found,
    }
}

fn all_adapters() -> Vec<&'static crate::adapters::Adapter> {
    crate::adapters::ADAPTERS.iter().collect()
}

fn accelerator(qemu: Option<&Qemu>, kernel: Option<&GuestKernel>) -> Status {
    let (Some(qemu), Some(kernel)) = (qemu, kernel) else {
        return missing("it cannot be found out without QEMU and a guest kernel", "mend those first");
    };
    match choose_accelerator(qemu, kernel, KVM_LIMIT) {
        Ok(AcceleratorChoice { accelerator: Accelerator::Kvm(_), why, .. }) => ok(format!("kvm: {why}")),
        Ok(AcceleratorChoice { accelerator: Accelerator::Tcg, why, .. }) => warning(
            format!("tcg: {why}; figures of guests describe this emulation, not virtualization"),
            "use a host whose KVM works",
        ),
        Err(LabError::NoAccelerator { source: source @ MachineError::Conversation { .. } }) => missing(
            format!("no guest booted in time, with {}: {source}", load_average()),
            "wait until this host is less busy, and try again",
        ),
        Err(error) => missing(error, "apt install --reinstall qemu-system-x86"),
    }
}

/// How busy the host is, in words.
fn load_average() -> String {
    procfs::LoadAverage::current().map_or_else(
        |_| "a load that cannot be read".into(),
        |load| format!("a load of {:.1} in the last minute", load.one),
    )
}

fn io_uring() -> Status {
    let mend =
        "sudo sysctl kernel.io_uring_disabled=0 (in a container, allow io_uring in its seccomp profile)";
    match io_uring::IoUring::new(2) {
        Ok(_) => ok("allowed"),
        Err(error) => warning(format!("not allowed ({error}): use --engine psync"), mend),
    }
}

fn locked_memory() -> Status {
    if geteuid().is_root() {
        return ok("root is not limited");
    }
    match getrlimit(Resource::Memlock).current {
        Some(bytes) if bytes < WANTED_MEMLOCK_BYTES => warning(
            format!("RLIMIT_MEMLOCK is {}: large buffers may not be registered", format_bytes(bytes)),
            "ulimit -l unlimited, or raise memlock in /etc/security/limits.conf",
        ),
        Some(bytes) => ok(format_bytes(bytes)),
        None => ok("unlimited"),
    }
}

fn disk_space(directory: &Path) -> Status {
    match free_bytes(directory) {
        Ok(free) => {
            let text = format!("{} MiB free in {}", free >> 20, directory.display());
            let mend = "make room, or name another place with --target-dir";
            if free < WANTED_SPACE_BYTES { warning(text, mend) } else { ok(text) }
        }
        Err(error) => {
            missing(format!("{}: {error}", directory.display()), "name a directory with --target-dir")
        }
    }
}

fn direct_io(directory: &Path) -> Status {
    let attempt = tempfile::Builder::new().prefix(".virtbench-").make_in(directory, |path| {
        let flags = i32::try_from(OFlags::DIRECT.bits()).unwrap_or_default();
        File::options().read(true).write(true).create_new(true).mode(0o600).custom_flags(flags).open(path)
    });
    let mend = "name a directory on a disk's file system with --target-dir";
    match attempt {
        Ok(_) => ok(format!("{} takes O_DIRECT", directory.display())),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {
            warning(format!("the file system of {} refuses O_DIRECT", directory.display()), mend)
        }
        Err(error) => missing(format!("no file can be made in {}: {error}", directory.display()), mend),
    }
}

fn program(names: &[&str], purpose: &str, mend: &str) -> Status {
    match names.iter().find_map(|name| which::which(name).ok()) {
        Some(path) => ok(path.display()),
        None => warning(format!("not installed; {purpose}"), mend),
    }
}

fn ok(detail: impl ToString) -> Status {
    Status::Ok { detail: detail.to_string() }
}

fn warning(why: impl ToString, mend: &str) -> Status {
    Status::Warning { why: why.to_string(), mend: mend.to_owned() }
}

fn missing(why: impl ToString, mend: &str) -> Status {
    Status::Missing { why: why.to_string(), mend: mend.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_one_flat_object() {
        let check = Check { name: "QEMU", status: missing("gone", "apt install it") };
        let expected = r#"{"name":"QEMU","status":"missing","why":"gone","mend":"apt install it"}"#;
        assert_eq!(serde_json::to_string(&check).unwrap(), expected);
    }

    #[test]
    fn a_directory_that_is_not_there_is_missing() {
        assert!(matches!(disk_space(Path::new("/nonexistent")), Status::Missing { .. }));
        assert!(matches!(direct_io(Path::new("/nonexistent")), Status::Missing { .. }));
    }

    #[test]
    fn a_file_made_for_the_check_is_gone_afterwards() {
        let directory = tempfile::tempdir().unwrap();
        let _ = direct_io(directory.path());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_program_is_found_by_any_of_its_names() {
        assert!(matches!(program(&["no-such-program", "sh"], "", ""), Status::Ok { .. }));
        assert!(matches!(program(&["no-such-program"], "", ""), Status::Warning { .. }));
    }

    #[test]
    fn packages_are_those_that_mend_it() {
        let of = |status| check("x", status).packages().join(" ");
        assert_eq!(of(missing("gone", "apt install qemu-utils xfsprogs (both)")), "qemu-utils xfsprogs");
        assert_eq!(of(missing("gone", KERNEL)), "linux-image-amd64");
        assert_eq!(of(warning("odd", "apt install --reinstall qemu-system-x86")), "");
        assert_eq!(of(warning("odd", "use a host whose KVM works")), "");
        assert_eq!(of(of_developers(&["/no/such/program"], "tests", "apt install fio")), "");
        assert_eq!(of(ok("here")), "");
    }
}
