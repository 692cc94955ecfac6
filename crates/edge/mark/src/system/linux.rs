//! Marks on Linux.

use std::fs;
use std::path::Path;

use procfs::process::Process;
use rustix::fs::statfs;
use rustix::rand::{GetRandomFlags, getrandom};

/// File systems of other machines, or through a program that may reach them, as `statfs` numbers them: NFS, CIFS, SMB, SMB 2, FUSE, 9P, Ceph, AFS,
/// GFS 2, OCFS 2.
const SHARED: [u32; 10] = [
    0x6969,
    0xff53_4d42,
    0x517b,
    0xfe53_4d42,
    0x6573_5546,
    0x0102_1997,
    0x00c3_6400,
    0x5346_414f,
    0x0116_1970,
    0x7461_636f,
];

/// What tells machines apart. Containers of one host see other processes under the same numbers, and clones of a machine share its id.
pub(crate) fn machine_parts() -> Vec<Vec<u8>> {
    let namespace = fs::read_link("/proc/self/ns/pid").map(|link| link.to_string_lossy().into_owned());
    vec![
        fs::read("/etc/machine-id").unwrap_or_default(),
        fs::read("/proc/sys/kernel/hostname").unwrap_or_default(),
        namespace.unwrap_or_default().into_bytes(),
    ]
}

/// What tells boots of a machine apart.
pub(crate) fn boot_parts() -> Vec<Vec<u8>> {
    vec![fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default()]
}

/// When a process began, in clock ticks after the boot; nothing where there is none.
pub(crate) fn began(process: u32) -> Option<u64> {
    let stat = Process::new(i32::try_from(process).ok()?).ok()?.stat().ok()?;
    (stat.state != 'Z').then_some(stat.starttime)
}

/// Whether a path lies on a file system that no other machine reaches.
pub(crate) fn is_on_this_machine(path: &Path) -> bool {
    statfs(path)
        .is_ok_and(|facts| !SHARED.contains(&u32::try_from(facts.f_type & 0xffff_ffff).unwrap_or_default()))
}

/// Fills a few bytes by chance; answers whether the kernel gave them.
pub(crate) fn fill_random(bytes: &mut [u8]) -> bool {
    getrandom(bytes, GetRandomFlags::empty()).is_ok()
}
