//! The study of tiles: members that do different work beside each other, more and more of them ([Platform 2014], sections III.B
//! and IV.B).

mod energy;
mod existing;
mod experiment;
mod file;
mod file_values;
mod generator;
mod host;
mod infrastructure;
mod materials;
mod member_at;
mod member_machine;
mod memory;
mod outcome;
mod run;
mod sides;
mod standing;
mod supplied;
mod tile_count;
mod tile_member;
mod tiles_place;
mod together;
mod uses;
mod watch;

pub use experiment::{InfrastructureOptions, MemberPlace, TilesOptions};
pub use file::{TileFile, TileFileError, TileFileMember};
pub use generator::generator_command;
pub use host::{HostAddress, TilesHosting};
pub use run::TilesStudy;
pub use supplied::{SUPPLIED_TILES, SuppliedTile};
pub use tile_member::TileMember;
pub use tiles_place::TilesPlace;
