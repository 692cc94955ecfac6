//! The kernel unpacked on the host, because unpacking it inside an emulated guest takes longer than
//! all the rest of its boot (2.9 of 4.9 s under TCG).

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use memchr::memmem;

use crate::cache::{cache_directory, write_atomically};
use crate::kernel::{GuestKernel, KernelError, MAX_IMAGE_BYTES};
use crate::unpack::unpacker;

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
