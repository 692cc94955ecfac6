//! Packed kernels and modules, as distributions ship them.

use std::io::{self, Read};

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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

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
