//! The kernel that guests boot and its modules: found, and unpacked on the host, because unpacking it inside an emulated guest
//! takes longer than booting it.

use std::env;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use memchr::memmem;
use thiserror::Error;

use crate::cache::{cache_directory, write_atomically};

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

/// The packing in which something begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    Xz,
    Gzip,
    Zstd,
    None,
}

impl Packing {
    fn from_magic(bytes: &[u8]) -> Self {
        match bytes {
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            _ => Self::None,
        }
    }
}

/// Reads what `bytes` unpack to: xz, gzip and zstd are known by their magic numbers, anything else
/// comes as it is. What follows the packed stream is ignored.
///
/// # Errors
/// The stream's head is damaged; the rest shows when it is read.
pub(crate) fn unpacker(bytes: &[u8]) -> io::Result<Box<dyn Read + '_>> {
    Ok(match Packing::from_magic(bytes) {
        Packing::Xz => Box::new(lzma_rust2::XzReader::new(bytes, false)),
        Packing::Gzip => Box::new(flate2::read::GzDecoder::new(bytes)),
        Packing::Zstd => Box::new(ruzstd::decoding::StreamingDecoder::new(bytes).map_err(io::Error::other)?),
        Packing::None => Box::new(bytes),
    })
}

/// Unpacks as a whole.
///
/// # Errors
/// The bytes are damaged, or unpack to more than `limit_bytes`.
pub(crate) fn unpack(bytes: &[u8], limit_bytes: usize) -> io::Result<Vec<u8>> {
    let reader = unpacker(bytes)?;
    let mut unpacked = Vec::new();
    reader.take(limit_bytes as u64 + 1).read_to_end(&mut unpacked)?;
    if unpacked.len() > limit_bytes {
        return Err(io::Error::other(format!("unpacks to more than {limit_bytes} bytes")));
    }
    Ok(unpacked)
}

/// The largest unpacked kernel, in bytes.
const MAX_UNPACKED_BYTES: u64 = 512 << 20;

/// How much is unpacked at once, in bytes: the whole would need ten times the memory of all the rest.
const PIECE_BYTES: usize = 1 << 20;

/// Where a bzImage counts its set-up sectors and points to its payload (boot.rst).
const SETUP_SECTORS_AT: usize = 0x1f1;

const PAYLOAD_AT: usize = 0x248;

/// The ELF note that lets QEMU enter an unpacked kernel (PVH): owner `Xen`, type 18.
const PVH_NOTES: [&[u8]; 2] =
    [b"\x04\0\0\0\x04\0\0\0\x12\0\0\0Xen\0", b"\x04\0\0\0\x08\0\0\0\x12\0\0\0Xen\0"];

/// The file QEMU is to boot: the unpacked kernel, kept in the cache, or the image as it is where it
/// cannot be unpacked or entered so (an unknown packing, no PVH entry, no room): that boots too,
/// only slower.
///
/// # Errors
/// The image cannot be read.
pub fn bootable(kernel: &GuestKernel) -> Result<PathBuf, KernelError> {
    let unreadable = |source| KernelError::Unreadable { path: kernel.image.clone(), source };
    let facts = fs::metadata(&kernel.image).map_err(unreadable)?;
    let changed = facts.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let name = format!("{}-{}-{}", kernel.release, facts.len(), changed.unwrap_or_default().as_nanos());
    let kept = cache_directory().join("vmlinux").join(name);
    if kept.is_file() {
        return Ok(kept);
    }
    let mut image = Vec::new();
    let file = File::open(&kernel.image).map_err(unreadable)?;
    file.take(MAX_IMAGE_BYTES).read_to_end(&mut image).map_err(unreadable)?;
    let unpacked = write_atomically(&kept, |file| unpack_vmlinux(&image, file));
    Ok(if unpacked.is_ok() { kept } else { kernel.image.clone() })
}

