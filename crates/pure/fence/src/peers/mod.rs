//! Other ways to share a device, behind the same seam, to compare with.

mod cfq;
mod depth;
mod elevator;
mod fair_queue;
mod fifo;
mod mclock;
mod token_bucket;

pub use cfq::{Cfq, CfqConfig};
pub use elevator::Elevator;
pub use fair_queue::{FairConfig, FairQueue};
pub use fifo::Fifo;
pub use mclock::{MClock, Shares};
pub use token_bucket::{Cap, TokenBucket};

#[cfg(test)]
#[path = "cfq_tests.rs"]
mod cfq_tests;
#[cfg(test)]
#[path = "peers_tests.rs"]
mod tests;
