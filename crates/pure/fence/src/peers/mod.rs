//! Other ways to share a device, behind the same seam, to compare with.

mod cfq;
mod config;
mod depth;
mod elevator;
mod fair_queue;
mod fifo;
mod mclock;
mod token_bucket;

pub use cfq::Cfq;
pub use config::{Cap, CfqConfig, FairConfig, Shares};
pub use elevator::Elevator;
pub(crate) use elevator::ElevatorPolicy;
pub use fair_queue::FairQueue;
pub use fifo::Fifo;
pub(crate) use fifo::FifoPolicy;
pub use mclock::MClock;
pub use token_bucket::TokenBucket;

#[cfg(test)]
#[path = "cfq_tests.rs"]
mod cfq_tests;
#[cfg(test)]
#[path = "peers_tests.rs"]
mod tests;
