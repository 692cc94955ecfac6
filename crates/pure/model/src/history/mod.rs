//! What became of each measure from run to run: series of comparable runs, and where they changed.
//!
//! ```text
//! run folder -> measures of the run -> groups of comparable runs -> series -> changes long past   change_points
//!                                                                          -> the newest runs     newest
//!                                                                          -> spread between runs series
//! ```

mod change_points;
mod measures;
mod newest;
mod run;
mod series;

pub use change_points::{ChangePoint, MOST_VALUES, change_points};
pub use measures::{Measure, measures};
pub use newest::Newest;
pub use run::{Copied, HistoryRun, Split, run_load};
pub use series::{
    Changed, FALSE_ALARMS, FALSE_ALARMS_OF_NEWEST, FEWEST_RUNS, History, HistoryGroup, LEAST_RUNS, Series,
    between_runs, history,
};
