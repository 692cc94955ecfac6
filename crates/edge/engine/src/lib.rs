//! Applies a load to a target and records the latency of every operation.
//!
//! ```text
//! TargetRequest --open--> Target --+
//!                                  +--> run --> one thread per worker:
//! LoadSpec ------------------------+            Stream (what next) -> Backend (do it) -> Recorder
//! ```
//!
//! A [`Target`] is opened, created and written beforehand, under rules that protect foreign data.
//! [`run`] then starts the workers at one agreed moment and merges what they recorded.

mod backend;
mod buffers;
mod clock;
mod cpu;
mod crew;
mod job;
mod merge;
mod open_loop;
mod parking;
mod recorder;
mod run;
mod slots;
mod target;
mod verify;
mod worker;

pub use clock::monotonic_ns;
pub use run::{Control, EngineError, run, verify};
pub use target::{Target, TargetError, TargetRequest};