/// Writes the ELF kernel inside a bzImage to `sink`.
fn unpack_vmlinux(image: &[u8], sink: &mut dyn Write) -> io::Result<()> {
    let unfit = || io::Error::from(io::ErrorKind::InvalidData);
    let mut reader = unpacker(payload_of(image).ok_or_else(unfit)?)?.take(MAX_UNPACKED_BYTES + 1);
    // The end of each piece stays for the next, so that a note across the seam is seen.
    let kept = PVH_NOTES[0].len() - 1;
    let mut window = Vec::with_capacity(PIECE_BYTES + kept);
    let (mut total, mut is_elf, mut enterable) = (0, false, false);
    loop {
        let old = window.len();
        let count = reader.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut window)?;
        if count == 0 {
            break;
        }
        sink.write_all(&window[old..])?;
        is_elf |= total == 0 && window.starts_with(b"\x7fELF");
        enterable |= PVH_NOTES.iter().any(|note| memmem::find(&window, note).is_some());
        total += count as u64;
        window.drain(..window.len().saturating_sub(kept));
    }
    if is_elf && enterable && total <= MAX_UNPACKED_BYTES { Ok(()) } else { Err(unfit()) }
}

/// The packed kernel inside a bzImage.
fn payload_of(image: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| -> Option<usize> {
        let bytes = image.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    let real_mode = (usize::from(*image.get(SETUP_SECTORS_AT)?) + 1) * 512;
    let start = real_mode.checked_add(word(PAYLOAD_AT)?)?;
    image.get(start..start.checked_add(word(PAYLOAD_AT + 4)?)?)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

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

    #[test]
    fn gzip_is_unpacked_up_to_the_limit() {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(&[7; 1000]).unwrap();
        let packed = packer.finish().unwrap();
        assert_eq!(unpack(&packed, 1000).unwrap(), [7; 1000]);
        assert!(unpack(&packed, 999).is_err());
    }

    #[test]
    fn what_is_not_packed_stays() {
        assert_eq!(unpack(b"\x7fELF", 10).unwrap(), b"\x7fELF");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(kind in 0usize..3, bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let magic: [&[u8]; 3] = [b"\xfd7zXZ\0", &[0x1f, 0x8b], &[0x28, 0xb5, 0x2f, 0xfd]];
            let _ = unpack(&[magic[kind], &bytes].concat(), 1 << 16);
        }
    }
}

#[cfg(test)]
mod vmlinux_tests {
    use proptest::prelude::*;

    use super::*;

    fn image(payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 1024];
        image[SETUP_SECTORS_AT] = 1;
        image[PAYLOAD_AT..PAYLOAD_AT + 4].copy_from_slice(&8u32.to_le_bytes());
        image[PAYLOAD_AT + 4..PAYLOAD_AT + 8]
            .copy_from_slice(&u32::try_from(payload.len()).unwrap().to_le_bytes());
        image.extend([0; 8]);
        image.extend(payload);
        image
    }

    fn unpacked(image: &[u8]) -> Option<Vec<u8>> {
        let mut vmlinux = Vec::new();
        unpack_vmlinux(image, &mut vmlinux).ok().map(|()| vmlinux)
    }

    #[test]
    fn a_note_across_a_seam_is_seen() {
        for shift in 0..PVH_NOTES[1].len() + 1 {
            let filler = vec![b'.'; PIECE_BYTES - 4 - shift];
            let elf = [b"\x7fELF", filler.as_slice(), PVH_NOTES[1], b"..."].concat();
            assert_eq!(unpacked(&image(&elf)), Some(elf), "{shift}");
        }
    }

    #[test]
    fn only_a_kernel_that_can_be_entered_is_taken() {
        let elf = [b"\x7fELF....", PVH_NOTES[1]].concat();
        assert_eq!(unpacked(&image(&elf)), Some(elf));
        assert_eq!(unpacked(&image(b"\x7fELF....")), None);
        assert_eq!(unpacked(&image(b"something else")), None);
    }

    proptest! {
        #[test]
        fn no_image_panics(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            let _ = unpacked(&bytes);
        }
    }
}
