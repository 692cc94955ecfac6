//! Where disks of other sizes go on their device: where they are if there is room, else in the first free piece.

use crate::config::{Config, LABEL_BYTES};
use crate::label::{Label, Partition};

/// Every partition begins at a multiple.
const ALIGN_BYTES: u64 = 1 << 20;

/// There is not enough of it in one piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) disk: String,
    pub(super) needs: u64,
    pub(super) largest: u64,
}

/// The label as it will be, its sequence unchanged. Disks keep their order; a disk that moves goes nowhere onto what it
/// was, so that the copy can be made before the label changes.
pub(super) fn place(label: &Label, config: &Config, capacity_bytes: u64) -> Result<Label, Room> {
    let mut placed = label.clone();
    placed.disks.retain(|disk| config.disks.iter().any(|wanted| wanted.name == disk.name));
    for index in 0..placed.disks.len() {
        let Some(wanted) = config.disks.iter().find(|disk| disk.name == placed.disks[index].name) else {
            continue;
        };
        let size_bytes = wanted.size.0;
        let others: Vec<&Partition> = placed
            .disks
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != index)
            .map(|(_, disk)| disk)
            .collect();
        let own = &placed.disks[index];
        let needs = size_bytes.next_multiple_of(ALIGN_BYTES);
        let end = |from: u64| {
            let after = others.iter().map(|disk| disk.offset_bytes).filter(|&offset| offset >= from);
            after.min().unwrap_or(capacity_bytes)
        };
        // The last one on the device may end within a MiB.
        let fits = |from: u64, room: u64| from.saturating_add(size_bytes) <= room;
        let offset_bytes = if fits(own.offset_bytes, end(own.offset_bytes)) {
            own.offset_bytes
        } else {
            let all = others.iter().copied().chain([own]);
            let begins = all.map(|disk| (disk.offset_bytes + disk.size_bytes).next_multiple_of(ALIGN_BYTES));
            let mut begins: Vec<u64> = begins.chain([LABEL_BYTES]).collect();
            begins.sort_unstable();
            let taken = |from: u64| {
                placed
                    .disks
                    .iter()
                    .any(|disk| (disk.offset_bytes..disk.offset_bytes + disk.size_bytes).contains(&from))
            };
            let room = |from: u64| {
                let after =
                    placed.disks.iter().map(|disk| disk.offset_bytes).filter(|&offset| offset >= from);
                after.min().unwrap_or(capacity_bytes)
            };
            let free: Vec<u64> = begins.into_iter().filter(|&from| !taken(from)).collect();
            let largest = free.iter().map(|&from| room(from).saturating_sub(from)).max().unwrap_or(0);
            let found = free.into_iter().find(|&from| fits(from, room(from)));
            found.ok_or(Room { disk: own.name.clone(), needs, largest })?
        };
        placed.disks[index] = Partition { offset_bytes, size_bytes, ..own.clone() };
    }
    for wanted in &config.disks {
        if placed.named(&wanted.name).is_none() {
            let (name, size_bytes) = (wanted.name.clone(), wanted.size.0);
            let offset_bytes = free_piece(&placed.disks, &name, size_bytes, capacity_bytes)?;
            placed.disks.push(Partition { name, offset_bytes, size_bytes });
        }
    }
    Ok(placed)
}

/// The first piece that has room for a disk that is not there yet.
fn free_piece(disks: &[Partition], name: &str, size_bytes: u64, capacity_bytes: u64) -> Result<u64, Room> {
    let ends = disks.iter().map(|disk| (disk.offset_bytes + disk.size_bytes).next_multiple_of(ALIGN_BYTES));
    let mut begins: Vec<u64> = ends.chain([LABEL_BYTES]).collect();
    begins.sort_unstable();
    let room = |from: u64| {
        let taken =
            disks.iter().any(|disk| (disk.offset_bytes..disk.offset_bytes + disk.size_bytes).contains(&from));
        let next = disks.iter().map(|disk| disk.offset_bytes).filter(|&offset| offset >= from).min();
        if taken { 0 } else { next.unwrap_or(capacity_bytes).saturating_sub(from) }
    };
    let found = begins.iter().copied().find(|&from| room(from) >= size_bytes);
    found.ok_or_else(|| Room {
        disk: name.to_owned(),
        needs: size_bytes.next_multiple_of(ALIGN_BYTES),
        largest: begins.iter().map(|&from| room(from)).max().unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DiskTable;

    const MIB: u64 = 1 << 20;

    fn config(sizes: [u64; 3]) -> Config {
        let disk = |(name, size): (&str, u64)| DiskTable::new(name.to_owned(), size * MIB);
        Config::new(["a", "b", "c"].into_iter().zip(sizes).map(disk).collect())
    }

    fn resized(sizes: [u64; 3], capacity_mib: u64) -> Result<[u64; 3], Room> {
        let label = Label::new(&config([10, 10, 10]), [1; 16]);
        let placed = place(&label, &config(sizes), capacity_mib * MIB)?;
        Ok([0, 1, 2].map(|disk: usize| placed.disks[disk].offset_bytes / MIB))
    }

    #[test]
    fn a_new_disk_goes_where_there_is_room_and_one_that_goes_leaves_some() {
        let label = Label::new(&config([10, 10, 10]), [1; 16]);
        let disks = |sizes: &[(&str, u64)]| {
            Config::new(
                sizes.iter().map(|(name, size)| DiskTable::new((*name).to_owned(), size * MIB)).collect(),
            )
        };
        let places = |sizes: &[(&str, u64)], capacity: u64| {
            let placed = place(&label, &disks(sizes), capacity * MIB)?;
            Ok::<_, Room>(
                placed
                    .disks
                    .iter()
                    .map(|disk| (disk.name.clone(), disk.offset_bytes / MIB))
                    .collect::<Vec<_>>(),
            )
        };
        let at = |name: &str, mib: u64| (name.to_owned(), mib);
        let four = [("a", 10), ("b", 10), ("c", 10), ("d", 5)];
        assert_eq!(places(&four, 40), Ok(vec![at("a", 1), at("b", 11), at("c", 21), at("d", 31)]));
        assert!(places(&four, 35).is_err());
        assert_eq!(places(&[("a", 10), ("c", 10)], 40), Ok(vec![at("a", 1), at("c", 21)]));
        assert_eq!(
            places(&[("a", 10), ("c", 10), ("d", 10)], 31),
            Ok(vec![at("a", 1), at("c", 21), at("d", 11)])
        );
    }

    #[test]
    fn a_disk_stays_where_there_is_room_and_moves_where_there_is_some() {
        assert_eq!(resized([10, 10, 10], 40), Ok([1, 11, 21]));
        assert_eq!(resized([10, 10, 19], 40), Ok([1, 11, 21]), "the last one grows in its place");
        assert_eq!(resized([10, 5, 10], 40), Ok([1, 11, 21]), "a smaller one too");
        assert_eq!(resized([12, 10, 10], 43), Ok([31, 11, 21]), "the first one moves behind the last");
        let none = Room { disk: "a".into(), needs: 12 * MIB, largest: 9 * MIB };
        assert_eq!(resized([12, 10, 10], 40), Err(none));
        assert!(resized([10, 10, 30], 40).is_err());
    }
}
