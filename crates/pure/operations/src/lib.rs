//! Which management operation comes next and when, and which VM may receive it.
//!
//! A [`Mix`] gives operations their shares, such as those of [Platform 2014], Table 2. [`Vms`] knows the state of every VM
//! of a run, and so which operations are legal on it. A [`Chooser`] draws from the mix what is legal at the moment; what is
//! not is owed and comes as soon as it is. [`Arrivals`] says when each is meant to start.
//! [`steady_window`] and [`judged`] judge a piece of them.

mod arrivals;
mod chooser;
mod judge;
mod mix;
mod throughput;
mod vms;

pub use arrivals::Arrivals;
pub use chooser::Chooser;
pub use judge::judged;
pub use mix::{Mix, MixError};
pub use throughput::{Span, steady_window};
pub use vms::{Choice, Rules, Settled, VmState, Vms};
