//! Figures of a running daemon: counted by its thread, read by others, served as OpenMetrics on loopback.

mod http;
mod intervals;
mod publish;
mod response_times;
mod text;

use std::sync::{Arc, Mutex, PoisonError};

use virtbench_fence::Account;
use virtbench_fence::cache::CacheCounts;

use crate::request::Action;
pub use http::{fetch, serve};
pub use intervals::Alone;
use intervals::SoFar;
pub(crate) use publish::Publisher;
use response_times::{Count, ResponseTimes};

/// Kinds of requests, in the order in which they are counted.
const KINDS: [&str; 4] = ["read", "write", "flush", "discard"];
/// The first of them have the response times of each request.
const TIMED: usize = 2;

#[derive(Debug, Default)]
struct DiskMetrics {
    name: String,
    requests: [Count; 4],
    bytes: [Count; 4],
    errors: Count,
    response_ns: [Count; 4],
    response_times: [ResponseTimes; TIMED],
    under_way: Count,
    bypassed_bytes: Count,
    alone: Alone,
    stand: Mutex<Stand>,
}

/// What is written whole or not at all. The writer never waits for a reader: it writes another time.
#[derive(Debug, Clone, Copy, Default)]
struct Stand {
    account: Option<Account>,
    so_far: SoFar,
}

/// A disk, to those who count.
#[derive(Debug)]
pub struct Watched {
    /// Its name.
    pub name: String,
    /// What it has alone.
    pub alone: Alone,
}

impl From<String> for Watched {
    fn from(name: String) -> Self {
        Self { name, alone: Alone::default() }
    }
}

#[derive(Debug, Default)]
struct CacheMetrics {
    counts: [Count; 12],
}

/// What is counted.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Of the configuration, where it has pools.
    pool: Option<String>,
    disks: Vec<Arc<DiskMetrics>>,
    caches: Vec<CacheMetrics>,
}

const fn kind(action: Action) -> usize {
    match action {
        Action::Read => 0,
        Action::Write { .. } | Action::WriteZeroes { .. } => 1,
        Action::Flush => 2,
        Action::Discard => 3,
    }
}

impl Metrics {
    /// For these disks and so many partitions of the cache.
    #[must_use]
    pub fn new(disks: impl Iterator<Item = impl Into<Watched>>, caches: usize) -> Arc<Self> {
        Self::default().followed_by(disks, caches)
    }

    /// The same; every figure says of which pool it is, if it is of one.
    #[must_use]
    pub fn of_pool(
        pool: Option<String>,
        disks: impl Iterator<Item = impl Into<Watched>>,
        caches: usize,
    ) -> Arc<Self> {
        Self { pool, ..Self::default() }.followed_by(disks, caches)
    }

    /// For these disks from now on: those that were there before keep their counts.
    pub(crate) fn followed_by(
        &self,
        disks: impl Iterator<Item = impl Into<Watched>>,
        caches: usize,
    ) -> Arc<Self> {
        let disk = |Watched { name, alone }: Watched| {
            let known = self.disks.iter().find(|disk| disk.name == name).cloned();
            known.unwrap_or_else(|| Arc::new(DiskMetrics { name, alone, ..DiskMetrics::default() }))
        };
        let disks = disks.map(Into::into).map(disk).collect();
        let caches = (0..caches).map(|_| CacheMetrics::default()).collect();
        Arc::new(Self { pool: self.pool.clone(), disks, caches })
    }

    /// A request is done.
    #[inline]
    pub(crate) fn completed(&self, disk: usize, action: Action, bytes: u64, response_ns: u64, well: bool) {
        let Some(figures) = self.disks.get(disk) else { return };
        let kind = kind(action);
        figures.requests[kind].add(1);
        figures.response_ns[kind].add(response_ns);
        if let Some(times) = figures.response_times.get(kind) {
            times.record(response_ns);
        }
        if well {
            figures.bytes[kind].add(bytes);
        } else {
            figures.errors.add(1);
        }
    }

    /// The name of a disk.
    pub(crate) fn disk_name(&self, disk: usize) -> &str {
        self.disks.get(disk).map_or("?", |disk| &disk.name)
    }

    /// Partitions of the cache.
    pub(crate) const fn caches(&self) -> usize {
        self.caches.len()
    }

    /// How the partitions of the cache stand.
    fn caches_stand(&self, caches: impl Iterator<Item = CacheCounts>) {
        for (cache, now) in self.caches.iter().zip(caches) {
            let blocks = [now.blocks, now.free, now.used, now.writing, now.retiring].map(u64::from);
            let [a, b, c, d, e] = blocks;
            let states = [now.read_only, now.failing, now.sealed].map(u64::from);
            let [f, g, h] = states;
            let values = [a, b, c, d, e, now.halted as u64, now.hits, now.misses, f, g, h, now.errors];
            for (count, value) in cache.counts.iter().zip(values) {
                count.set(value);
            }
        }
    }
}

/// The figures as readers see them: others once there are other disks. Clones show the same.
#[derive(Debug, Clone)]
pub struct Board(Arc<Mutex<Arc<Metrics>>>);

impl Board {
    /// With these figures at first.
    #[must_use]
    pub fn new(figures: Arc<Metrics>) -> Self {
        Self(Arc::new(Mutex::new(figures)))
    }

    /// The present figures.
    #[must_use]
    pub fn now(&self) -> Arc<Metrics> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Shows these from now on.
    pub(crate) fn show(&self, figures: Arc<Metrics>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = figures;
    }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
