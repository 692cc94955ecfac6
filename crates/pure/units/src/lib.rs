//! The vocabulary every other crate shares: sizes, durations, seeded random numbers, latencies, response times.
//!
//! Nothing here touches the operating system.

mod bytes;
mod duration;
mod latency;
mod random;
mod responses;
mod scaled;

pub use bytes::{ByteSizeError, format_bytes, parse_bytes};
pub use duration::{DurationError, format_duration_ns, parse_duration_ns, parse_positive_duration_ns};
pub use latency::{
    CodecError, LATENCY_CEILING_NS, LatencyRecorder, LatencySummary, decode_histogram, encode_histogram,
};
pub use random::{Random, SeedSequence};
pub use responses::{Counted, Ending, Responses, Window};
pub use scaled::{format_about_bytes, format_latency_ns, rounded, with_commas};
