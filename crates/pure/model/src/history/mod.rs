//! What became of each measure from run to run: series of comparable runs, and where they changed.

mod change_points;
mod measures;
mod series;

pub use change_points::{ChangePoint, MOST_VALUES, change_points};
pub use measures::{Measure, measures};
pub use series::{Changed, FALSE_ALARMS, History, HistoryGroup, HistoryRun, Series, history};
