//! What is counted.

/// A kind of work that the kernel is asked for, and the tracepoints that tell of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountKind {
    /// Its name in records.
    pub name: &'static str,
    /// Tracepoints, as `group/event`; one that a kernel lacks is passed over.
    pub events: &'static [&'static str],
}

const fn kind(name: &'static str, events: &'static [&'static str]) -> CountKind {
    CountKind { name, events }
}

/// Everything that is counted. System calls are put together where a kernel does much the same for them.
pub const COUNT_KINDS: [CountKind; 24] = [
    kind("call", &["raw_syscalls/sys_enter"]),
    kind("read", &["read", "pread64", "readv", "preadv", "recvfrom", "recvmsg"]),
    kind("write", &["write", "pwrite64", "writev", "pwritev", "sendto", "sendmsg"]),
    kind("open", &["open", "openat", "openat2", "creat"]),
    kind(
        "stat",
        &[
            "newstat",
            "newlstat",
            "newfstatat",
            "statx",
            "access",
            "faccessat",
            "faccessat2",
            "readlink",
            "readlinkat",
            "statfs",
        ],
    ),
    kind("list", &["getdents64", "getdents"]),
    kind("unlink", &["unlink", "unlinkat", "rmdir"]),
    kind("rename", &["rename", "renameat", "renameat2"]),
    kind("folder", &["mkdir", "mkdirat"]),
    kind("truncate", &["truncate", "ftruncate", "fallocate"]),
    kind("flush", &["fsync", "fdatasync", "msync", "sync_file_range", "sync", "syncfs"]),
    kind(
        "xattr",
        &["getxattr", "fgetxattr", "setxattr", "fsetxattr", "listxattr", "flistxattr", "removexattr"],
    ),
    kind("poll", &["poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2"]),
    kind("futex", &["futex"]),
    kind("map", &["mmap", "munmap", "mprotect", "mremap", "madvise", "brk"]),
    kind("fork", &["sched/sched_process_fork"]),
    kind("exec", &["sched/sched_process_exec"]),
    kind("switch", &["sched/sched_switch"]),
    kind("wakeup", &["sched/sched_waking"]),
    kind("fault", &["exceptions/page_fault_user"]),
    kind("page", &["kmem/mm_page_alloc"]),
    kind("cached", &["filemap/mm_filemap_add_to_page_cache"]),
    kind("commit", &["jbd2/jbd2_start_commit"]),
    kind("disk", &["block/block_rq_issue"]),
];

/// The file of a tracepoint under `events`: system calls go by their name alone.
pub(crate) fn file_of(event: &str) -> String {
    if event.contains('/') { event.to_owned() } else { format!("syscalls/sys_enter_{event}") }
}
