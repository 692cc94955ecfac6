//! What a kernel's time goes to, by the functions that it was sampled in.
//!
//! Kernels of different versions and builds have other functions for the same: inlined, renamed, split. So functions are put
//! together by the words in their names, coarsely enough that most stay together from one version to the next.

use virtbench_record::Footprint;

/// Kinds of work. A function belongs to the first whose words its name has one of, else to the last.
const KINDS: [(&str, &str); KERNEL_WORKS] = [
    (
        "copying",
        "copy_user copy_to copy_from copy_folio copy_page copy_mc rep_movs memcpy memmove \
         iov_iter fault_in copyin copyout",
    ),
    ("clearing", "clear_page memset clear_user"),
    ("checksums", "crc32 csum crypto shash"),
    ("devices", "iowrite vp_ virtqueue virtio vring"),
    ("interrupts", "spin_unlock_irq softirq irq apic write_msr rcu_ smp_call tick timer"),
    (
        "switching",
        "sched finish_task task enqueue dequeue pick_next wake wait futex mutex rwsem switch \
         nanosleep cfs load_avg queued_ spin_on_owner osq",
    ),
    (
        "faults",
        "fault pte pmd pud p4d pgd unmap vma mmap mm_ uptodate filemap_map rmap anon tlb zap mas_ \
         mt_",
    ),
    (
        "allocation",
        "kmem slab alloc_pages alloc_frozen alloc_folio free_pages free_unref free_frozen \
         get_page_from memcg charge lruvec lru_ folio_add folio_batch folio_lock folio_unlock \
         release_pages folios_put rmqueue kfree kmalloc obj_cgroup percpu",
    ),
    (
        "page cache",
        "filemap xas xa_ folio find_get radix mapping truncate writeback dirty balance mpage \
         readahead page",
    ),
    (
        "names",
        "d_lookup link_path path_ walk dentry d_ getname permission strncpy lookup dput dget mnt \
         filldir readdir security selinux apparmor cap_ open fd fput fget cp_new stat getattr \
         file",
    ),
    ("journal", "jbd2 journal xlog xfs_log"),
    ("file system", "ext4 xfs btrfs dquot block_ buffer es_ bh inode iget iput"),
    ("blocks", "blk bio submit request dd_ deadline sbitmap scsi loop disk elv"),
    (
        "calls",
        "syscall entry exit_to x64_sys do_sys ksys vfs_ current_time ktime rw_verify thunk \
         retbleed cond_resched",
    ),
    ("other", ""),
];
/// How many kinds there are.
pub(super) const KERNEL_WORKS: usize = 15;

/// Shares of the kernel's time by kind of work; `None` where nobody sampled it.
pub(super) fn shares(footprint: &Footprint) -> Option<[f64; KERNEL_WORKS]> {
    let mut ns = [0.0; KERNEL_WORKS];
    for (function, of) in &footprint.functions {
        ns[kind_of(function)] += *of as f64;
    }
    let all: f64 = ns.iter().sum();
    (all > 0.0).then(|| ns.map(|ns| ns / all))
}

fn kind_of(function: &str) -> usize {
    let has = |words: &str| words.split_ascii_whitespace().any(|word| function.contains(word));
    KINDS.iter().position(|(_, words)| has(words)).unwrap_or(KERNEL_WORKS - 1)
}

/// What the kernel's time goes to, kind and share of 1, the greatest first; nothing where nobody sampled it.
#[must_use]
pub fn kernel_work(footprint: &Footprint) -> Vec<(&'static str, f64)> {
    let Some(shares) = shares(footprint) else { return Vec::new() };
    let mut named: Vec<_> = KINDS.iter().zip(shares).map(|((name, _), share)| (*name, share)).collect();
    named.retain(|(_, share)| *share > 0.0);
    named.sort_by(|a, b| b.1.total_cmp(&a.1));
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_either_kernel_fall_into_the_same_kind() {
        for (here, there, kind) in [
            ("_copy_to_iter", "copy_user_generic_string", "copying"),
            ("clear_page_erms", "clear_page_rep", "clearing"),
            ("crc32_lsb_vpclmul_avx512", "crc32_body", "checksums"),
            ("iowrite16", "vp_notify", "devices"),
            ("_raw_spin_unlock_irqrestore", "__do_softirq", "interrupts"),
            ("finish_task_switch", "__schedule", "switching"),
            ("exc_page_fault", "do_user_addr_fault", "faults"),
            ("kmem_cache_alloc_noprof", "kmem_cache_alloc", "allocation"),
            ("filemap_get_read_batch", "xas_load", "page cache"),
            ("__d_lookup_rcu", "link_path_walk", "names"),
            ("jbd2_journal_commit_transaction", "jbd2__journal_start", "journal"),
            ("ext4_mark_iloc_dirty", "find_get_block_common", "page cache"),
            ("blk_mq_submit_bio", "bio_alloc_bioset", "blocks"),
            ("do_syscall_64", "syscall_enter_from_user_mode", "calls"),
            ("vsnprintf", "format_decode", "other"),
        ] {
            assert_eq!([here, there].map(|name| KINDS[kind_of(name)].0), [kind; 2], "{here} {there}");
        }
    }

    #[test]
    fn shares_add_up_and_the_greatest_comes_first() {
        let functions =
            [("_copy_to_iter", 3_000_000), ("rep_movs_alternative", 1_000_000), ("do_syscall_64", 1_000_000)];
        let functions = functions.map(|(name, ns)| (name.to_owned(), ns)).into_iter().collect();
        let footprint = Footprint { functions, ..Footprint::default() };
        assert_eq!(kernel_work(&footprint), [("copying", 0.8), ("calls", 0.2)]);
        assert_eq!(kernel_work(&Footprint::default()), []);
        assert!((shares(&footprint).unwrap().iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }
}
