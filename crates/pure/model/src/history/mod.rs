//! What became of each measure from run to run: series of comparable runs, and where they changed.
//!
//! ```text
//! run folder -> measures of the run -> groups of comparable runs -> series -> changes long past   change_points
//!                                                                          -> the newest runs     newest
//!                                                                          -> spread between runs spread
//! ```

mod change_points;
mod groups;
mod load;
mod measures;
mod newest;
mod run;
mod series;
mod spread;

pub use change_points::{ChangePoint, MOST_VALUES, change_points};
pub use groups::{Copied, Split};
pub use load::run_load;
pub use measures::{Measure, measures};
pub use newest::Newest;
pub use run::HistoryRun;
pub use series::{
    Changed, FALSE_ALARMS, FALSE_ALARMS_OF_NEWEST, FEWEST_RUNS, History, HistoryGroup, Series, history,
};
pub use spread::{LEAST_RUNS, between_runs};
