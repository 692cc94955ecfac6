//! Kinds of I/O in words.

use std::collections::BTreeSet;

use virtbench_model::pairwise::{Access, Group, Kind, SMALL_MOST_BYTES};
use virtbench_units::format_bytes;

/// `a, b and c`.
pub(super) fn listed<'t>(items: impl Iterator<Item = &'t str>) -> String {
    let items: Vec<&str> = items.collect();
    match items.as_slice() {
        [] => String::new(),
        [only] => (*only).into(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// `sequential reads up to 16 KiB`; without the size where there is only one.
pub(crate) fn group_name(group: &Group, sizes: bool) -> String {
    let kind = group.kind.to_string();
    let limit = format_bytes(SMALL_MOST_BYTES);
    match (sizes, group.small) {
        (false, _) => kind,
        (true, true) => format!("{kind} up to {limit}"),
        (true, false) => format!("{kind} above {limit}"),
    }
}

/// The groups of which `chosen` are indices, in as few words as are true: all, by access, by kind, by size.
pub(super) fn reach(groups: &[Group], chosen: &[usize]) -> String {
    if chosen.len() == groups.len() {
        return "every kind of I/O measured".into();
    }
    let is_chosen = |index: &usize| chosen.contains(index);
    let of = |holds: &dyn Fn(Kind) -> bool| -> Vec<usize> {
        (0..groups.len()).filter(|index| holds(groups[*index].kind)).collect()
    };
    let accesses: BTreeSet<u8> = groups.iter().map(|group| group.kind.random_percent).collect();
    let mut parts = Vec::new();
    for access in accesses {
        let all = of(&|kind| kind.random_percent == access);
        let kinds: BTreeSet<Kind> = all.iter().map(|index| groups[*index].kind).collect();
        if kinds.len() > 1 && all.iter().all(is_chosen) {
            parts.push(format!("{} I/O", Access(access)));
            continue;
        }
        for kind in kinds {
            let sizes = of(&|other| other == kind);
            if sizes.iter().all(is_chosen) {
                parts.push(kind.to_string());
            } else {
                parts.extend(
                    sizes
                        .iter()
                        .filter(|index| is_chosen(index))
                        .map(|index| group_name(&groups[*index], true)),
                );
            }
        }
    }
    listed(parts.iter().map(String::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sequential and random, writes and reads, small and large.
    fn eight() -> Vec<Group> {
        let kinds = [(0, 0), (0, 100), (100, 0), (100, 100)];
        let group = |(random_percent, read_percent), small| Group {
            kind: Kind { random_percent, read_percent },
            small,
            points: Vec::new(),
            standings: Vec::new(),
        };
        kinds.into_iter().flat_map(|kind| [true, false].map(|small| group(kind, small))).collect()
    }

    #[test]
    fn groups_are_named_in_as_few_words_as_are_true() {
        let groups = eight();
        for (chosen, text) in [
            (vec![0, 1, 2, 3, 4, 5, 6, 7], "every kind of I/O measured"),
            (vec![0, 1, 2, 3], "sequential I/O"),
            (vec![4, 5], "random writes"),
            (vec![0, 1, 2, 3, 6, 7], "sequential I/O and random reads"),
            (vec![2, 5, 6, 7], "sequential reads up to 16 KiB, random writes above 16 KiB and random reads"),
        ] {
            assert_eq!(reach(&groups, &chosen), text);
        }
    }

    #[test]
    fn a_list_ends_with_and() {
        for (items, text) in
            [(&[][..], ""), (&["a"], "a"), (&["a", "b"], "a and b"), (&["a", "b", "c"], "a, b and c")]
        {
            assert_eq!(listed(items.iter().copied()), text);
        }
    }
}
