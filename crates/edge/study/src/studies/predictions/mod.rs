//! Applications natively and in a VM: what work costs on both sides, profiles, predictions, and whether they held.

mod cases;
mod costs;
mod disk_from;
mod error;
mod kept;
mod machine;
mod metric;
mod middle;
mod model_load;
mod native;
mod native_folder;
mod options;
mod profile;
mod references;
mod run;
mod study;
mod trials;
mod verify;

pub use cases::{Cases, CasesError};
pub use costs::{MAX_COSTS_BYTES, measure_costs, parse_costs};
pub use error::ApplicationsError;
pub use metric::Metric;
pub(crate) use metric::{last_number, number_pattern};
pub use model_load::run_model_load;
pub use native_folder::NativeSide;
pub use options::VmOptions;
pub use profile::{CommandProfile, profile_command, profiler_failure};
pub use run::{predict_again, untried};
pub use study::Predictions;
pub use verify::{Verified, VerifyInputs, own_workload, verify};
