//! Making a ring, and saying clearly what the kernel refused.

use std::io;

use io_uring::IoUring;
use virtbench_workload::UringOptions;

use crate::error::EngineError;

/// How long the kernel's submission thread keeps polling when nothing comes, in milliseconds.
const SUBMISSION_IDLE_MS: u32 = 1_000;

/// The cheapest kind of ring the kernel offers: completions are handled when the worker asks for
/// them (Linux 6.1), else without interrupting it (5.19), else plainly.
pub(super) fn build_ring(entries: u32, options: UringOptions) -> Result<IoUring, EngineError> {
    let UringOptions { submission_polling, completion_polling } = options;
    let mut plain = IoUring::builder();
    if completion_polling {
        plain.setup_iopoll();
    }
    if submission_polling {
        // Its completions come from the kernel's thread; the cheaper kinds are for rings without one.
        return plain.setup_sqpoll(SUBMISSION_IDLE_MS).build(entries).map_err(|source| {
            EngineError::Resource {
            what: "the kernel refuses --sqpoll (a thread of its own that polls for submissions): leave it out"
                .to_owned(),
            source,
        }
        });
    }
    let mut deferred = plain.clone();
    deferred.setup_single_issuer().setup_defer_taskrun();
    let mut cooperative = plain.clone();
    cooperative.setup_coop_taskrun();
    deferred
        .build(entries)
        .or_else(|_| cooperative.build(entries))
        .or_else(|_| plain.build(entries))
        .map_err(|source| EngineError::Resource {
            what: "io_uring (if the kernel forbids it, see sysctl kernel.io_uring_disabled, or use --engine psync)"
                .to_owned(),
            source,
        })
}

/// The error of a device that cannot be polled.
pub(super) fn polling_refused(source: io::Error) -> EngineError {
    EngineError::Resource {
        what: "the target refuses --iopoll (polling its device for completions): an NVMe device can be \
               polled when its driver has poll queues (nvme.poll_queues); leave --iopoll out"
            .to_owned(),
        source,
    }
}
