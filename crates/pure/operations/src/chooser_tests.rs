use proptest::prelude::*;

use virtbench_record::CloneKind;

use super::*;
use crate::vms::{Rules, Settled, VmState};

struct Kept {
    state: VmState,
    snapshots: Vec<u32>,
    disks: Vec<u32>,
    ports: Vec<u32>,
}

impl Kept {
    fn off() -> Self {
        Self { state: VmState::Off, snapshots: Vec::new(), disks: Vec::new(), ports: Vec::new() }
    }
}

/// A platform that keeps the state of its VMs by itself and refuses what is illegal.
#[derive(Default)]
struct Referee {
    vms: BTreeMap<u32, Kept>,
}

impl Referee {
    fn new(count: u32) -> Self {
        Self { vms: (0..count).map(|number| (number, Kept::off())).collect() }
    }

    /// Does it, or says why that is illegal.
    fn perform(&mut self, choice: &Choice) -> Result<(), String> {
        use OperationKind as K;
        let illegal = || Err(format!("{choice:?}"));
        let Some(number) = choice.vm else { return Ok(()) };
        let Some(Kept { state, snapshots, disks, ports }) = self.vms.get_mut(&number) else {
            return illegal();
        };
        match (choice.kind, *state, choice.item) {
            (K::PowerOn, VmState::Off, _) | (K::Resume, VmState::Suspended, _) => *state = VmState::On,
            (K::PowerOff, VmState::On, _) => *state = VmState::Off,
            (K::Suspend, VmState::On, _) => *state = VmState::Suspended,
            (K::Migrate, VmState::On, _) if snapshots.is_empty() => {}
            (K::Console, VmState::On, _) | (K::Reconfigure, VmState::On | VmState::Off, _) => {}
            (K::Clone, VmState::Off, Some(into)) => {
                let other = self.vms.insert(into, Kept::off());
                assert!(other.is_none(), "the number {into} was used before");
            }
            (K::Remove, VmState::Off, _) => drop(self.vms.remove(&number)),
            (K::CreateSnapshot, VmState::On | VmState::Off, Some(item)) => snapshots.push(item),
            (K::DeleteSnapshot, VmState::On | VmState::Off, Some(item)) if snapshots.contains(&item) => {
                snapshots.retain(|one| *one != item);
            }
            (K::AttachDisk, VmState::Off, Some(item)) => disks.push(item),
            (K::DetachDisk, VmState::Off, Some(item)) if disks.contains(&item) => {
                disks.retain(|one| *one != item);
            }
            (K::AttachPort, VmState::On | VmState::Off, Some(item)) => ports.push(item),
            (K::DetachPort, VmState::On | VmState::Off, Some(item)) if ports.contains(&item) => {
                ports.retain(|one| *one != item);
            }
            _ => return illegal(),
        }
        Ok(())
    }
}

fn a_mix() -> impl Strategy<Value = Mix> {
    let pairs = prop::collection::vec(0u32..9, 6);
    let alone = prop::collection::vec(0u32..9, 4);
    (pairs, alone).prop_map(|(pairs, alone)| {
        use OperationKind as K;
        let kinds = [
            [K::PowerOn, K::PowerOff],
            [K::Clone, K::Remove],
            [K::CreateSnapshot, K::DeleteSnapshot],
            [K::Suspend, K::Resume],
            [K::AttachDisk, K::DetachDisk],
            [K::AttachPort, K::DetachPort],
        ];
        let mut shares: BTreeMap<_, _> =
            kinds.iter().zip(pairs).flat_map(|(two, share)| two.map(|kind| (kind, share))).collect();
        shares.extend([K::Migrate, K::Reconfigure, K::Console, K::List].into_iter().zip(alone));
        // Something can always be switched on and off, and listed.
        shares.insert(K::PowerOn, shares[&K::PowerOn].max(1));
        shares.insert(K::PowerOff, shares[&K::PowerOn]);
        shares.insert(K::List, shares[&K::List].max(1));
        Mix::new(shares).unwrap()
    })
}

