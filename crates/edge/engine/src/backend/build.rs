//! Which backend a worker gets.

use std::io;

use virtbench_workload::{EngineKind, LoadSpec, Op};

use super::{Backend, Completion, Null, Psync, Uring};
use crate::buffers::Buffers;
use crate::fault::Faulty;
use crate::target::{Source, Target};

/// Any of the backends. A worker is compiled for each: the null target is too fast for indirect calls.
pub(crate) enum AnyBackend {
    Null(Null),
    Psync(Psync),
    Uring(Box<Uring>),
    #[cfg(feature = "network-targets")]
    Nbd(super::nbd::Nbd),
    #[cfg(feature = "network-targets")]
    VhostUser(super::vhost_user::VhostUser),
    Faulty(Faulty<Box<AnyBackend>>),
}

/// A backend that could not be had: what was tried, and what came of it.
pub(crate) struct Refused(pub &'static str, pub io::Error);

/// The backend of worker number `index` on this target, made on the worker's own thread. With it comes
/// a note where something could not be had in full.
pub(crate) fn build(
    target: &Target,
    spec: &LoadSpec,
    index: u32,
    buffers: &mut Buffers,
) -> Result<(AnyBackend, Option<String>), Refused> {
    let (backend, note) = match target.source() {
        Source::Null => (AnyBackend::Null(Null::default()), None),
        Source::File(file) if spec.engine == EngineKind::Psync => {
            (AnyBackend::Psync(Psync::new(file.clone())), None)
        }
        Source::File(file) => {
            let vectors = vectors(buffers, spec.outstanding);
            let (ring, note) = Uring::new(file.clone(), spec.outstanding, &vectors).map_err(|error| {
                Refused("io_uring (if the kernel forbids it, see sysctl kernel.io_uring_disabled, or use --engine psync)", error)
            })?;
            (AnyBackend::Uring(Box::new(ring)), note)
        }
        #[cfg(feature = "network-targets")]
        Source::Nbd(source) => {
            let nbd = super::nbd::Nbd::new(source, spec.outstanding)
                .map_err(|error| Refused("a connection to the NBD server", io::Error::other(error)))?;
            (AnyBackend::Nbd(nbd), None)
        }
        #[cfg(feature = "network-targets")]
        Source::VhostUser(source) => {
            let (queue, note) = super::vhost_user::VhostUser::new(source, spec, buffers)
                .map_err(|error| Refused("a queue of the vhost-user server", error))?;
            (AnyBackend::VhostUser(queue), note)
        }
    };
    let Some(faults) = target.faults() else { return Ok((backend, note)) };
    let seed = spec.seed.rotate_left(32) ^ u64::from(index);
    let faulty = Faulty::new(Box::new(backend), faults.clone(), spec.outstanding, seed);
    Ok((AnyBackend::Faulty(faulty), note))
}

/// Does the same with whichever it is.
macro_rules! each {
    ($any:expr, $backend:ident => $do:expr) => {
        match $any {
            AnyBackend::Null($backend) => $do,
            AnyBackend::Psync($backend) => $do,
            AnyBackend::Uring($backend) => $do,
            #[cfg(feature = "network-targets")]
            AnyBackend::Nbd($backend) => $do,
            #[cfg(feature = "network-targets")]
            AnyBackend::VhostUser($backend) => $do,
            AnyBackend::Faulty($backend) => $do,
        }
    };
}

/// For what need not be fast: the layer of faults.
impl Backend for AnyBackend {
    fn queue(&mut self, slot: u32, op: Op, buffer: *mut u8) {
        each!(self, backend => backend.queue(slot, op, buffer));
    }

    fn drive(&mut self, until_ns: Option<u64>, completions: &mut Vec<Completion>) -> io::Result<()> {
        each!(self, backend => backend.drive(until_ns, completions))
    }
}

/// The buffers as io_uring wants to know them.
fn vectors(buffers: &mut Buffers, slots: u32) -> Vec<libc::iovec> {
    (0..slots as usize)
        .map(|slot| {
            let memory = buffers.slot(slot);
            libc::iovec { iov_base: memory.as_mut_ptr().cast(), iov_len: memory.len() }
        })
        .collect()
}
