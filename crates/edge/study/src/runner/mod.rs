//! What runs a study: it owns the run folder, what is left to do, progress, failures and the end. A study says only what it measures.

#[cfg(test)]
pub(crate) mod begun_run;
pub(crate) mod event;
pub(crate) mod prerequisites;
pub(crate) mod progress;
pub(crate) mod run;
pub(crate) mod sides;
pub(crate) mod steps;
