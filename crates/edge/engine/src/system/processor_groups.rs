//! Processors of Windows, which come in groups of at most 64.

/// Where a processor is that is counted through all groups: its group, and its number there. Nothing where there are fewer.
pub(crate) fn place_in_groups(sizes: impl IntoIterator<Item = u32>, processor: u32) -> Option<(u16, u32)> {
    let mut number = processor;
    for (group, size) in (0_u16..).zip(sizes) {
        if number < size {
            return Some((group, number));
        }
        number -= size;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_counted_through_all_groups() {
        for (processor, place) in [
            (0, Some((0, 0))),
            (47, Some((0, 47))),
            (48, Some((1, 0))),
            (111, Some((1, 63))),
            (112, Some((2, 0))),
            (113, None),
        ] {
            assert_eq!(place_in_groups([48, 64, 1], processor), place, "{processor}");
        }
        assert_eq!(place_in_groups([], 0), None);
    }
}
