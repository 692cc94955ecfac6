//! Choosing the backend for a target, in one place.

#[cfg(feature = "network-targets")]
use std::io;

use virtbench_workload::{EngineKind, FaultSpec, LoadSpec};

use super::{Backend, Blocking, Null, Queued};
#[cfg(feature = "network-targets")]
use super::{nbd::Nbd, vhost_user::VhostUser};
use crate::buffers::Buffers;
use crate::error::EngineError;
#[cfg(feature = "network-targets")]
use crate::error::resource;
use crate::fault::Faulty;
use crate::target::{Source, Target};

/// Something that is done with a backend, whichever it is. Generic rather than dynamic: the loop
/// around a backend takes less time than a call through a table would add to it.
pub(crate) trait Task {
    /// What comes of it.
    type Output;

    /// Does it.
    fn perform<B: Backend>(self, backend: &mut B) -> Self::Output;
}

/// A backend of any kind, for the thread that opened it.
pub(crate) struct Opened {
    kind: Kind,
    faults: Option<Faults>,
}

enum Kind {
    Queued(Box<Queued>),
    Blocking(Blocking),
    Null(Null),
    #[cfg(feature = "network-targets")]
    Nbd(Nbd),
    #[cfg(feature = "network-targets")]
    VhostUser(VhostUser),
}

/// What a layer of faults is made from.
struct Faults {
    spec: FaultSpec,
    slots: u32,
    seed: u64,
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
        let (kind, note) = match target.source() {
            Source::Null => (Kind::Null(Null::default()), None),
            Source::File(file) if spec.engine == EngineKind::Psync => {
                (Kind::Blocking(Blocking::new(file, target.facts(), spec)?), None)
            }
            Source::File(file) => {
                let (queued, note) = Queued::new(file, target.facts(), slots, buffers, spec)?;
                (Kind::Queued(Box::new(queued)), note)
            }
            #[cfg(feature = "network-targets")]
            Source::Nbd(source) => {
                let connection = Nbd::new(source, slots)
                    .map_err(|error| resource("a connection to the NBD server", io::Error::other(error)))?;
                (Kind::Nbd(connection), None)
            }
            #[cfg(feature = "network-targets")]
            Source::VhostUser(source) => {
                let (queue, note) = VhostUser::new(source, spec.workers, slots, buffers)
                    .map_err(|error| resource("a queue of the vhost-user server", error))?;
                (Kind::VhostUser(queue), note)
            }
        };
        Ok((Self { kind, faults: None }, note))
    }

    /// The same with faults, drawn from `seed`, before it.
    pub(crate) fn with_faults(self, faults: Option<&FaultSpec>, slots: u32, seed: u64) -> Self {
        Self { faults: faults.map(|spec| Faults { spec: spec.clone(), slots, seed }), ..self }
    }

    /// Does a task with it.
    pub(crate) fn perform<T: Task>(self, task: T) -> T::Output {
        match self.faults {
            None => self.kind.perform(task),
            Some(faults) => self.kind.perform(Behind { faults, task }),
        }
    }
}

impl Kind {
    fn perform<T: Task>(self, task: T) -> T::Output {
        match self {
            Self::Queued(mut queued) => task.perform(&mut *queued),
            Self::Blocking(mut blocking) => task.perform(&mut blocking),
            Self::Null(mut null) => task.perform(&mut null),
            #[cfg(feature = "network-targets")]
            Self::Nbd(mut connection) => task.perform(&mut connection),
            #[cfg(feature = "network-targets")]
            Self::VhostUser(mut queue) => task.perform(&mut queue),
        }
    }
}

/// A task that is done behind a layer of faults.
struct Behind<T> {
    faults: Faults,
    task: T,
}

impl<T: Task> Task for Behind<T> {
    type Output = T::Output;

    fn perform<B: Backend>(self, backend: &mut B) -> T::Output {
        let Faults { spec, slots, seed } = self.faults;
        self.task.perform(&mut Faulty::new(backend, spec, slots, seed))
    }
}
