//! Studies of a grid of points: the same loads in several environments, point by point in turn.

mod adapters;
pub(crate) mod definition;
mod native_vs_vm;
mod options;
pub(crate) mod points;

pub use adapters::{Adapters, USUAL_ADAPTERS};
pub use native_vs_vm::{MachineAndVm, NativeVsVm};
pub use options::{Before, Compare, GridOptions};
