//! A simulated disk with a volatile cache.
//!
//! **The crash contract.** Power may fail at any instant. Of the writes that no completed flush covers, those in flight
//! included, any subset may have reached the medium, in any order, torn at 512 bytes. A flush covers the writes that had
//! completed when it was dispatched. What is on the medium stays. The core must answer: what a guest flushed is never
//! lost, and never mixed with another disk's.
//!
//! **The kill contract.** The process that carries out the core's effects may be killed at any instant, and the machine
//! lives. What has completed stays, though no flush covers it; of each write in flight any sectors take effect. The core
//! must answer: what was answered is there, flushed or not, if it was given a log in memory.
//!
//! **The error contract.** Any I/O may fail. A failed read has filled its memory with anything, of a failed write any
//! sectors have taken effect, a failed flush has covered nothing. Behind a cache it has the slow device lose any of the sectors, of all
//! disks, that no flush has covered, and no later flush says so, as kernels drop pages that they could not write. What else had completed
//! before stays as it was.

pub const SECTOR: usize = 512;

/// A write that no flush has covered yet.
#[derive(Debug, Clone)]
pub struct Unflushed {
    pub offset: usize,
    pub bytes: Vec<u8>,
    /// Reported to the core as done; reads see it.
    pub completed: bool,
    /// Straight from a guest's memory: a cache has no copy of it.
    is_guests: bool,
    id: u64,
}

#[derive(Debug, Clone)]
pub struct Disk {
    pub medium: Vec<u8>,
    pub unflushed: Vec<Unflushed>,
    next_id: u64,
}

impl Disk {
    pub fn new(bytes: usize) -> Self {
        Self { medium: vec![0; bytes], unflushed: Vec::new(), next_id: 0 }
    }

    /// A write has been dispatched; the number is for [`complete`](Self::complete).
    pub fn write(&mut self, offset: usize, bytes: Vec<u8>) -> u64 {
        self.write_of(false, offset, bytes)
    }

    /// The same, and whether it comes straight from a guest's memory.
    pub fn write_of(&mut self, is_guests: bool, offset: usize, bytes: Vec<u8>) -> u64 {
        self.next_id += 1;
        self.unflushed.push(Unflushed { offset, bytes, completed: false, is_guests, id: self.next_id });
        self.next_id
    }

    /// It takes effect in the order of completion.
    pub fn complete(&mut self, id: u64) {
        let at = self.unflushed.iter().position(|write| write.id == id).unwrap();
        let mut write = self.unflushed.remove(at);
        write.completed = true;
        self.unflushed.push(write);
    }

    /// It fails: of its sectors those that `stored` names take effect.
    pub fn fail(&mut self, id: u64, stored: impl FnMut() -> bool) {
        self.keep_some(id, stored);
    }

    /// Of a write's sectors those stay that `stored` names. The others, if they came straight from a guest.
    fn keep_some(&mut self, id: u64, mut stored: impl FnMut() -> bool) -> Vec<(usize, Vec<u8>)> {
        let at = self.unflushed.iter().position(|write| write.id == id).unwrap();
        let Unflushed { offset, bytes, is_guests, .. } = self.unflushed.remove(at);
        let mut lost = Vec::new();
        for (sector, data) in bytes.chunks(SECTOR).enumerate() {
            let at = offset + sector * SECTOR;
            if stored() {
                let id = self.write_of(is_guests, at, data.to_vec());
                self.complete(id);
            } else if is_guests {
                lost.push((at, data.to_vec()));
            }
        }
        lost
    }

    /// Of what has completed and no flush has covered, any sectors are lost that `stored` does not name. Those of them that came
    /// straight from a guest.
    pub fn lose(&mut self, mut stored: impl FnMut() -> bool) -> Vec<(usize, Vec<u8>)> {
        let completed = self.unflushed.iter().filter(|write| write.completed);
        let completed: Vec<u64> = completed.map(|write| write.id).collect();
        completed.into_iter().flat_map(|id| self.keep_some(id, &mut stored)).collect()
    }

    /// Nobody waits for what is in flight any more: of its sectors those take effect that `stored` names.
    pub fn kill(&mut self, mut stored: impl FnMut() -> bool) {
        let under_way = self.unflushed.iter().filter(|write| !write.completed);
        for id in under_way.map(|write| write.id).collect::<Vec<_>>() {
            self.fail(id, &mut stored);
        }
    }

    /// The writes that a flush dispatched now will cover.
    pub fn covered(&self) -> Vec<u64> {
        self.unflushed.iter().filter(|write| write.completed).map(|write| write.id).collect()
    }

    /// A flush has completed.
    pub fn flush(&mut self, covered: &[u64]) {
        let (stable, rest) =
            std::mem::take(&mut self.unflushed).into_iter().partition(|write| covered.contains(&write.id));
        self.unflushed = rest;
        let stable: Vec<Unflushed> = stable;
        for write in stable {
            self.medium[write.offset..write.offset + write.bytes.len()].copy_from_slice(&write.bytes);
        }
    }

    pub fn read(&self, offset: usize, len: usize) -> Vec<u8> {
        let mut bytes = self.medium[offset..offset + len].to_vec();
        for write in self.unflushed.iter().filter(|write| write.completed) {
            let from = write.offset.max(offset);
            let to = (write.offset + write.bytes.len()).min(offset + len);
            if from < to {
                bytes[from - offset..to - offset]
                    .copy_from_slice(&write.bytes[from - write.offset..to - write.offset]);
            }
        }
        bytes
    }

    /// Power fails; of the unflushed writes, in the order given, `persists(write, sector)` says what reached the medium.
    pub fn crash(&mut self, order: &[usize], mut persists: impl FnMut(usize, usize) -> bool) {
        for &index in order {
            let Unflushed { offset, bytes, .. } = &self.unflushed[index];
            for (sector, data) in bytes.chunks(SECTOR).enumerate() {
                if persists(index, sector) {
                    let at = offset + sector * SECTOR;
                    self.medium[at..at + SECTOR].copy_from_slice(data);
                }
            }
        }
        self.unflushed.clear();
    }
}
