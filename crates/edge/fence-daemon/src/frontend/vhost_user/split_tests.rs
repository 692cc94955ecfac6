use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use super::super::memory::{ClientMemory, RegionAddresses};
use super::*;

const SIZE: u16 = 8;
const PARTS: Parts = Parts { descriptors: 0, available: 0x1000, used: 0x2000 };

/// A driver's side of a ring in 16 KiB of memory.
struct Driver {
    map: Rc<Mapped>,
    available: u16,
}

impl Driver {
    fn new() -> Self {
        let file = memfd_create("ring", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, 16 << 10).unwrap();
        let mut memory = ClientMemory::new();
        memory.replace(vec![(RegionAddresses { base: 0, len: 16 << 10, user: 0, offset: 0 }, file)]).unwrap();
        Self { map: Rc::clone(memory.map()), available: 0 }
    }

    fn word(&self, address: u64) -> &AtomicU16 {
        // SAFETY: two bytes that are mapped, at an even address.
        unsafe { AtomicU16::from_ptr(self.map.at(address, 2).unwrap().cast()) }
    }

    fn offer(&mut self, heads: &[u16]) {
        for head in heads {
            let place = PARTS.available + 4 + 2 * u64::from(self.available % SIZE);
            self.word(place).store(*head, Ordering::Relaxed);
            self.available = self.available.wrapping_add(1);
        }
        self.word(PARTS.available + 2).store(self.available, Ordering::Release);
    }

    /// It wants to be told when the used index has passed this.
    fn wait_for(&self, used: u16) {
        self.word(PARTS.available + 4 + 2 * u64::from(SIZE)).store(used, Ordering::Release);
    }

    fn used(&self) -> u16 {
        self.word(PARTS.used + 2).load(Ordering::Acquire)
    }

    fn ring(&self, event_idx: bool) -> Split {
        Split::new(&self.map, PARTS, SIZE, event_idx).unwrap()
    }
}

fn taken(ring: &mut Split) -> Vec<u16> {
    let mut heads = Vec::new();
    ring.take(usize::MAX, &mut heads).unwrap();
    heads
}

#[test]
fn what_is_given_back_is_seen_once_it_is_shown_also_where_indices_wrap() {
    let mut driver = Driver::new();
    driver.available = 65_534;
    driver.word(PARTS.used + 2).store(65_534, Ordering::Relaxed);
    let mut ring = driver.ring(true);
    ring.set_next_available(65_534);
    driver.offer(&[3, 5, 1]);
    assert_eq!(taken(&mut ring), [3, 5, 1]);
    for head in [5, 3, 1] {
        ring.give(head, 7);
    }
    assert_eq!(driver.used(), 65_534);
    ring.show();
    assert_eq!((driver.used(), ring.next_used(), ring.next_available()), (1, 1, 1));
    let entry = |index: u64| driver.word(PARTS.used + 4 + 8 * index).load(Ordering::Relaxed);
    assert_eq!([entry(6), entry(7), entry(0)], [5, 3, 1]);
}

#[test]
fn a_driver_is_told_when_it_wants_to_be() {
    let mut driver = Driver::new();
    let mut ring = driver.ring(true);
    assert!(ring.wants_to_know(), "a driver that waited for an earlier server looks again");
    let give = |driver: &mut Driver, ring: &mut Split| {
        driver.offer(&[0]);
        taken(ring);
        ring.give(0, 0);
        ring.show();
        driver.used()
    };
    // Event index 0: as soon as the first is used.
    assert_eq!((give(&mut driver, &mut ring), ring.wants_to_know()), (1, true));
    assert_eq!((give(&mut driver, &mut ring), ring.wants_to_know()), (2, false));
    driver.wait_for(3);
    assert_eq!((give(&mut driver, &mut ring), ring.wants_to_know()), (3, false));
    assert_eq!((give(&mut driver, &mut ring), ring.wants_to_know()), (4, true));
    ring.tell_anyway();
    assert!(ring.wants_to_know());
}

#[test]
fn without_event_indices_flags_say_who_is_to_tell() {
    let mut driver = Driver::new();
    let mut ring = driver.ring(false);
    assert!(ring.wants_to_know() && ring.wants_to_know());
    driver.word(PARTS.available).store(1, Ordering::Relaxed);
    assert!(!ring.wants_to_know());
    ring.look();
    assert_eq!(driver.word(PARTS.used).load(Ordering::Relaxed), 1);
    assert!(!ring.listen());
    assert_eq!(driver.word(PARTS.used).load(Ordering::Relaxed), 0);
    driver.offer(&[1]);
    assert!(ring.listen());
}

#[test]
fn what_cannot_be_is_refused() {
    let mut driver = Driver::new();
    let mut ring = driver.ring(true);
    driver.offer(&[0; 9]);
    assert_eq!(ring.take(1, &mut Vec::new()), Err(Violation::Overfull));
    let at = |parts| Split::new(&driver.map, parts, SIZE, true).is_ok();
    assert!(at(PARTS));
    for wrong in [
        Parts { descriptors: 8, ..PARTS },
        Parts { available: 0x1001, ..PARTS },
        Parts { used: 0x2002, ..PARTS },
        Parts { used: 0x3fc0, ..PARTS },
        Parts { descriptors: 1 << 40, ..PARTS },
    ] {
        assert!(!at(wrong), "{wrong:?}");
    }
}
