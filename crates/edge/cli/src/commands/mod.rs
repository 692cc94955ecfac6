//! One file for each command.

pub mod completions;
pub mod doctor;
pub mod load;
pub mod man;
pub mod report;
pub mod study;
