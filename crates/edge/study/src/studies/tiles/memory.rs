//! Whether so many tiles have room in the host's memory, looked at before anything starts.

use virtbench_lab::available_memory_bytes;
use virtbench_record::TilesPlan;
use virtbench_units::format_bytes;

use super::tile_count::tile_count;

/// What a VM takes beside its own memory, in bytes, about.
const OF_A_VM: u64 = 64 << 20;

/// Why so many tiles have no room; nothing where they have, or the host does not say what is available.
pub(super) fn too_little_memory(plan: &TilesPlan, tiles: u32) -> Option<String> {
    if plan.is_elsewhere() {
        return None;
    }
    missing(plan, tiles, available_memory_bytes()?, "are available on this host")
}

/// The same for a machine elsewhere that has so much memory in all.
pub(super) fn more_than_all(plan: &TilesPlan, tiles: u32, all: u64) -> Option<String> {
    missing(plan, tiles, all, "is all that the machine has which runs members")
}

fn missing(plan: &TilesPlan, tiles: u32, available: u64, what: &str) -> Option<String> {
    let beside = if plan.vm { OF_A_VM.saturating_mul(plan.members.len() as u64) } else { 0 };
    let needed = plan.memory_of_a_tile().saturating_add(beside).saturating_mul(u64::from(tiles));
    // Whole MiB are what a reader can use.
    let shown = |bytes: u64| format_bytes(bytes >> 20 << 20);
    (needed > available).then(|| {
        format!(
            "{} need {} of memory, and {} {what}: ask for fewer, or give members less",
            tile_count(tiles),
            shown(needed),
            shown(available)
        )
    })
}
