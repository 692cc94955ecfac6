//! Choosing the backend for a target, in one place.

use virtbench_workload::{EngineKind, LoadSpec};

use super::{Backend, Null, Psync, Uring};
use crate::buffers::Buffers;
use crate::run::EngineError;
use crate::target::Target;

/// Something that is done with a backend, whichever it is. Generic rather than dynamic: the loop
/// around a backend takes less time than a call through a table would add to it.
pub(crate) trait Task {
    /// What comes of it.
    type Output;

    /// Does it.
    fn perform<B: Backend>(self, backend: &mut B) -> Self::Output;
}

/// A backend of any kind, for the thread that opened it.
pub(crate) enum Opened {
    Uring(Box<Uring>),
    Psync(Psync),
    Null(Null),
}

impl Opened {
    /// The backend for `slots` operations on `target`, as the load asks for it, with a note where it
    /// is not all that it could be. `buffers` must outlive it.
    pub(crate) fn open(
        target: &Target,
        spec: &LoadSpec,
        buffers: &mut Buffers,
        slots: u32,
    ) -> Result<(Self, Option<String>), EngineError> {
        let Some(file) = target.file() else { return Ok((Self::Null(Null::default()), None)) };
        if spec.engine == EngineKind::Psync {
            return Ok((Self::Psync(Psync::new(file)), None));
        }
        let vectors: Vec<libc::iovec> = (0..slots as usize)
            .map(|slot| {
                let memory = buffers.slot(slot);
                libc::iovec { iov_base: memory.as_mut_ptr().cast(), iov_len: memory.len() }
            })
            .collect();
        let (ring, note) = Uring::new(file, slots, &vectors, spec.uring, target.facts().alignment_bytes)?;
        Ok((Self::Uring(Box::new(ring)), note))
    }

    /// Does a task with it.
    pub(crate) fn perform<T: Task>(self, task: T) -> T::Output {
        match self {
            Self::Uring(mut ring) => task.perform(&mut *ring),
            Self::Psync(mut psync) => task.perform(&mut psync),
            Self::Null(mut null) => task.perform(&mut null),
        }
    }
}
