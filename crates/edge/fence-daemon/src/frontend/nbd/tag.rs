//! Names of requests.

/// A request's name: the client's serial, its place, its slot.
pub(super) fn tag(serial: u32, place: usize, slot: u32) -> u64 {
    u64::from(serial) << 32 | (place as u64 & 0xffff) << 16 | u64::from(slot & 0xffff)
}

#[allow(clippy::cast_possible_truncation)] // the parts that `tag` joined
pub(super) fn untag(tag: u64) -> (u32, usize, u32) {
    ((tag >> 32) as u32, (tag >> 16) as usize & 0xffff, tag as u32 & 0xffff)
}

/// The name of a connection: its requests' tags without their slots.
pub(super) const fn name(tag: u64) -> u64 {
    tag & !0xffff
}
