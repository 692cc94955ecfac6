//! How much longer an application's code takes, from reference applications whose kernel time goes to the like;
//! and what a kernel's time goes to.
//!
//! Each reference was run on both machines, which gives its factors, and natively the kernel's functions were sampled. An
//! application's factor is a weighted mean of theirs, in logarithms: a reference weighs exp(-d^2 / 2h^2), where d is the
//! distance of their shares of kernel time by kind of work (Hellinger's: that of the shares' square roots; a kernel regression:
//! Nadaraya, "On Estimating Regression", Theory of Probability and its Applications 9(1), 1964). How wide h is, is decided by
//! leaving out each reference and predicting it from the others, and what that misses them by is the interval. Nothing else
//! is fitted.
//!
//! How much longer user code takes depends on what it is mixed with: who starts processes has code that is cold, who computes
//! has code that is translated once. So its distance is that of the shares of all processor time, of which user code is one
//! kind and the kernel's kinds are the rest: a program that computes is not compared with one that starts processes because
//! the little that either asks of the kernel is the same.
//!
//! Where the subject translates instructions, references and application were also tried under such a translator natively. How much longer
//! their user code takes there tells how much longer it takes on the subject: a line through the references' logarithms, which is taken
//! where it misses references that are left out by less than their likeness does.
//!
//! What a kernel's time goes to, by the functions that it was sampled in.
//!
//! Kernels of different versions and builds have other functions for the same: inlined, renamed, split. So functions are put
//! together by the words in their names, coarsely enough that most stay together from one version to the next.

use virtbench_record::{Costs, Footprint, Reference, ReferenceRun};

use super::sampling::Factor;
use crate::line::Line;

/// With fewer reference applications there is nothing to choose from.
const FEWEST: usize = 8;

/// Widths that are tried; the square root of 2 is the distance of two that have nothing in common.
const WIDTHS: [f64; 6] = [0.1, 0.14, 0.2, 0.28, 0.4, 0.57];

/// Weight of a reference that is not at all alike, so that an application without any like it gets the mean.
const LEAST_WEIGHT: f64 = 1e-3;

/// How many of those most alike are named.
pub(super) const NAMED: usize = 3;

/// Square roots of shares of processor time: user code, which has no share where kernel code is compared, and kernel code by
/// kind of work.
type Work = [f64; KERNEL_WORKS + 1];

/// The code whose factor is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    User,
    Kernel,
}

/// What comes of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Likened {
    /// The factor of kernel code with copying, on processors that are not crowded.
    pub kernel: Factor,
    /// The factor of user code on such; `None` where too few references have any to speak of.
    pub user: Option<Factor>,
    /// What they are from.
    pub from: Alike,
}

/// What factors that are from references say of themselves.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Alike {
    /// How many references there are.
    pub references: usize,
    /// Those most alike.
    pub nearest: Vec<String>,
    /// How many times as long user code takes under a translator natively, where its factor is from that.
    pub translation: Option<f64>,
}

/// Slowdown of code by other busy processors, 1 where only one is busy: that on the reference and on the subject.
pub(super) type Crowding<'a> = &'a dyn Fn(usize, f64) -> f64;

/// A reference with the factor of a part of its code.
struct Known<'a> {
    name: &'a str,
    work: Work,
    ln: f64,
}

/// `None` where it was not sampled, or where too few references have kernel code to speak of.
pub(super) fn likened(costs: &Costs, seen: &Footprint, crowding: Crowding<'_>) -> Option<Likened> {
    let wanted = work(seen, Mode::Kernel)?;
    let known = known(costs, Mode::Kernel, crowding);
    let kernel = factor(&known, &wanted)?;
    let alike = factor(&self::known(costs, Mode::User, crowding), &work(seen, Mode::User)?);
    let translated = translated(costs, seen, crowding);
    let is_nearer = |one: &Factor| alike.is_none_or(|alike| one.deviation < alike.deviation);
    let translated = translated.filter(is_nearer);
    let mut nearest: Vec<_> = known.iter().map(|one| (distance(&one.work, &wanted), one.name)).collect();
    nearest.sort_by(|a, b| a.0.total_cmp(&b.0));
    Some(Likened {
        kernel,
        user: translated.or(alike),
        from: Alike {
            references: known.len(),
            nearest: nearest.iter().take(NAMED).map(|(_, name)| (*name).to_owned()).collect(),
            translation: translated.and(seen.translation()),
        },
    })
}

/// Those that have code to speak of in a mode.
fn known<'a>(costs: &'a Costs, mode: Mode, crowding: Crowding<'_>) -> Vec<Known<'a>> {
    let known = |one: &'a Reference| {
        let ln = factor_ln(one, mode, crowding)?;
        Some(Known { name: &one.name, work: work(&one.reference.footprint, mode)?, ln })
    };
    costs.references.iter().filter_map(known).collect()
}

