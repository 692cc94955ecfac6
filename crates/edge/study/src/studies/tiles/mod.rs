//! The study of tiles: members that do different work beside each other, more and more of them ([Platform 2014], sections III.B
//! and IV.B).

mod experiment;
mod file;
mod host;
mod outcome;
mod run;
mod standing;
mod tile_member;
mod together;
mod uses;

pub use experiment::{InfrastructureOptions, MemberPlace, TilesOptions};
pub use file::{SUPPLIED_TILES, SuppliedTile, TileFile, TileFileError, TileFileMember};
pub use host::{HostAddress, TilesHosting, TilesPlace};
pub use outcome::generator_command;
pub use run::TilesStudy;
pub use tile_member::TileMember;
