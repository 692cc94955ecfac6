//! What a disk's sectors may hold while many clients write to them at once.
//!
//! Each sector is a register. A write may take effect at any moment from when it is begun until it is answered; one whose
//! client has left unanswered, at any moment until a client that came later is answered, or never. A value is gone once
//! a write is done that began after it was done.

use std::collections::BTreeSet;
use std::ops::Range;

const NEVER: u64 = u64::MAX;

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Words that say which write it was; zeroes are those of none.
    Version(u32),
    /// Whatever the disk likes: it was trimmed.
    Anything,
}

/// A write. Moments are numbers of events, and no two begin at one.
#[derive(Debug, Clone, Copy)]
pub struct Write {
    pub content: Content,
    pub begun: u64,
    /// When its client connected.
    pub connected: u64,
}

#[derive(Debug, Clone, Copy)]
struct Candidate {
    write: Write,
    /// When it was done.
    done: u64,
    /// When its client left without an answer.
    left: u64,
    /// When it was found to be gone.
    gone: u64,
}

impl Candidate {
    /// Whether it was over before `other` began.
    fn precedes(&self, other: &Write) -> bool {
        self.done < other.begun || self.left < other.connected
    }
}

/// A write without an answer.
#[derive(Debug)]
struct Left {
    sectors: Range<usize>,
    begun: u64,
    at: u64,
}

/// One disk.
#[derive(Debug)]
pub struct Registers {
    sectors: Vec<Vec<Candidate>>,
    left: Vec<Left>,
    /// When the reads in flight began.
    reads: BTreeSet<u64>,
}

impl Registers {
    /// Zeroes.
    pub fn new(sectors: usize) -> Self {
        let write = Write { content: Content::Version(0), begun: 0, connected: 0 };
        let zeroes = Candidate { write, done: 0, left: NEVER, gone: NEVER };
        Self { sectors: vec![vec![zeroes]; sectors], left: Vec::new(), reads: BTreeSet::new() }
    }

    pub fn begin_read(&mut self, now: u64) {
        self.reads.insert(now);
    }

    /// A read that began then is answered, or will never be.
    pub fn end_read(&mut self, begun: u64) {
        self.reads.remove(&begun);
    }

    pub fn begin_write(&mut self, sectors: Range<usize>, write: Write) {
        let oldest = self.reads.first().copied().unwrap_or(NEVER);
        let candidate = Candidate { write, done: NEVER, left: NEVER, gone: NEVER };
        for sector in &mut self.sectors[sectors] {
            sector.retain(|other| other.gone >= oldest);
            sector.push(candidate);
        }
    }

    /// A write is answered.
    pub fn end_write(&mut self, sectors: Range<usize>, begun: u64, now: u64) {
        for sector in &mut self.sectors[sectors] {
            let own = sector.iter_mut().find(|candidate| candidate.write.begun == begun);
            let own = own.map(|own| {
                own.done = now;
                own.write
            });
            own.iter().for_each(|own| replace(sector, own, now));
        }
    }

    /// Its client leaves without an answer.
    pub fn leave(&mut self, sectors: Range<usize>, begun: u64, now: u64) {
        self.mark(&sectors, begun, |candidate| candidate.left = now);
        self.left.push(Left { sectors, begun, at: now });
    }

    /// A client that connected then is answered: of those who left before, nothing is in flight any more.
    pub fn is_answered(&mut self, connected: u64, now: u64) {
        let (over, rest) = std::mem::take(&mut self.left).into_iter().partition(|left| left.at < connected);
        self.left = rest;
        for Left { sectors, begun, .. } in over {
            self.mark(&sectors, begun, |candidate| candidate.done = now);
        }
    }

    fn mark(&mut self, sectors: &Range<usize>, begun: u64, change: impl Fn(&mut Candidate)) {
        let all = self.sectors[sectors.clone()].iter_mut().flatten();
        all.filter(|candidate| candidate.write.begun == begun).for_each(change);
    }

    /// Whether a read that began then may find this version in a sector now. If so, it is known to have been there.
    pub fn finds(&mut self, sector: usize, version: u32, begun: u64, now: u64) -> Result<(), String> {
        let candidates = &mut self.sectors[sector];
        let mut fitting = candidates.iter().filter(|candidate| {
            let fits = [Content::Version(version), Content::Anything].contains(&candidate.write.content);
            fits && candidate.gone > begun
        });
        let Some(first) = fitting.next() else {
            return Err(format!("version {version} is not one of {candidates:?}"));
        };
        let (write, is_sure) = (first.write, fitting.next().is_none());
        if is_sure && write.content != Content::Anything {
            replace(candidates, &write, now);
        }
        Ok(())
    }
}

/// A write has taken effect: what was over before it began is gone.
fn replace(sector: &mut [Candidate], write: &Write, now: u64) {
    for other in sector.iter_mut().filter(|other| other.precedes(write)) {
        other.gone = other.gone.min(now);
    }
}
