//! A run in a history.

use std::collections::BTreeMap;

use serde::Serialize;

use super::measures::Measure;
use crate::host_load::LoadSample;

/// A run in a history.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistoryRun {
    /// Its folder.
    pub folder: String,
    /// When it began, in seconds since 1970.
    pub started_unix_s: u64,
    /// Which study, such as `native-vs-vm`.
    pub study: String,
    /// What must be alike for runs to be compared, by name: what it set out to measure, and on what.
    #[serde(skip)]
    pub parts: BTreeMap<String, String>,
    /// The host, in words.
    pub host: String,
    /// What else may explain a change, by name: virtbench's version, kernels, QEMU's version, devices.
    pub versions: BTreeMap<String, String>,
    /// What a user called it.
    pub tags: Vec<String>,
    /// What else the hosts were busy with; nothing where nobody looked.
    pub load: Option<LoadSample>,
    /// The same for copies of a run, and for nothing else.
    #[serde(skip)]
    pub identity: String,
    /// Its numbers.
    #[serde(skip)]
    pub measures: Vec<Measure>,
}
