//! Guests' memory, sector by sector. Requests in flight may share it, name a part of it twice, and find it changed.

use std::collections::BTreeMap;

use virtbench_fence::{Op, Request};

use super::disk::SECTOR;
use super::model::Model;

/// What a read's memory holds before anything has arrived, and what a failed read leaves there.
const BLANK: u8 = 0xee;
pub const RUBBISH: u8 = 0xdd;

/// The memory that a request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buffer {
    /// Its own.
    Own,
    /// So many sectors of its own, again and again: a page that the scatter list repeats.
    Repeated(usize),
    /// That of another request of the disk that is in flight; its own if there is none.
    Shared,
}

/// What is known of the data that a read finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Any that was not replaced for certain.
    Usual,
    /// What a crash has left: whatever that is must stay.
    Crashed,
    /// Everything has settled and is stable: it must stay.
    Settled,
}

/// A request in flight.
pub struct Guest {
    pub request: Request,
    pub began: u64,
    pub look: Look,
    /// Where in the memory each of its sectors is.
    places: Vec<usize>,
    /// Others may have changed its memory since.
    disturbed: bool,
}

impl Guest {
    const fn sector(&self, index: usize) -> u64 {
        self.request.offset_bytes / SECTOR as u64 + index as u64
    }
}

/// All requests in flight, and the memory they name.
#[derive(Default)]
pub struct Guests {
    in_flight: BTreeMap<u64, Guest>,
    memory: Vec<[u8; SECTOR]>,
    /// Requests that name each place.
    users: Vec<usize>,
    free: Vec<usize>,
}

/// What a guest puts into a sector.
pub fn content(value: u64) -> Vec<u8> {
    value.to_le_bytes().repeat(SECTOR / 8)
}

pub fn value_of(sector: &[u8]) -> u64 {
    u64::from_le_bytes(sector[..8].try_into().unwrap())
}

/// A value that no other write has, of a sector of a disk.
pub const fn value(number: u64, disk: u16, sector: u64) -> u64 {
    number << 24 | (disk as u64) << 16 | sector
}

impl Guests {
    pub fn len(&self) -> usize {
        self.in_flight.len()
    }

