//! Predictable storage for virtual disks that share devices ([VirtualFence 2013]).
//!
//! Sans-I/O: a [`Fence`] is told what happened and when, and answers with [`Effect`]s to carry out. It reads no clock,
//! opens no device and never sees data: payloads are opaque ids. The same core runs in the simulator and in the daemon.
//!
//! ```text
//!  submit(now, request) ->  translate  ->  Scheduler  ->  Effect::Dispatch
//!  Effect::Complete    <-   (direct,       (slots or      |
//!                            or cache)      a peer)      on_device(now, completion)
//! ```
//!
//! The driver's loop: call [`Fence::submit`], [`Fence::on_device`] or [`Fence::on_timer`]; drain [`Fence::poll_effect`],
//! carrying effects out in order; sleep until [`Fence::next_deadline`] or the next event.

pub mod cache;
pub mod catalogue;
mod config;
mod config_error;
mod fence;
pub mod paced;
pub mod peers;
mod ports;
pub mod predict;
mod scheduler;
mod schedulers;
mod slab;
pub mod slots;
mod types;

pub use config::{Backing, Config, DeviceConfig, DiskConfig};
pub use config_error::ConfigError;
pub use fence::{ChangeError, Fence, StartError};
pub use scheduler::{DiskParameters, Parameters, QueuedIo, Scheduler};
pub use schedulers::SchedulerConfig;
pub use types::{
    Account, BufferId, Completion, Data, Device, DeviceIo, DeviceOp, DiskId, Effect, IoError, IoId, Op,
    PacedAccount, PredictionErrors, Request, RequestId, SlotAccount, Tally, Time, TokenAccount, UnknownIo,
};
