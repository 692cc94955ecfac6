//! One file for each command.

pub mod analyse;
pub mod appliance;
pub mod compare;
pub mod completions;
pub mod costs;
pub mod doctor;
mod driver;
mod environments;
pub mod fence;
pub mod grid;
pub mod history;
pub mod load;
pub mod man;
pub mod oltp;
pub mod predict;
pub mod profile;
pub mod regression;
pub mod report;
pub mod run;
pub mod saturate;
pub mod study;
pub mod surface;
pub mod users;
pub mod workload;
