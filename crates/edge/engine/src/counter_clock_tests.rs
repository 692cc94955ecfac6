//! The counter against a kernel's clock that is bent, set, interrupted or right.

use std::cell::Cell;
use std::rc::Rc;

use super::*;

const MS: u64 = 1_000_000;
/// What a reading of the kernel's clock takes.
const CALL_NS: u64 = 3_000;

/// An invented processor and kernel, both on one true time.
#[derive(Default)]
struct World {
    true_ns: Cell<u64>,
    /// Added to what the kernel shows.
    kernel_offset_ns: Cell<i64>,
    /// Parts per million by which the kernel's clock is fast.
    kernel_ppm: Cell<u64>,
    counter_offset: Cell<i64>,
    /// How long the next reading of the kernel's clock is interrupted, before the clock is looked at.
    interruption_ns: Cell<u64>,
    kernel_readings: Cell<u32>,
}

impl World {
    fn pass(&self, ns: u64) {
        self.true_ns.set(self.true_ns.get() + ns);
    }

    fn kernel_now(&self) -> u64 {
        let true_ns = self.true_ns.get();
        (1_000 * MS + true_ns + true_ns * self.kernel_ppm.get() / 1_000_000)
            .wrapping_add_signed(self.kernel_offset_ns.get())
    }
}

impl Clocks for Rc<World> {
    /// 2.4 GHz, from some number on.
    fn cycles(&self) -> u64 {
        (77_777 + self.true_ns.get() * 12 / 5).wrapping_add_signed(self.counter_offset.get())
    }

    fn kernel_ns(&self) -> u64 {
        self.kernel_readings.set(self.kernel_readings.get() + 1);
        self.pass(CALL_NS / 2 + self.interruption_ns.take());
        let now = self.kernel_now();
        self.pass(CALL_NS / 2);
        now
    }
}

/// A clock that has begun to count.
fn counting() -> (Rc<World>, CounterClock<Rc<World>>) {
    let world = Rc::new(World::default());
    let mut clock = CounterClock::new(Rc::clone(&world));
    world.pass(FIRST_NS);
    clock.now_ns();
    assert!(clock.stretch > 0);
    (world, clock)
}

fn off_ns(world: &World, shown_ns: u64) -> u64 {
    shown_ns.abs_diff(world.kernel_now())
}

#[test]
fn a_second_of_readings_costs_a_hundred_of_the_kernel_s_and_shows_its_time() {
    let (world, mut clock) = counting();
    let before = world.kernel_readings.get();
    for _ in 0..100_000 {
        world.pass(10_000);
        let shown_ns = clock.now_ns();
        assert!(off_ns(&world, shown_ns) <= CALL_NS, "{shown_ns}");
    }
    let readings = world.kernel_readings.get() - before;
    assert!((95..=105).contains(&readings), "{readings}");
    assert!(!clock.is_refuted());
}

#[test]
fn until_the_rate_is_known_every_reading_is_the_kernel_s() {
    let world = Rc::new(World::default());
    let mut clock = CounterClock::new(Rc::clone(&world));
    for reading in 1..=10 {
        world.pass(MS);
        clock.now_ns();
        assert_eq!(world.kernel_readings.get(), FIRST_TRIES + reading);
    }
}

#[test]
fn a_kernel_s_clock_that_ntp_bends_is_followed() {
    let (world, mut clock) = counting();
    // Two seconds true, then the most that it is bent by.
    for (ppm, limit_ns) in [(0, CALL_NS), (500, CALL_NS + 10_000)] {
        let now = world.kernel_now();
        world.kernel_ppm.set(ppm);
        world.kernel_offset_ns.set(now.cast_signed() - world.kernel_now().cast_signed());
        for _ in 0..20_000 {
            world.pass(100_000);
            let shown_ns = clock.now_ns();
            assert!(off_ns(&world, shown_ns) <= limit_ns, "{ppm} ppm: {}", off_ns(&world, shown_ns));
        }
    }
    assert!(!clock.is_refuted());
}

#[test]
fn a_reading_that_is_interrupted_refutes_nothing_and_anchors_nothing() {
    let (world, mut clock) = counting();
    for _ in 0..50 {
        world.pass(STRETCH_NS);
        world.interruption_ns.set(4 * MS);
        let (anchor, shown_ns) = (clock.anchor.cycles, clock.now_ns());
        assert!(off_ns(&world, shown_ns) <= CALL_NS);
        assert_eq!(clock.anchor.cycles, anchor);
        clock.now_ns();
        assert_ne!(clock.anchor.cycles, anchor);
    }
    assert!(!clock.is_refuted());
}

#[test]
fn a_counter_that_leaps_or_stands_still_is_not_read_again_and_time_does_not_go_back() {
    let leaps: [i64; 4] = [-200_000, 200_000, -100_000_000_000, 100_000_000_000];
    for leap in leaps {
        let (world, mut clock) = counting();
        world.pass(MS);
        let mut shown_ns = clock.now_ns();
        world.counter_offset.set(leap);
        for _ in 0..100 {
            world.pass(MS);
            let next_ns = clock.now_ns();
            assert!(next_ns >= shown_ns, "{leap}");
            shown_ns = next_ns;
        }
        assert!(clock.is_refuted(), "{leap}");
        assert!(off_ns(&world, shown_ns) <= CALL_NS, "{leap}");
    }
}

#[test]
fn a_kernel_that_stood_still_while_the_counter_ran_refutes_it() {
    let (world, mut clock) = counting();
    let shown_ns = clock.now_ns();
    // The host slept for a minute: the monotonic clock did not count it.
    world.pass(60_000 * MS);
    world.kernel_offset_ns.set(-60_000_000_000);
    let later_ns = clock.now_ns();
    assert!(clock.is_refuted() && later_ns >= shown_ns && later_ns < shown_ns + MS);
}
