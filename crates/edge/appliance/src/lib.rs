//! Guests with real software, on disk: a recipe becomes a root file system of the distribution's own packages, kept in
//! virtbench's cache, and the data that its services start from is kept beside it.
//!
//! [`build`] makes an [`Appliance`] or finds the one that was made: an ext4 image that nobody writes to, and a
//! [`Manifest`](virtbench_recipe::Manifest). [`DataSets`] keeps images of prepared data, and makes copies of them for single
//! runs.

mod appliance;
mod apt;
mod apt_words;
mod build;
mod build_folder;
mod data;
mod digest;
mod error;
mod host;
mod lock;
mod progress;
mod remove;
mod room;
mod shell;
mod sources;
mod store;
mod world;

pub use appliance::Appliance;
pub use build::{BuildOptions, Built, build};
pub use data::{DataSet, DataSets};
pub use error::{ApplianceError, ErrorKind};
pub use progress::{Phase, Progress};
pub use remove::{Removed, remove, remove_unused};
pub use shell::shell;
pub use store::Store;