proptest! {
    /// Operations overlap and end in any order; some fail and leave the VM as it was, some lose it.
    #[test]
    fn no_illegal_operation_is_chosen_and_shares_are_the_mix_s_whatever_happens(
        mix in a_mix(),
        count in 2u32..40,
        seed in any::<u64>(),
        fate in any::<u64>(),
        clients in 1usize..12,
    ) {
        let rules = Rules { most: 200, ..Rules::new(count, false) };
        let mut vms = Vms::new(0..count, rules);
        let mut referee = Referee::new(count);
        let mut chooser = Chooser::new(mix.clone(), seed);
        let mut fate = Random::new(fate);
        let mut flying: Vec<Choice> = Vec::new();
        let mut issued: BTreeMap<OperationKind, u32> = BTreeMap::new();
        for _ in 0..3000 {
            if flying.len() < clients && let Some(choice) = chooser.next(&mut vms) {
                prop_assert!(flying.iter().all(|one| one.vm.is_none() || one.vm != choice.vm), "a VM twice");
                *issued.entry(choice.kind).or_default() += 1;
                flying.push(choice);
            }
            if flying.is_empty() {
                break;
            }
            if fate.below(2) == 0 || flying.len() == clients {
                let index = usize::try_from(fate.below(flying.len() as u64)).unwrap();
                let choice = flying.swap_remove(index);
                let state = choice.vm.and_then(|vm| referee.vms.get(&vm)).map(|vm| vm.state);
                let settled = match (fate.below(60), state) {
                    (0, _) => Settled::Lost,
                    (1..=5, Some(state)) => Settled::NotDone(state),
                    _ => {
                        prop_assert_eq!(referee.perform(&choice), Ok(()));
                        Settled::Done
                    }
                };
                vms.settle(&choice, settled);
            }
        }
        // Cards that were dealt are issued or owed, and at most a deck is owed.
        let (cards, owed) = (f64::from(mix.total()), chooser.owed());
        prop_assert!(owed.values().sum::<u32>() <= mix.total());
        let total: u32 = issued.values().sum();
        for (kind, share) in mix.shares() {
            let wanted = f64::from(total) * f64::from(*share) / cards;
            let done = f64::from(issued.get(kind).copied().unwrap_or(0));
            prop_assert!((done - wanted).abs() <= 2.0 * cards, "{kind:?}: {done} of {total}, wanted {wanted}");
        }
    }
}

#[test]
fn shares_of_the_paper_are_kept_exactly_in_the_long_run() {
    let mut vms = Vms::new(0..20, Rules::new(20, false));
    let mut referee = Referee::new(20);
    let mut chooser = Chooser::new(Mix::paper(), 7);
    let mut issued: BTreeMap<OperationKind, u32> = BTreeMap::new();
    for _ in 0..34_000 {
        let choice = chooser.next(&mut vms).unwrap();
        assert_eq!(referee.perform(&choice), Ok(()));
        vms.settle(&choice, Settled::Done);
        *issued.entry(choice.kind).or_default() += 1;
    }
    for (kind, share) in Mix::PAPER {
        assert!(issued[&kind].abs_diff(share * 1000) <= 34, "{kind:?}: {}", issued[&kind]);
    }
    assert!((10..=40).contains(&vms.counts().0), "{:?}", vms.counts());
}

#[test]
fn where_an_operation_always_fails_the_rest_stops_rather_than_leave_the_mix() {
    let mut vms = Vms::new(0..4, Rules::new(4, true));
    let mut chooser = Chooser::new(Mix::paper(), 7);
    let mut issued = 0;
    while let Some(choice) = chooser.next(&mut vms) {
        issued += 1;
        assert!(issued < 1000, "it goes on without the operation that fails");
        // Nothing ever starts, so nothing can be migrated or switched off.
        let fails = choice.kind == OperationKind::PowerOn;
        vms.settle(&choice, if fails { Settled::Lost } else { Settled::Done });
    }
    assert_eq!(chooser.owed().values().sum::<u32>(), 34);
}

