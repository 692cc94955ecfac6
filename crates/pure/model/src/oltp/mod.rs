//! A database under TPC-C's transactions on several sides: what to measure next, and what it comes to.

mod analysis;
mod causes;
mod summary;
#[cfg(test)]
use virtbench_samples::oltp as synthetic;
mod users_search;

pub use analysis::{OltpAnalysis, OltpCurvePoint, OltpSideAnalysis, Spread, analyse_oltp, users_point};
pub use causes::{Causes, MarkedSeconds, causes, marks};
pub use summary::summarise_oltp;
pub use users_search::{SATURATED_IDLE_PERCENT, UsersEnd, UsersFound, UsersPoint, UsersSearch};
