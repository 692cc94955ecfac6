//! The studies, a folder each. A study's plan is in `virtbench-record`, what it concludes in `virtbench-model`, and its page in
//! `virtbench-report`.

#[cfg(feature = "full")]
pub(crate) mod application;
pub(crate) mod colocation;
#[cfg(feature = "full")]
pub(crate) mod desktops;
pub(crate) mod grid;
pub(crate) mod network;
#[cfg(feature = "full")]
pub(crate) mod oltp;
#[cfg(feature = "full")]
pub(crate) mod operations;
pub(crate) mod platform;
#[cfg(feature = "full")]
pub(crate) mod predictions;
#[cfg(feature = "full")]
pub(crate) mod tiles;
