//! What is on its way to the slow device.

/// What is on its way to the slow device.
#[derive(Debug, Default)]
pub(super) struct WriteBack {
    pub(super) under_way: u32,
    pub(super) written: Vec<u32>,
    pub(super) syncing: Vec<u32>,
}
