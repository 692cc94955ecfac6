use std::rc::Rc;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use super::super::memory::{ClientMemory, RegionAddresses};
use super::*;

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;

struct World {
    map: Rc<Mapped>,
    chain: Chain,
}

impl World {
    /// 64 KiB at 0 and 64 KiB right behind it; a table of 8 at 0.
    fn new(table: &[(u64, u32, u16, u16)]) -> Self {
        let region = |base: u64| {
            let memory = memfd_create("chain", MemfdFlags::CLOEXEC).unwrap();
            ftruncate(&memory, 1 << 16).unwrap();
            (RegionAddresses { base, len: 1 << 16, user: base, offset: 0 }, memory)
        };
        let mut memory = ClientMemory::new();
        memory.replace(vec![region(0), region(1 << 16)]).unwrap();
        let world = Self { map: Rc::clone(memory.map()), chain: Chain::default() };
        world.write(0, table);
        world
    }

    fn write(&self, at: u64, table: &[(u64, u32, u16, u16)]) {
        for (place, (address, len, flags, next)) in table.iter().enumerate() {
            let descriptor = Descriptor { address: *address, len: *len, flags: *flags, next: *next };
            let base = self.map.at(at + place as u64 * 16, 16).unwrap();
            // SAFETY: 16 bytes that are mapped.
            unsafe { base.cast::<Descriptor>().write_unaligned(descriptor) };
        }
    }

    fn table(&self) -> Table {
        Table { first: self.map.at(0, 128).unwrap(), size: 8 }
    }

    fn walk(&mut self, head: u16) -> Result<(usize, usize, [u32; 2]), Violation> {
        self.chain.walk(&self.map, self.table(), head, true)?;
        Ok((self.chain.readable, self.chain.pieces.len() - self.chain.readable, self.chain.bytes))
    }
}

#[test]
fn a_chain_is_taken_in_with_its_indirect_table() {
    let read = [(0x1000, 16, NEXT, 1), (0x2000, 4096, NEXT | WRITE, 2), (0x3000, 1, WRITE, 0)];
    assert_eq!(World::new(&read).walk(0), Ok((1, 2, [16, 4097])));
    let mut world = World::new(&[(0x8000, 48, INDIRECT, 0)]);
    world.write(0x8000, &read);
    assert_eq!(world.walk(0), Ok((1, 2, [16, 4097])));
}

#[test]
fn a_piece_over_two_regions_is_two() {
    assert_eq!(World::new(&[(0xf000, 0x2000, WRITE, 0)]).walk(0), Ok((0, 2, [0, 0x2000])));
}

#[test]
fn each_violation_has_its_name() {
    let of = |table: &[(u64, u32, u16, u16)], head| World::new(table).walk(head).unwrap_err();
    assert_eq!(of(&[], 8), Violation::Index(8));
    assert_eq!(of(&[(0, 16, NEXT, 9)], 0), Violation::Index(9));
    assert_eq!(of(&[(0, 16, NEXT, 1), (0, 16, NEXT, 0)], 0), Violation::Endless);
    assert_eq!(of(&[(1 << 40, 16, 0, 0)], 0), Violation::Address { address: 1 << 40, len: 16 });
    assert_eq!(of(&[((1 << 17) - 8, 16, 0, 0)], 0), Violation::Address { address: (1 << 17) - 8, len: 16 });
    assert_eq!(of(&[(u64::MAX - 7, 16, 0, 0)], 0), Violation::Address { address: u64::MAX - 7, len: 16 });
    assert_eq!(of(&[(0, 16, NEXT | WRITE, 1), (0, 16, 0, 0)], 0), Violation::Order);
    for (len, flags) in [(0, INDIRECT), (17, INDIRECT), (16, INDIRECT | NEXT), (16 * 65536, INDIRECT)] {
        assert_eq!(of(&[(0x8000, len, flags, 0)], 0), Violation::Indirect);
    }
    let mut nested = World::new(&[(0x8000, 16, INDIRECT, 0)]);
    nested.write(0x8000, &[(0x8000, 16, INDIRECT, 0)]);
    assert_eq!(nested.walk(0), Err(Violation::Indirect));
    assert!(nested.chain.walk(&nested.map, nested.table(), 0, false).is_err());
    assert_eq!(of(&[(0xfff8, 32, INDIRECT, 0)], 0), Violation::Address { address: 0xfff8, len: 32 });
}

#[test]
fn an_indirect_table_cannot_make_more_pieces_than_the_kernel_takes() {
    let mut world = World::new(&[(0x4000, 16 * 1100, INDIRECT, 0)]);
    let table: Vec<_> = (1..=1100u16).map(|next| (0, 1, NEXT | WRITE, next)).collect();
    world.write(0x4000, &table);
    assert_eq!(world.walk(0), Err(Violation::Endless));
}
