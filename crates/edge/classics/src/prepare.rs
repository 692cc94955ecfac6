//! From a specification to something that can be run.

use virtbench_workload::{Workload, WorkloadSpec};

use crate::body::{Body, ClassicError, Place};
use crate::memory::Memory;

/// A workload with everything it needs.
pub struct Prepared {
    pub(crate) spec: WorkloadSpec,
    pub(crate) body: Box<dyn Body>,
    pub(crate) notes: Vec<String>,
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
pub fn prepare(spec: &WorkloadSpec, _place: Option<&Place>) -> Result<Prepared, ClassicError> {
    spec.validate()?;
    let mut notes = Vec::new();
    let body: Box<dyn Body> = match &spec.workload {
        Workload::Memory(memory) => Box::new(Memory::new(memory, &mut notes)?),
        Workload::Cpu(_) => return Err(ClassicError::Misfit("not yet there".into())),
    };
    Ok(Prepared { spec: spec.clone(), body, notes })
}
