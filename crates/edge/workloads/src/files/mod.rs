//! Applies loads to a file system.
//!
//! ```text
//! FileSpec + directory --prepare--> FileRun --run--> Report
//! ```
//!
//! [`FileRun::prepare`] makes a folder of its own in the directory, guarded by a mark and a lock, and
//! the files that the load begins with. [`FileRun::run`] performs it: tests one after the other (Bonnie++,
//! Iozone), or threads for a time (Filebench models, dbench clients). A run that ends early, because it
//! was stopped or the file system filled, keeps what it measured.

mod board;
mod bonnie;
#[cfg(unix)]
mod calls;
#[cfg(windows)]
#[path = "../windows/file_calls.rs"]
mod calls;
mod dbench;
mod folder;
mod iozone;
mod model;
mod run;
mod threads;
mod trials;

pub use board::{Ended, FilesError, Part, Report};
pub use folder::Folder;
pub use run::FileRun;
pub use threads::Outside;
pub use trials::Reach;
