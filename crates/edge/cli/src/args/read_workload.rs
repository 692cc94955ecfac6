//! A classic workload as it is written on the command line.

use virtbench_workload::WorkloadSpec;

use crate::say::tell;

/// Reads `NAME[:KEY=VALUE,...]`, `MODEL.f[:KEY=VALUE,...]` or `dbench[:KEY=VALUE,...]`.
pub fn read_workload(text: &str) -> Result<WorkloadSpec, String> {
    virtbench_study::read_workload(text, &mut |remark| tell!("{remark}"))
}
