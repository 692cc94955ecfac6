use super::*;

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;

struct World {
    map: Map,
    chain: Chain,
}

impl World {
    /// 64 KiB at 0 and 64 KiB right behind it; a table of 8 at 0.
    fn new(table: &[(u64, u32, u16, u16)]) -> Self {
        let map = Map::from_ranges(&[(GuestAddress(0), 1 << 16), (GuestAddress(1 << 16), 1 << 16)]).unwrap();
        let world = Self { map, chain: Chain::default() };
        world.write(0, table);
        world
    }

    fn write(&self, at: u64, table: &[(u64, u32, u16, u16)]) {
        for (place, (address, len, flags, next)) in table.iter().enumerate() {
            let descriptor = Descriptor::new(*address, *len, *flags, *next);
            self.map.write_obj(descriptor, GuestAddress(at + place as u64 * 16)).unwrap();
        }
    }

    fn walk(&mut self, head: u16) -> Result<(usize, usize, [u32; 2]), Violation> {
        let table = TableAt { address: GuestAddress(0), size: 8 };
        self.chain.walk(&self.map, table, head, true)?;
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
    assert!(nested.chain.walk(&nested.map, TableAt { address: GuestAddress(0), size: 8 }, 0, false).is_err());
}

#[test]
fn an_indirect_table_cannot_make_more_pieces_than_the_kernel_takes() {
    let mut world = World::new(&[(0x4000, 16 * 1100, INDIRECT, 0)]);
    let table: Vec<_> = (1..=1100u16).map(|next| (0, 1, NEXT | WRITE, next)).collect();
    world.write(0x4000, &table);
    assert_eq!(world.walk(0), Err(Violation::Endless));
}
