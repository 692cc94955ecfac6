//! virtio-blk: what the device says of itself, and what its requests mean (virtio 1.2, section 5.2).

use virtio_bindings::virtio_blk::{
    VIRTIO_BLK_F_BLK_SIZE, VIRTIO_BLK_F_DISCARD, VIRTIO_BLK_F_FLUSH, VIRTIO_BLK_F_MQ, VIRTIO_BLK_F_RO,
    VIRTIO_BLK_F_SEG_MAX, VIRTIO_BLK_F_WRITE_ZEROES, VIRTIO_BLK_S_IOERR, VIRTIO_BLK_S_OK,
    VIRTIO_BLK_S_UNSUPP, VIRTIO_BLK_T_DISCARD, VIRTIO_BLK_T_FLUSH, VIRTIO_BLK_T_GET_ID, VIRTIO_BLK_T_IN,
    VIRTIO_BLK_T_OUT, VIRTIO_BLK_T_WRITE_ZEROES,
};
use virtio_bindings::virtio_config::VIRTIO_F_VERSION_1;
use virtio_bindings::virtio_ring::{VIRTIO_RING_F_EVENT_IDX, VIRTIO_RING_F_INDIRECT_DESC};

use super::chain::{Chain, Violation};
use crate::frontend::Action;
use crate::memory::{self, Segment};

/// `struct virtio_blk_config` up to the fields of zeroing.
pub const CONFIG_BYTES: usize = 60;
/// Pieces of data of a request: what fits a ring of 128 with header and status.
const MOST_SEGMENTS: u32 = 126;
/// The longest range that is discarded by one request, in sectors.
const MOST_DISCARD_SECTORS: u32 = 1 << 21;
/// The longest range that is zeroed by one request, in sectors: zeroes are written.
const MOST_ZERO_SECTORS: u32 = 1 << 16;
const HEADER_BYTES: usize = 16;
const RANGE_BYTES: usize = 16;
const ID_BYTES: usize = 20;
const ID_WRITTEN: u32 = 1 + 20;
const SECTOR_BYTES: u64 = 512;
/// The only flag of a range: zeroed blocks may be discarded.
const MAY_UNMAP: u32 = 1;

/// Answers of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::cast_possible_truncation)] // constants below 3
#[repr(u8)]
pub enum Status {
    /// Done.
    Ok = VIRTIO_BLK_S_OK as u8,
    /// Not done.
    IoError = VIRTIO_BLK_S_IOERR as u8,
    /// Not known.
    Unsupported = VIRTIO_BLK_S_UNSUPP as u8,
}

/// A virtual disk as a device.
#[derive(Debug, Clone)]
pub struct Device {
    /// Its size in bytes.
    pub size_bytes: u64,
    /// What requests are multiples of, in bytes.
    pub block_bytes: u32,
    /// Rings.
    pub queues: u16,
    /// Writes are refused.
    pub read_only: bool,
    /// What it calls itself.
    pub id: String,
}

impl Device {
    /// Features offered, less those of vhost-user.
    pub fn features(&self) -> u64 {
        let mut features = bit(VIRTIO_F_VERSION_1)
            | bit(VIRTIO_RING_F_EVENT_IDX)
            | bit(VIRTIO_RING_F_INDIRECT_DESC)
            | bit(VIRTIO_BLK_F_SEG_MAX)
            | bit(VIRTIO_BLK_F_BLK_SIZE)
            | bit(VIRTIO_BLK_F_FLUSH)
            | bit(VIRTIO_BLK_F_DISCARD)
            | bit(VIRTIO_BLK_F_WRITE_ZEROES);
        if self.queues > 1 {
            features |= bit(VIRTIO_BLK_F_MQ);
        }
        if self.read_only {
            features |= bit(VIRTIO_BLK_F_RO);
        }
        features
    }

    /// The configuration space.
    pub fn config(&self) -> [u8; CONFIG_BYTES] {
        let mut bytes = [0; CONFIG_BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &(self.size_bytes / SECTOR_BYTES).to_le_bytes());
        put(12, &MOST_SEGMENTS.to_le_bytes());
        put(20, &self.block_bytes.to_le_bytes());
        put(34, &self.queues.to_le_bytes());
        put(36, &MOST_DISCARD_SECTORS.to_le_bytes());
        put(40, &1u32.to_le_bytes());
        put(44, &(self.block_bytes.max(4096) / 512).to_le_bytes());
        put(48, &MOST_ZERO_SECTORS.to_le_bytes());
        put(52, &1u32.to_le_bytes());
        bytes
    }