#[test]
fn ways_to_clone_take_turns_and_overlays_are_not_cloned_where_they_cannot_be() {
    let ways = [CloneKind::Full, CloneKind::Linked, CloneKind::Reflink];
    let rules = Rules { clones: ways.into(), clones_overlays: false, ..Rules::new(2, false) };
    let mut vms = Vms::new(0..2, rules);
    let mix = Mix::parse("clone = 1\nremove = 1\n").unwrap();
    let mut chooser = Chooser::new(mix, 7);
    let mut flying: Vec<Choice> = Vec::new();
    let (mut taken, mut overlays) = (Vec::new(), Vec::new());
    for step in 0..6000 {
        // Two at once: the last VM that can be cloned is never removed.
        if step % 3 < 2
            && let Some(choice) = chooser.next(&mut vms)
        {
            if let Some(way) = choice.clone {
                assert!(!overlays.contains(&choice.vm), "{choice:?} is of an overlay");
                taken.push(way);
                if !way.is_whole() {
                    overlays.push(choice.item);
                }
            }
            flying.push(choice);
        } else if !flying.is_empty() {
            vms.settle(&flying.remove(0), Settled::Done);
        }
        assert!(vms.counts().0 >= 1);
    }
    assert!(taken.len() > 500, "{}", taken.len());
    assert!(taken.iter().zip(ways.iter().cycle()).all(|(way, turn)| way == turn), "{taken:?}");
}

#[test]
fn clones_and_removals_never_come_to_a_stand() {
    for seed in 0..200 {
        let mut vms = Vms::new(0..4, Rules::new(4, false));
        // Half of them run, and nothing in the mix ends them.
        for number in [1, 3] {
            let on = Choice { kind: OperationKind::PowerOn, vm: Some(number), item: None, clone: None };
            vms.settle(&on, Settled::Done);
        }
        let mut chooser = Chooser::new(Mix::parse("clone = 4\nremove = 4\n").unwrap(), seed);
        for _ in 0..200 {
            let choice = chooser.next(&mut vms).expect("something is always legal");
            vms.settle(&choice, Settled::Done);
        }
    }
}

#[test]
fn in_rounds_every_card_is_played_before_the_next_deck_begins() {
    for seed in 0..50 {
        let mut vms = Vms::new(0..4, Rules::new(4, false));
        let mut referee = Referee::new(4);
        let on = Choice { kind: OperationKind::PowerOn, vm: Some(1), item: None, clone: None };
        assert_eq!(referee.perform(&on), Ok(()));
        vms.settle(&on, Settled::Done);
        let mix = Mix::infrastructure();
        let mut chooser = Chooser::new(mix.clone(), seed).in_rounds(seed);
        for round in 1..=20 {
            let mut issued: BTreeMap<OperationKind, u32> = BTreeMap::new();
            for _ in 0..mix.total() {
                let choice = chooser.next(&mut vms).unwrap_or_else(|| panic!("round {round}, seed {seed}"));
                assert_eq!(referee.perform(&choice), Ok(()));
                vms.settle(&choice, Settled::Done);
                *issued.entry(choice.kind).or_default() += 1;
            }
            assert_eq!(&issued, mix.shares(), "round {round}, seed {seed}");
        }
    }
}

/// Snapshots are few, and VMs run for short: what needs them must not fall behind until nothing else is dealt.
#[test]
fn kinds_that_are_rarely_legal_keep_their_shares_beside_others_that_take_their_chances() {
    use OperationKind as K;
    let more =
        [(K::Shutdown, 4), (K::Reset, 2), (K::RevertSnapshot, 1), (K::MoveDisk, 2), (K::ResizeDisk, 2)];
    let shares = Mix::PAPER.into_iter().chain(more).chain([(K::PowerOff, 4)]).collect();
    let mix = Mix::new(shares).unwrap();
    for seed in 0..40 {
        let mut vms = Vms::new(0..6, Rules::new(6, seed % 2 == 0));
        let (mut chooser, mut random) = (Chooser::new(mix.clone(), seed), Random::new(seed));
        let mut flying: Vec<Choice> = Vec::new();
        for step in 0..8_000 {
            let next = if flying.len() < 4 { chooser.next(&mut vms) } else { None };
            match next {
                Some(choice) => flying.push(choice),
                None => {
                    assert!(!flying.is_empty(), "stuck at {step} with seed {seed}: {:?}", chooser.owed());
                    let index = usize::try_from(random.below(flying.len() as u64)).unwrap();
                    vms.settle(&flying.swap_remove(index), Settled::Done);
                }
            }
        }
    }
}