fn factor(known: &[Known<'_>], wanted: &Work) -> Option<Factor> {
    if known.len() < FEWEST {
        return None;
    }
    let missed =
        |width: f64| missed_by(known, |others, one| mean(others.iter().copied(), &one.work, width) - one.ln);
    let tried = WIDTHS.map(|width| (width, missed(width)));
    let (width, deviation) = tried.into_iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(Factor { ln: mean(known.iter(), wanted, width), deviation })
}

/// The factor of user code that takes so much longer under a translator; `None` where that was not tried, or of too few references.
fn translated(costs: &Costs, seen: &Footprint, crowding: Crowding<'_>) -> Option<Factor> {
    let wanted = seen.translation()?.ln();
    let known = |one: &Reference| {
        let translation = one.reference.footprint.translation()?;
        Some((translation.ln(), factor_ln(one, Mode::User, crowding)?))
    };
    let known: Vec<(f64, f64)> = costs.references.iter().filter_map(known).collect();
    if known.len() < FEWEST {
        return None;
    }
    let deviation = missed_by(&known, |others, (at, ln)| {
        let others: Vec<(f64, f64)> = others.iter().map(|one| **one).collect();
        Line::through(&others).at(*at) - ln
    });
    Some(Factor { ln: Line::through(&known).at(wanted), deviation })
}

/// How far each is missed by when it is left out and predicted from the others, on average: the root of the mean square.
fn missed_by<T>(known: &[T], error: impl Fn(&[&T], &T) -> f64) -> f64 {
    let of = |(left_out, one): (usize, &T)| {
        let others = known.iter().enumerate().filter(|(index, _)| *index != left_out);
        error(&others.map(|(_, other)| other).collect::<Vec<_>>(), one).powi(2)
    };
    (known.iter().enumerate().map(of).sum::<f64>() / known.len() as f64).sqrt()
}

fn distance(a: &Work, b: &Work) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

fn mean<'a, 'b: 'a>(known: impl Iterator<Item = &'a Known<'b>>, wanted: &Work, width: f64) -> f64 {
    let weight = |work: &Work| (-(distance(work, wanted) / width).powi(2) / 2.0).exp() + LEAST_WEIGHT;
    let weighted = known.map(|one| (weight(&one.work), one.ln));
    let (sum, of) = weighted.fold((0.0, 0.0), |(sum, of), (weight, ln)| (sum + weight, of + weight * ln));
    of / sum
}

/// `None` where the kernel was not sampled.
fn work(seen: &Footprint, mode: Mode) -> Option<Work> {
    let [user_ns, kernel_ns] = seen.cpu_ns.map(|ns| ns as f64);
    let user = match mode {
        Mode::User if user_ns + kernel_ns > 0.0 => user_ns / (user_ns + kernel_ns),
        Mode::User | Mode::Kernel => 0.0,
    };
    let mut work = [user.sqrt(); KERNEL_WORKS + 1];
    for (root, share) in work[1..].iter_mut().zip(shares(seen)?) {
        *root = ((1.0 - user) * share).sqrt();
    }
    Some(work)
}

/// Code of an operation on the subject over that on the reference.
fn factor_ln(one: &Reference, mode: Mode, crowding: Crowding<'_>) -> Option<f64> {
    let alone_s = |run: &ReferenceRun, side: usize| {
        let each_s = run.cpu_s(usize::from(mode == Mode::Kernel))?;
        let Footprint { elapsed_ns, cpu_ns, .. } = &run.footprint;
        let busy = (cpu_ns[0] + cpu_ns[1]) as f64 / *elapsed_ns as f64;
        Some(each_s / crowding(side, busy))
    };
    Some((alone_s(&one.subject, 1)? / alone_s(&one.reference, 0)?).ln())
}

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

/// Shares of the kernel's time by kind of work; `None` where it was not sampled.
pub(super) fn shares(footprint: &Footprint) -> Option<[f64; KERNEL_WORKS]> {
    let mut ns = [0.0; KERNEL_WORKS];
    for (function, of) in &footprint.functions {
        ns[kind_of(function)] += *of as f64;
    }
    let all: f64 = ns.iter().sum();
    (all > 0.0).then(|| ns.map(|ns| ns / all))
}

/// The share of one kind of work, by its name; `None` where it was not sampled.
pub(super) fn share_of(footprint: &Footprint, kind: &str) -> Option<f64> {
    let place = KINDS.iter().position(|(name, _)| *name == kind)?;
    shares(footprint).map(|shares| shares[place])
}

fn kind_of(function: &str) -> usize {
    let has = |words: &str| words.split_ascii_whitespace().any(|word| function.contains(word));
    KINDS.iter().position(|(_, words)| has(words)).unwrap_or(KERNEL_WORKS - 1)
}

/// What the kernel's time goes to, kind and share of 1, the greatest first; nothing where it was not sampled.
#[must_use]
pub fn kernel_work(footprint: &Footprint) -> Vec<(&'static str, f64)> {
    let Some(shares) = shares(footprint) else { return Vec::new() };
    let mut named: Vec<_> = KINDS.iter().zip(shares).map(|((name, _), share)| (*name, share)).collect();
    named.retain(|(_, share)| *share > 0.0);
    named.sort_by(|a, b| b.1.total_cmp(&a.1));
    named
}

#[cfg(test)]
#[path = "similar_references_tests.rs"]
mod similar_references_tests;

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
