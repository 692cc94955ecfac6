//! How a transaction ended.

/// A transaction that ended as it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransactionDone {
    /// Whether it was rolled back because of an unused item.
    pub rolled_back: bool,
    /// Orders delivered.
    pub orders: u32,
    /// Districts without an order to deliver.
    pub skipped: u32,
}