    pub fn is_empty(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Nobody waits any more.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    fn place(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.memory.push([BLANK; SECTOR]);
            self.users.push(0);
            self.memory.len() - 1
        })
    }

    fn places(&mut self, request: &Request, buffer: Buffer) -> Vec<usize> {
        let sectors = request.len_bytes as usize / SECTOR;
        let of_disk = |guest: &&Guest| guest.request.disk == request.disk && !guest.places.is_empty();
        let shared = match buffer {
            Buffer::Shared => self.in_flight.values().find(of_disk).map(|guest| guest.places.clone()),
            Buffer::Own | Buffer::Repeated(_) => None,
        };
        let period = if let Buffer::Repeated(period) = buffer { period } else { sectors };
        let period = period.clamp(1, sectors.max(1));
        let named = shared.unwrap_or_else(|| (0..period.min(sectors)).map(|_| self.place()).collect());
        (0..sectors).map(|sector| named[sector % named.len()]).collect()
    }

    /// A request comes in; a write's memory holds values of its own.
    pub fn begin(&mut self, request: Request, began: u64, buffer: Buffer, look: Look, models: &mut [Model]) {
        let places = self.places(&request, buffer);
        let fresh = places.iter().all(|&place| self.users[place] == 0);
        for guest in self.in_flight.values_mut() {
            guest.disturbed |= guest.places.iter().any(|place| places.contains(place));
        }
        for &place in &places {
            self.users[place] += 1;
            if fresh {
                self.memory[place] = [BLANK; SECTOR];
            }
        }
        let (id, disk) = (request.id.0, request.disk);
        let guest = Guest { request, began, look, places, disturbed: !fresh };
        if request.op == Op::Write {
            for (index, &place) in guest.places.iter().enumerate() {
                self.put(place, &content(value(id, disk.0, guest.sector(index))), models);
            }
            for (index, &place) in guest.places.iter().enumerate() {
                let value = value_of(&self.memory[place]);
                models[disk.index()].begin_write(guest.sector(index), id, value, began);
            }
        }
        if request.op == Op::Discard {
            let model = &mut models[disk.index()];
            (0..guest.places.len()).for_each(|index| model.begin_trim(guest.sector(index), id, began));
        }
        self.in_flight.insert(id, guest);
    }

    /// The guest of the request in flight at `index` changes a sector of its memory.
    pub fn scribble(&mut self, index: usize, sector: usize, number: u64, models: &mut [Model]) {
        let guest = self.in_flight.values().nth(index).expect("a request in flight");
        let Some(&place) = guest.places.get(sector) else { return };
        let value = value(number, guest.request.disk.0, 0xffff);
        for guest in self.in_flight.values_mut() {
            guest.disturbed |= guest.places.contains(&place);
        }
        self.put(place, &content(value), models);
    }

    /// Changes the memory. A write in flight that names it may store what is there now.
    fn put(&mut self, place: usize, sector: &[u8], models: &mut [Model]) {
        self.memory[place].copy_from_slice(sector);
        for (&id, guest) in self.in_flight.iter().filter(|(_, guest)| guest.request.op == Op::Write) {
            for (index, _) in guest.places.iter().enumerate().filter(|(_, other)| **other == place) {
                models[guest.request.disk.index()].may_write(guest.sector(index), id, value_of(sector));
            }
        }
    }

    fn range(&self, id: u64, at: usize, len: usize) -> Vec<usize> {
        let guest = self.in_flight.get(&id).expect("the memory of a request that was answered");
        assert!(at.is_multiple_of(SECTOR) && len.is_multiple_of(SECTOR), "{at} {len}");
        guest.places[at / SECTOR..(at + len) / SECTOR].to_vec()
    }

    /// What the memory of a request holds now.
    pub fn load(&self, id: u64, at: usize, len: usize) -> Vec<u8> {
        self.range(id, at, len).into_iter().flat_map(|place| self.memory[place]).collect()
    }

    /// Data arrives in the memory of a request.
    pub fn store(&mut self, id: u64, at: usize, bytes: &[u8], models: &mut [Model]) {
        for (place, sector) in self.range(id, at, bytes.len()).into_iter().zip(bytes.chunks(SECTOR)) {
            self.put(place, sector, models);
        }
    }

    /// The request has been answered: holds what a read found against what it may have found.
    pub fn end(&mut self, id: u64, now: u64, failed: bool, models: &mut [Model]) -> Guest {
        let guest = self.in_flight.remove(&id).expect("answered twice");
        let model = &mut models[guest.request.disk.index()];
        for (index, &place) in guest.places.iter().enumerate() {
            match guest.request.op {
                Op::Write | Op::Discard => model.end_write(guest.sector(index), id, now, failed),
                Op::Read if !failed => self.check(&guest, place, model),
                Op::Read | Op::Flush => {}
            }
        }
        match guest.request.op {
            Op::Flush if failed => model.flush_failed(guest.began),
            Op::Flush => model.flushed(guest.began),
            _ => {}
        }
        for &place in &guest.places {
            self.users[place] -= 1;
            if self.users[place] == 0 {
                self.free.push(place);
            }
        }
        guest
    }

    /// What a read found at a place: one of the sectors that it put there, or what others of the same guest did.
    fn check(&self, guest: &Guest, place: usize, model: &mut Model) {
        let (sector, disk) = (&self.memory[place], guest.request.disk.0);
        assert!(sector.chunks(8).all(|part| part == &sector[..8]), "a torn sector was read");
        let found = value_of(sector);
        if guest.disturbed {
            let theirs = found >> 16 & 0xff == u64::from(disk);
            let nobodys = found == 0 || sector[0] == BLANK || sector[0] == RUBBISH;
            assert!(theirs || nobodys, "disk {disk}: {found:#x} is another disk's");
            return;
        }
        let named = guest.places.iter().enumerate().filter(|(_, other)| **other == place);
        let mut last = Ok(());
        for (index, _) in named {
            let sector = guest.sector(index);
            last = match guest.look {
                Look::Usual => model.check_read(sector, found, guest.began),
                Look::Crashed => model.check_crash(sector, found),
                Look::Settled => model.check_settled(sector, found, guest.began),
            };
            if last.is_ok() {
                return;
            }
        }
        last.unwrap_or_else(|error| panic!("disk {disk}: {error}"));
    }
}
