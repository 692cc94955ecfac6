//! What runs a study: it owns the run folder, what is left to do, progress, failures and the end. A study says only what it measures.

mod sides;

pub(crate) use sides::{SideFailure, SidesStudy, estimate_sides, run_sides};
