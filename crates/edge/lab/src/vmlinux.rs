//! The kernel unpacked on the host, because unpacking it inside an emulated guest takes longer than
//! all the rest of its boot (2.9 of 4.9 s under TCG).

use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use memchr::memmem;

use crate::cache::{cache_directory, write_atomically};
use crate::kernel::{GuestKernel, KernelError, MAX_IMAGE_BYTES};
use crate::unpack::unpack;

/// The largest unpacked kernel, in bytes.
const MAX_UNPACKED_BYTES: usize = 512 << 20;
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
pub(crate) fn bootable(kernel: &GuestKernel) -> Result<PathBuf, KernelError> {
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
    match vmlinux_of(&image) {
        Some(vmlinux) if write_atomically(&kept, &vmlinux).is_ok() => Ok(kept),
        _ => Ok(kernel.image.clone()),
    }
}

/// The ELF kernel inside a bzImage.
fn vmlinux_of(image: &[u8]) -> Option<Vec<u8>> {
    let word = |at: usize| -> Option<usize> {
        let bytes = image.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    let real_mode = (usize::from(*image.get(SETUP_SECTORS_AT)?) + 1) * 512;
    let start = real_mode.checked_add(word(PAYLOAD_AT)?)?;
    let payload = image.get(start..start.checked_add(word(PAYLOAD_AT + 4)?)?)?;
    let vmlinux = unpack(payload, MAX_UNPACKED_BYTES).ok()?;
    let enterable = PVH_NOTES.iter().any(|note| memmem::find(&vmlinux, note).is_some());
    (vmlinux.starts_with(b"\x7fELF") && enterable).then_some(vmlinux)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    #[test]
    fn only_a_kernel_that_can_be_entered_is_taken() {
        let elf = [b"\x7fELF....", PVH_NOTES[1]].concat();
        assert_eq!(vmlinux_of(&image(&elf)), Some(elf));
        assert_eq!(vmlinux_of(&image(b"\x7fELF....")), None);
        assert_eq!(vmlinux_of(&image(b"something else")), None);
    }

    proptest! {
        #[test]
        fn no_image_panics(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            let _ = vmlinux_of(&bytes);
        }
    }
}
