//! The tiles that come with the project.

/// A tile that comes with the project.
#[derive(Debug, Clone, Copy)]
pub struct SuppliedTile {
    /// Its name.
    pub name: &'static str,
    /// Its file.
    pub text: &'static str,
}

/// All of them, by name.
pub const SUPPLIED_TILES: [SuppliedTile; 2] = [
    SuppliedTile { name: "tile-paper", text: include_str!("../../../tiles/tile-paper.toml") },
    SuppliedTile { name: "tile-small", text: include_str!("../../../tiles/tile-small.toml") },
];
