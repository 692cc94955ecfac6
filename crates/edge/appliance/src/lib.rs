//! Guests with real software, on disk: a recipe becomes a root file system of the distribution's own packages, kept in
//! virtbench's cache, and the data that its services start from is kept beside it.
//!
//! [`build`] makes an [`Appliance`] or finds the one that was made: an ext4 image that nobody writes to, and a
//! [`Manifest`](virtbench_recipe::Manifest). [`DataSets`] keeps images of prepared data, and makes copies of them for single
//! runs.

mod apt;
mod build;
mod build_folder;
mod data;
mod error;
mod host;
mod lock;
mod remove;
mod room;
mod store;
mod world;

pub use build::{BuildOptions, Built, Phase, Progress, build};
pub use data::{DataSet, DataSets};
pub use error::{ApplianceError, ErrorKind};
pub use remove::{Removed, remove, remove_unused};
pub use store::{Appliance, Store};
pub use world::shell;
