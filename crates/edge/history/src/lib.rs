//! A catalogue of run folders: which runs there are, their results, and what users call them.
//!
//! The run folders are the truth. The catalogue keeps what was read of them, so that a thousand runs are listed at once; it can be
//! removed and filled again at any time. Tags stand in the run folders too. It is a file of SQLite, or a schema of a PostgreSQL that
//! a team shares: the same tables, in which every machine keeps the runs of its own folders.

mod catalogue;
mod error;
mod found;
mod postgresql;
mod sqlite;
mod store;

pub use catalogue::{Catalogue, Scanned, Watch};
pub use error::{CatalogueError, Filter, MAX_TAGS, Place};
pub use found::{read_run, read_tags, run_folders, write_tags};
