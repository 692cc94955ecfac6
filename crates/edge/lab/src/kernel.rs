//! Finds the kernel that guests boot, and its modules.

use std::env;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::cache::cache_directory;

/// The largest kernel image that is read, in bytes.
pub(crate) const MAX_IMAGE_BYTES: u64 = 256 << 20;
/// Offset of the boot protocol's magic number in a bzImage (Linux, Documentation/arch/x86/boot.rst).
const MAGIC_AT: usize = 0x202;
/// Offset of the pointer to the version's text; 0x200 is to be added to what it says.
const VERSION_AT: usize = 0x20e;

/// A kernel with its modules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestKernel {
    /// The packed image (bzImage).
    pub image: PathBuf,
    /// Its release, such as `6.1.0-56-amd64`, as the image itself says.
    pub release: String,
    /// The directory with its modules and `modules.dep`.
    pub modules: PathBuf,
}

/// Why there is no guest kernel.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum KernelError {
    /// None was found.
    #[error(
        "no guest kernel found (looked at {}): `make setup` fetches one, `virtbench doctor` shows what \
         else is missing", tried.join("; ")
    )]
    NotFound {
        /// Where it was looked for, and what was wrong there.
        tried: Vec<String>,
    },
    /// The file cannot be read.
    #[error("the guest kernel {} cannot be read: {source}; make it readable or name another", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file is no kernel for this machine.
    #[error(
        "{} is not a Linux kernel for x86 (bzImage): name a file such as /boot/vmlinuz-*, or leave \
         it out and use `make setup`", path.display()
    )]
    NotAKernel {
        /// The file.
        path: PathBuf,
    },
    /// The modules are not there.
    #[error(
        "the guest kernel {} needs its modules in {}, but modules.dep is missing there: \
         install them, then run `depmod -b {} {release}`",
        image.display(), modules.display(), root.display()
    )]
    ModulesMissing {
        /// The kernel.
        image: PathBuf,
        /// Where its modules belong.
        modules: PathBuf,
        /// The directory that `boot` and `lib` lie in.
        root: PathBuf,
        release: String,
    },
}

/// Finds the kernel: the one named, else `$VIRTBENCH_KERNEL`, else the newest that set-up put into
/// the cache, else the newest under `/boot`. Modules are looked for in `lib/modules/RELEASE` beside
/// the image's `boot` directory, then in the host's.
///
/// # Errors
/// A named kernel that cannot be used, or none found at all.
pub fn find_kernel(named: Option<&Path>) -> Result<GuestKernel, KernelError> {
    let from_environment =
        env::var_os("VIRTBENCH_KERNEL").filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(path) = named.map(Path::to_path_buf).or(from_environment) {
        return examine(&path);
    }
    let mut tried = Vec::new();
    for directory in [cache_directory().join("kernel/boot"), PathBuf::from("/boot")] {
        let candidates = candidates(&directory);
        if candidates.is_empty() {
            tried.push(format!("{}: no vmlinuz-*", directory.display()));
        }
        for candidate in candidates {
            match examine(&candidate) {
                Ok(kernel) => return Ok(kernel),
                Err(error) => tried.push(error.to_string()),
            }
        }
    }
    Err(KernelError::NotFound { tried })
}

/// The kernels of a directory, newest first.
fn candidates(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let is_kernel =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz-"));
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_kernel).collect();
    found.sort_by_cached_key(|path| std::cmp::Reverse(version_key(&path.to_string_lossy())));
    found
}

