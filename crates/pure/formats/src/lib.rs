//! The formats of other tools, in text and out again; nothing here opens a file.
//!
//! - [`import`] reads loads: Iometer configurations, fio job files, diskspd command lines, and
//!   virtbench's own JSON. What a file says and this engine cannot do is named with its place, and
//!   refused unless the caller is lenient.
//! - [`write_fio`], [`write_icf`] and [`write_json`] say a load in those formats.
//! - [`results`] writes outcomes: fio's JSON, Iometer's CSV, OpenMetrics, HdrHistogram logs.
//! - [`json`] writes figures with the digits that they have.
//! - [`trace`] reads block traces: CSV and fio's iolog.
//! - [`read_any_table`] reads tables of results, a paper's or a user's, of a storage load, of an application or of tiles; [`read_profile`] what an application does,
//!   [`read_model_runs`] what a model of it did on two machines.
//! - [`read_filebench`] reads models of file loads, [`read_loadfile`] what dbench replays.
//!
//! Files come from strangers: they are at most [`MAX_FILE_BYTES`] (tables: [`MAX_TABLE_BYTES`]), counts are bounded, no number in
//! them sizes an allocation, and no bytes make a reader panic.

mod any_table;
mod filebench;
mod import;
pub mod json;
mod loadfile;
mod profile;
pub mod results;
mod table;
pub mod trace;
mod write;

pub use any_table::{AnyTable, OperationRow, OperationsTable, read_any_table};
pub use filebench::{FilebenchError, FilebenchFile, read_filebench};
pub use import::{
    Ends, Format, ImportError, ImportedJob, ImportedLoad, Location, MAX_FILE_BYTES, MAX_JOBS, Remark,
    Schedule, SteadyEnd, SteadyMetric, Surroundings, detect, import, import_within,
};
pub use loadfile::{LoadfileError, MAX_LOADFILE_BYTES, read_loadfile};
pub use profile::{MAX_PROFILE_BYTES, ProfileFileError, read_model_runs, read_profile};
pub use table::{MAX_CONFIGURATIONS, MAX_POINTS, MAX_ROWS, MAX_TABLE_BYTES, TableError, read_table};
pub use write::{Inexpressible, write_fio, write_icf, write_json};
