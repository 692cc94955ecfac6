//! From a specification to something that can be run.

use memmap2::MmapMut;
use virtbench_workload::{Workload, WorkloadSpec};

use crate::ballast;
use crate::caches;
use crate::command::Program;
use crate::cpu::Cpu;
use crate::file_workload::Files;
use crate::memory::Memory;
use crate::runner::{RunError, Runner, Storage};
use crate::system::System;

/// A workload with everything it needs.
pub struct Prepared {
    pub(crate) spec: WorkloadSpec,
    pub(crate) runner: Box<dyn Runner>,
    pub(crate) notes: Vec<String>,
    /// Held for its weight alone.
    _ballast: Option<MmapMut>,
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared").field("spec", &self.spec).finish_non_exhaustive()
    }
}

/// Allocates memory and makes the data that `spec` needs. `place` is for workloads that need storage.
///
/// # Errors
/// The workload makes no sense or does not fit this machine, or the kernel refuses memory.
pub fn prepare(spec: &WorkloadSpec, place: Option<&Storage>) -> Result<Prepared, RunError> {
    prepare_until(spec, place, &|| false)
}

/// As [`prepare`], until `is_over` says that nobody waits for it any more; what was made is removed then.
///
/// # Errors
/// As [`prepare`], or `is_over` said so.
pub fn prepare_until(
    spec: &WorkloadSpec,
    place: Option<&Storage>,
    is_over: &dyn Fn() -> bool,
) -> Result<Prepared, RunError> {
    spec.validate()?;
    if spec.drop_caches && spec.workload.needs_storage() {
        caches::check()?;
    }
    let mut notes = Vec::new();
    // First, so that what sizes itself by the memory that is free sees what is left.
    let ballast = ballast::take(spec.ballast_bytes, &mut notes)?;
    let runner: Box<dyn Runner> = match &spec.workload {
        Workload::Memory(memory) => Box::new(Memory::new(memory, &mut notes)?),
        Workload::Cpu(cpu) => Box::new(Cpu::new(cpu)?),
        Workload::Files(files) => Box::new(Files::new(files, spec.seed, place, is_over, &mut notes)?),
        Workload::System(system) => Box::new(System::new(system, place, &mut notes)?),
        Workload::Command(command) => Box::new(Program::new(command, place, &mut notes)?),
    };
    Ok(Prepared { spec: spec.clone(), runner, notes, _ballast: ballast })
}
