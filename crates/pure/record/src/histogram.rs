//! A latency histogram of a record, taken out of it.

/// A histogram as it is kept in the HdrHistogram log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenHistogram {
    /// Where it belongs.
    pub tag: String,
    /// When it began, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// How long it was, in nanoseconds.
    pub length_ns: u64,
    /// It itself: compressed V2 in base64.
    pub histogram: String,
}
