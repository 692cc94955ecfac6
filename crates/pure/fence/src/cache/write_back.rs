//! What is on its way to the slow device.

use super::trouble::Trouble;

/// What is on its way to the slow device.
#[derive(Debug, Default)]
pub(super) struct WriteBack {
    pub(super) under_way: u32,
    pub(super) written: Vec<u32>,
    pub(super) syncing: Vec<u32>,
    /// Rises with every sync of the slow device that fails, of any partition: what was written before it may not have been kept.
    pub(super) epoch: u32,
    /// That of the sync under way when it began.
    pub(super) syncing_epoch: u32,
    /// The slow device takes nothing.
    pub(super) trouble: Option<Trouble>,
}
