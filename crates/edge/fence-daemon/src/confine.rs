//! What a daemon may ask of the kernel once it serves: nothing that opens, executes or connects to anything.
//!
//! A seccomp filter lets through the system calls of serving; others fail with EPERM. What goes through the ring passes
//! no filter, which is why the ring is made for a few operations only (`ring`).

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};
use thiserror::Error;

/// Why the filter could not be put in place.
#[derive(Debug, Error)]
pub enum ConfineError {
    /// It cannot be made for this processor.
    #[error("the system call filter: {0}: limits.confine = false serves without it")]
    Filter(#[from] seccompiler::BackendError),
    /// The kernel does not take it.
    #[error("the system call filter: {0}: limits.confine = false serves without it")]
    Apply(#[from] seccompiler::Error),
}

/// Devices, sockets, shared memory, waiting, figures, and ending. Memory may be mapped, never made executable anew by
/// anything that can be reached from here: there is no file to map.
const ALLOWED: &[i64] = &[
    libc::SYS_io_uring_enter,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    // Of a disk that grows: its new room is zeroed.
    libc::SYS_fallocate,
    libc::SYS_lseek,
    libc::SYS_close,
    libc::SYS_fcntl,
    libc::SYS_dup,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lstat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    libc::SYS_readlinkat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    libc::SYS_unlinkat,
    libc::SYS_accept4,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_setsockopt,
    libc::SYS_getsockopt,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_shutdown,
    libc::SYS_eventfd2,
    libc::SYS_memfd_create,
    libc::SYS_ftruncate,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_futex,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_getrandom,
    libc::SYS_sched_yield,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    // Of threads that are about to begin when the filter comes.
    libc::SYS_rseq,
    libc::SYS_set_robust_list,
    libc::SYS_sched_getaffinity,
    libc::SYS_restart_syscall,
    libc::SYS_tgkill,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Confines every thread of this process for good.
///
/// # Errors
/// The kernel or the processor does not know filters.
pub fn confine() -> Result<(), ConfineError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = ALLOWED.iter().map(|&call| (call, Vec::new())).collect();
    // Of all the controls there are: whether a socket waits.
    let (width, equal) = (SeccompCmpArgLen::Dword, SeccompCmpOp::Eq);
    let nonblocking = SeccompCondition::new(1, width, equal, libc::FIONBIO)?;
    rules.insert(libc::SYS_ioctl, vec![SeccompRule::new(vec![nonblocking])?]);
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let filter = SeccompFilter::new(rules, refuse, SeccompAction::Allow, arch)?;
    let program = BpfProgram::try_from(filter)?;
    seccompiler::apply_filter_all_threads(&program)?;
    Ok(())
}
