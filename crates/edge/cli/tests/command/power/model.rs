//! What a virtual disk may contain: for each sector what was last known to be stable, and what was written since.

use super::disk::SECTOR_BYTES;
use super::mix;

/// What a sector contains: zeroes, or what the write of this number put there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    pub number: u64,
    pub zeroes: bool,
}

const BLANK: Version = Version { number: 0, zeroes: true };

#[derive(Debug, Clone)]
struct Sector {
    stable: Version,
    later: Vec<Version>,
    /// What a read finds now, unless a write of it is in flight.
    now: Version,
}

/// A run of sectors that was written at once.
#[derive(Debug, Clone, Copy)]
pub struct Written {
    pub first: usize,
    pub count: usize,
    pub version: Version,
}

/// One virtual disk.
pub struct Model {
    id: u64,
    sectors: Vec<Sector>,
    writes: u64,
    /// Answered since the last flush began.
    answered: Vec<Written>,
    /// Sectors that were known to be stable when they were looked at after a failure.
    pub checked: u64,
    /// The first that was lost or mixed up.
    pub wrong: Option<String>,
}

impl Model {
    pub fn new(id: u64, sectors: usize) -> Self {
        let sector = Sector { stable: BLANK, later: Vec::new(), now: BLANK };
        Self { id, sectors: vec![sector; sectors], writes: 0, answered: Vec::new(), checked: 0, wrong: None }
    }

    pub fn sectors(&self) -> usize {
        self.sectors.len()
    }

    /// A write begins.
    pub fn begin(&mut self, first: usize, count: usize, zeroes: bool) -> Written {
        self.writes += 1;
        let version = Version { number: self.writes, zeroes };
        self.sectors[first..first + count].iter_mut().for_each(|sector| sector.later.push(version));
        Written { first, count, version }
    }

    /// It was answered; `stable` if it was one with FUA.
    pub fn end(&mut self, written: Written, stable: bool) {
        for sector in &mut self.sectors[written.first..written.first + written.count] {
            sector.now = written.version;
        }
        if stable { self.settle(&[written]) } else { self.answered.push(written) }
    }

    /// A flush begins, of these; it covers what other connections were answered too.
    pub fn begin_flush(&mut self) -> Vec<Written> {
        std::mem::take(&mut self.answered)
    }

    /// So many writes are stable.
    pub fn settle(&mut self, all: &[Written]) {
        for written in all {
            for sector in &mut self.sectors[written.first..written.first + written.count] {
                if sector.stable.number < written.version.number {
                    sector.stable = written.version;
                    sector.later.retain(|later| later.number > written.version.number);
                }
            }
        }
    }

    pub fn fill(&self, written: Written, bytes: &mut [u8]) {
        for (sector, bytes) in (written.first..).zip(bytes.chunks_mut(SECTOR_BYTES)) {
            fill(self.id, sector, written.version.number, bytes);
        }
    }

    /// What stands there, if it is any write of this sector's at all.
    fn version(&self, sector: usize, bytes: &[u8]) -> Option<Version> {
        let number = u64::from_le_bytes(bytes[16..24].try_into().unwrap());
        if bytes.iter().all(|byte| *byte == 0) {
            return Some(Version { number: 0, zeroes: true });
        }
        let mut expected = [0; SECTOR_BYTES];
        fill(self.id, sector, number, &mut expected);
        (bytes == expected).then_some(Version { number, zeroes: false })
    }

    /// A read that nothing was in flight beside: exactly what was last written.
    pub fn check_now(&self, first: usize, bytes: &[u8]) {
        for (place, bytes) in (first..).zip(bytes.chunks(SECTOR_BYTES)) {
            let (found, now) = (self.version(place, bytes), self.sectors[place].now);
            let same = found.is_some_and(|found| found.zeroes == now.zeroes && (now.zeroes || found == now));
            assert!(same, "disk {} sector {place}: {found:?} in place of {now:?}: {}", self.id, words(bytes));
        }
    }

    /// After a power failure: what was stable, or something later.
    pub fn check_after_failure(&mut self, first: usize, bytes: &[u8]) {
        let id = self.id;
        for (place, bytes) in (first..).zip(bytes.chunks(SECTOR_BYTES)) {
            let found = self.version(place, bytes);
            let sector = &mut self.sectors[place];
            let mut may = [&[sector.stable], &sector.later[..]].concat().into_iter();
            let known =
                may.find(|may| found.is_some_and(|f| f.zeroes == may.zeroes && (f.zeroes || f == *may)));
            let Some(known) = known else {
                let text =
                    format!("disk {id} sector {place}: {found:?} is none of {sector:?}: {}", words(bytes));
                self.wrong.get_or_insert(text);
                continue;
            };
            sector.now = known;
            self.checked += u64::from(sector.stable.number > 0);
        }
        // What was answered and not flushed is as uncertain as before, and no flush of the next daemon's settles it.
        self.answered.clear();
    }
}

fn fill(id: u64, sector: usize, number: u64, bytes: &mut [u8]) {
    let seed = mix(id << 56 ^ (sector as u64) << 32 ^ number);
    for (place, word) in bytes.chunks_exact_mut(8).enumerate() {
        let value = match place {
            0 => id | 0xd15c << 48,
            1 => sector as u64,
            2 => number,
            _ => mix(seed ^ place as u64),
        };
        word.copy_from_slice(&value.to_le_bytes());
    }
}

fn words(bytes: &[u8]) -> String {
    bytes[..32].chunks(8).map(|word| format!("{:x} ", u64::from_le_bytes(word.try_into().unwrap()))).collect()
}
