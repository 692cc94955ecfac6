//! The studies, a folder each: its plan is in `virtbench-record`, what it concludes in `virtbench-model`.

mod network;

pub use network::{NetworkStudy, has_vhost};
