//! Applications natively and in a VM: what work costs on both sides, profiles, predictions, and whether they held.

mod basis;
mod costs;
mod error;
mod machine;
mod metric;
mod model_load;
mod platforms;
mod processors;
mod run;
mod storage;
mod storages;
mod study;
mod trials;
mod verify;

pub use costs::{MAX_COSTS_BYTES, measure_costs, parse_costs};
pub use error::ApplicationsError;
pub use machine::{NativeSide, VmOptions};
pub use metric::Metric;
pub(crate) use metric::{last_number, number_pattern};
pub use model_load::run_model_load;
pub use platforms::{platform_costs, platform_names};
pub use run::{predict_again, untried};
pub use storage::Storage;
pub use study::{Cases, CasesError, Predictions, several_storages, storages_of_run};
pub use trials::{CommandProfile, profile_command, profiler_failure};
pub use verify::{Verified, VerifyInputs, own_workload, verify};
