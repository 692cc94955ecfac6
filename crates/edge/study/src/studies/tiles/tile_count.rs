//! So many tiles in words.

/// `1 tile`, `2 tiles`.
pub(super) fn tile_count(tiles: u32) -> String {
    format!("{tiles} {}", if tiles == 1 { "tile" } else { "tiles" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        assert_eq!([1, 2].map(tile_count), ["1 tile", "2 tiles"]);
    }
}
