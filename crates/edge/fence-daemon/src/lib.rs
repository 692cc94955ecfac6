//! The fence's daemon: virtual disks for real guests, over real devices.
//!
//! ```text
//!  guests --- vhost-user-blk, NBD --- FrontEnd --submit--> Core (fence, requests, flights) --start--> Backend
//!                                        ^                   |    ^                                     |
//!                                        +-----completed-----+    +---------------finished--------------+
//!                                     all on one thread, waiting on one Ring
//! ```
//!
//! The same core as the simulator's decides everything; this crate carries data and time.

pub mod admin;
mod attach;
mod attach_error;
mod cache_metadata;
pub mod config;
mod confine;
pub mod control;
pub mod device;
mod devices;
mod endings;
pub mod frontend;
mod guard;
mod identity;
mod journal;
pub mod label;
pub mod memory;
mod memory_log;
pub mod metrics;
mod questions;
mod request;
mod requests;
pub mod ring;
pub mod runtime;
mod serve;
mod serve_error;
pub mod simulation;
mod start;

pub use admin::format;
pub use attach_error::AttachError;
pub use confine::{ConfineError, confine};
pub use endings::{Process, end_at_once, ignore_hang_up, leave_signals_to_others};
pub use memory_log::MemoryLogError;
pub use serve::Daemon;
pub use serve_error::ServeError;