/// Orders `6.1.0-9` before `6.1.0-56`: the numbers in a name, in their order.
fn version_key(name: &str) -> Vec<u64> {
    name.split(|character: char| !character.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

fn examine(image: &Path) -> Result<GuestKernel, KernelError> {
    let unreadable = |source| KernelError::Unreadable { path: image.to_owned(), source };
    let not_a_kernel = || KernelError::NotAKernel { path: image.to_owned() };
    let file = File::open(image).map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(not_a_kernel());
    }
    let mut start = Vec::new();
    file.take(64 << 10).read_to_end(&mut start).map_err(unreadable)?;
    let release = release_of(&start).ok_or_else(not_a_kernel)?;

    let absolute = fs::canonicalize(image).map_err(unreadable)?;
    let root = absolute.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
    let modules = [root, Path::new("/")]
        .map(|root| root.join("lib/modules").join(&release))
        .into_iter()
        .find(|directory| directory.join("modules.dep").is_file());
    match modules {
        Some(modules) => Ok(GuestKernel { image: absolute.clone(), release, modules }),
        None => Err(KernelError::ModulesMissing {
            image: image.to_owned(),
            modules: root.join("lib/modules").join(&release),
            root: root.to_owned(),
            release,
        }),
    }
}

/// The release in a bzImage's header.
fn release_of(start: &[u8]) -> Option<String> {
    if start.get(MAGIC_AT..MAGIC_AT + 4)? != b"HdrS" {
        return None;
    }
    let pointer = start.get(VERSION_AT..VERSION_AT + 2)?;
    let text = start.get(usize::from(u16::from_le_bytes([pointer[0], pointer[1]])) + 0x200..)?;
    let end = text.iter().take(200).position(|byte| *byte == b' ' || *byte == 0)?;
    let release = std::str::from_utf8(&text[..end]).ok()?;
    // It becomes part of a path.
    let harmless = |character: char| character.is_ascii_alphanumeric() || "-._+~".contains(character);
    (release.starts_with(|c: char| c.is_ascii_digit()) && release.chars().all(harmless))
        .then(|| release.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A file that passes for a kernel of this release.
    fn image(release: &str) -> Vec<u8> {
        let mut bytes = vec![0; 0x400];
        bytes[MAGIC_AT..MAGIC_AT + 4].copy_from_slice(b"HdrS");
        bytes[VERSION_AT..VERSION_AT + 2].copy_from_slice(&0x100u16.to_le_bytes());
        let text = format!("{release} (someone) #1 SMP\0");
        bytes[0x300..0x300 + text.len()].copy_from_slice(text.as_bytes());
        bytes
    }

    fn installed(root: &Path, release: &str) -> PathBuf {
        let path = root.join(format!("boot/vmlinuz-{release}"));
        fs::create_dir_all(root.join("boot")).unwrap();
        fs::create_dir_all(root.join("lib/modules").join(release)).unwrap();
        fs::write(&path, image(release)).unwrap();
        path
    }

    #[test]
    fn a_kernel_is_found_with_its_modules() {
        let root = tempfile::tempdir().unwrap();
        let path = installed(root.path(), "9.1.0-7-test");
        let error = find_kernel(Some(&path)).unwrap_err().to_string();
        assert!(error.contains("depmod -b") && error.contains("9.1.0-7-test"), "{error}");

        let modules = root.path().join("lib/modules/9.1.0-7-test");
        fs::write(modules.join("modules.dep"), "").unwrap();
        let kernel = find_kernel(Some(&path)).unwrap();
        assert_eq!(kernel.release, "9.1.0-7-test");
        assert_eq!(kernel.modules, fs::canonicalize(modules).unwrap());
    }

    #[test]
    fn the_newest_comes_first() {
        let root = tempfile::tempdir().unwrap();
        for release in ["6.1.0-9-x", "6.1.0-56-x", "5.10.0-99-x"] {
            installed(root.path(), release);
        }
        let names: Vec<String> = candidates(&root.path().join("boot"))
            .iter()
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(names, ["vmlinuz-6.1.0-56-x", "vmlinuz-6.1.0-9-x", "vmlinuz-5.10.0-99-x"]);
    }

    #[test]
    fn garbage_directories_and_nothing_are_told_apart() {
        let root = tempfile::tempdir().unwrap();
        let garbage = root.path().join("vmlinuz");
        fs::write(&garbage, [0x5a; 4096]).unwrap();
        assert!(matches!(find_kernel(Some(&garbage)), Err(KernelError::NotAKernel { .. })));
        assert!(matches!(find_kernel(Some(root.path())), Err(KernelError::NotAKernel { .. })));
        let missing = root.path().join("missing");
        assert!(matches!(find_kernel(Some(&missing)), Err(KernelError::Unreadable { .. })));
    }

    #[test]
    fn a_release_cannot_lead_out_of_the_modules_directory() {
        assert_eq!(release_of(&image("6.1/../../etc")), None);
        assert_eq!(release_of(&image("../etc")), None);
    }

    proptest! {
        #[test]
        fn no_header_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            if bytes.len() > MAGIC_AT + 4 {
                bytes[MAGIC_AT..MAGIC_AT + 4].copy_from_slice(b"HdrS");
            }
            let _ = release_of(&bytes);
        }
    }
}
