//! A catalogue of run folders: which runs there are, their results, and what users call them.
//!
//! The run folders are the truth. The catalogue keeps what was read of them, so that a thousand runs are listed at once; it can be
//! removed and filled again at any time. Tags stand in the run folders too. It is a file of SQLite, or a schema of a PostgreSQL that
//! a team shares: the same tables, in which every machine keeps the runs of its own folders.

mod catalogue;
mod error;
mod filter;
mod found;
mod limits;
mod place;
mod postgresql;
mod sqlite;
mod store;
mod tags;

pub use catalogue::{Catalogue, Scanned, Watch};
pub use error::CatalogueError;
pub use filter::Filter;
pub use found::read_run;
pub use limits::MAX_TAGS;
pub use place::Place;
pub use tags::{read_tags, write_tags};
