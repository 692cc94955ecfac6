//! Which management operation comes next and when, and which VM may receive it.
//!
//! A [`Mix`] gives operations their shares, such as those of [Platform 2014], Table 2. [`Vms`] knows the state of every VM
//! of a run, and so which operations are legal on it. A [`Chooser`] draws from the mix what is legal at the moment; what is
//! not is owed and comes as soon as it is. [`Arrivals`] says when each is meant to start.
//! [`steady_window`] and [`judged`] judge a piece of them.

mod chooser;
mod mix;
mod throughput;
mod vms;

pub use chooser::{Arrivals, Chooser};
pub use mix::{Mix, MixError};
pub use throughput::{Span, judged, steady_window};
pub use vms::{Choice, Rules, Settled, VmState, Vms};