    /// What a chain asks for; its data goes to `data`, which is empty.
    ///
    /// # Errors
    /// It has no place for a status, so that nothing can be answered.
    #[inline]
    pub fn parse(&self, chain: &Chain, features: u64, data: &mut Vec<Segment>) -> Result<Parsed, Violation> {
        let (readable, writable) = chain.pieces.split_at(chain.readable);
        let [to_read, to_write] = chain.bytes.map(|bytes| bytes as usize);
        let last = writable.iter().rev().find(|piece| !piece.is_empty()).ok_or(Violation::NoStatus)?;
        // SAFETY: the last byte of a piece that is not empty.
        let status = unsafe { last.base().add(last.len() - 1) };
        let answer = |what| Ok(Parsed { what, status, written: 1 });
        let mut header = [0; HEADER_BYTES];
        if to_read < HEADER_BYTES {
            return answer(What::Answer(Status::IoError));
        }
        memory::gather(readable, &mut header);
        let kind = u32_at(&header, 0);
        let at = u64_at(&header, 8).checked_mul(SECTOR_BYTES);
        let (out, into) = (to_read - HEADER_BYTES, to_write - 1);
        let refused = self.read_only
            && matches!(kind, VIRTIO_BLK_T_OUT | VIRTIO_BLK_T_DISCARD | VIRTIO_BLK_T_WRITE_ZEROES);
        let Some(offset_bytes) = at.filter(|_| !refused) else {
            return answer(What::Answer(Status::IoError));
        };
        // Without flushes a guest takes every completed write for stable.
        let fua = features & bit(VIRTIO_BLK_F_FLUSH) == 0;
        match kind {
            VIRTIO_BLK_T_IN => {
                memory::slice(writable, 0, into, data);
                let written = u32::try_from(to_write).unwrap_or(u32::MAX);
                let what = self.ranged(Action::Read, offset_bytes, into as u64);
                Ok(Parsed { what, status, written })
            }
            VIRTIO_BLK_T_OUT => {
                memory::slice(readable, HEADER_BYTES, out, data);
                answer(self.ranged(Action::Write { fua }, offset_bytes, out as u64))
            }
            VIRTIO_BLK_T_FLUSH => answer(What::Do { action: Action::Flush, offset_bytes: 0, len_bytes: 0 }),
            VIRTIO_BLK_T_GET_ID if into >= ID_BYTES => {
                let mut id = [0; ID_BYTES];
                let len = self.id.len().min(ID_BYTES);
                id[..len].copy_from_slice(&self.id.as_bytes()[..len]);
                memory::scatter(&id, writable);
                Ok(Parsed { what: What::Answer(Status::Ok), status, written: ID_WRITTEN })
            }
            VIRTIO_BLK_T_DISCARD | VIRTIO_BLK_T_WRITE_ZEROES => {
                let zero = kind == VIRTIO_BLK_T_WRITE_ZEROES;
                let mut range = [0; RANGE_BYTES];
                if out == RANGE_BYTES && memory::slice(readable, HEADER_BYTES, RANGE_BYTES, data) {
                    memory::gather(data, &mut range);
                    data.clear();
                } else {
                    return answer(What::Answer(Status::IoError));
                }
                answer(self.range(&range, zero, fua))
            }
            _ => answer(What::Answer(Status::Unsupported)),
        }
    }

    fn range(&self, range: &[u8; RANGE_BYTES], zero: bool, fua: bool) -> What {
        let (sectors, flags) = (u32_at(range, 8), u32_at(range, 12));
        let most = if zero { MOST_ZERO_SECTORS } else { MOST_DISCARD_SECTORS };
        let allowed = if zero { MAY_UNMAP } else { 0 };
        if flags & !allowed != 0 {
            return What::Answer(Status::Unsupported);
        }
        let at = u64_at(range, 0).checked_mul(SECTOR_BYTES);
        let (Some(offset_bytes), true) = (at, sectors <= most) else {
            return What::Answer(Status::IoError);
        };
        let action = if zero { Action::WriteZeroes { fua } } else { Action::Discard };
        self.ranged(action, offset_bytes, u64::from(sectors) * SECTOR_BYTES)
    }

    fn ranged(&self, action: Action, offset_bytes: u64, len_bytes: u64) -> What {
        let block = u64::from(self.block_bytes);
        let aligned = offset_bytes.is_multiple_of(block) && len_bytes.is_multiple_of(block);
        let inside = offset_bytes.checked_add(len_bytes).is_some_and(|end| end <= self.size_bytes);
        if len_bytes == 0 || !aligned || !inside {
            return What::Answer(Status::IoError);
        }
        What::Do { action, offset_bytes, len_bytes }
    }
}

/// A request, as far as it makes sense.
#[derive(Debug, Clone, Copy)]
pub struct Parsed {
    /// What is to be done.
    pub what: What,
    /// Where the status goes.
    pub status: *mut u8,
    /// Bytes that the driver is told were written, if all goes well.
    pub written: u32,
}

/// What is to be done about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Hand it in.
    Do {
        /// What it is.
        action: Action,
        /// Where on the disk.
        offset_bytes: u64,
        /// How much.
        len_bytes: u64,
    },
    /// Answer at once.
    Answer(Status),
}

/// A feature by its number.
pub const fn bit(feature: u32) -> u64 {
    1 << feature
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}
