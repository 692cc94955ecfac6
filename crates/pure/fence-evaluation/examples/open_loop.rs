//! Why machines at 24 % of saturation deviate under slots: an open loop beside the capacity of its own slots.
//!
//! The world of `docs/deviation.md`: four virtual disks on the first 60/160 of a hard disk of 7200 rpm, caches for half of
//! each on a solid-state drive of the profile `spec`, random accesses of 4 KiB, half of them reads, that arrive at random.
//! One machine has 8 % of what all four do together at most, the others have a share of the table.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "an example")]

use std::sync::Arc;

use virtbench_fence::predict::Predictors;
use virtbench_fence_evaluation::{Settings, Sharing, Store, System, deviation_percent};
use virtbench_fence_sim::calibrate::calibrate;
use virtbench_fence_sim::client::{Client, open_client};
use virtbench_fence_sim::disk::HddModel;
use virtbench_fence_sim::{Span, World};
use virtbench_workload::{AccessLine, AccessSpec, Arrivals, LoadSpec, Pace, Rate, TraceAction, TraceOp};

const DISK_BYTES: u64 = 16 << 20;
const MACHINES: usize = 4;
const CACHE_BLOCKS: u32 = 2048 + 256;
/// Accesses of each machine's disk that fill its cache, at this rate.
const FILLING_S: f64 = 3000.0;
const FILLING_RATE: f64 = 2.0;
/// Measured, seconds of virtual time.
const MEASURED_S: f64 = 4000.0;

struct Bench {
    system: System,
    settings: Settings,
    predictors: Predictors,
}

/// What a machine got: operations a second and mean milliseconds.
type Got = (f64, f64);

impl Bench {
    fn run(&self, clients: Vec<Client>, warm_up_s: f64) -> Vec<Got> {
        let span = Span { warm_up_ns: ns(warm_up_s), measure_ns: ns(MEASURED_S) };
        let config = self.system.world(&self.settings, &self.predictors, CACHE_BLOCKS, clients, span, 1);
        let outcome = World::new(config).expect("a world").run().expect("a run");
        outcome.vms.iter().map(|vm| (vm.per_second(), vm.mean_ms().unwrap_or(0.0))).collect()
    }

    /// What those that are `on` do at most, each with 8 I/Os outstanding.
    fn most(&self, on: &[bool]) -> f64 {
        let client = |(vm, on): (usize, &bool)| {
            let filling = open_client(&load(vm, 1.0), ns(FILLING_S), FILLING_RATE);
            let (true, Some(Client::Trace { ops, .. })) = (on, filling) else { return Client::Off };
            let steady = accesses(vm, 400_000);
            let ops: Arc<[TraceOp]> =
                ops.iter().copied().filter(|op| op.time_ns < ns(FILLING_S)).chain(steady).collect();
            Client::Trace { ops, pace: Pace::Speed(1.0), outstanding: 8 }
        };
        let got = self.run(on.iter().enumerate().map(client).collect(), FILLING_S + 10.0);
        got.iter().map(|(per_second, _)| per_second).sum()
    }

    /// At these rates, nothing where a machine is off.
    fn open(&self, rates: &[f64]) -> Vec<Got> {
        let client = |(vm, rate): (usize, &f64)| {
            // A machine that is off has filled its cache too.
            open_client(&load(vm, rate.max(1e-6)), ns(FILLING_S), FILLING_RATE).expect("an open loop")
        };
        self.run(rates.iter().enumerate().map(client).collect(), FILLING_S)
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // of constants
fn ns(s: f64) -> u64 {
    (s * 1e9) as u64
}

/// All due at once: as many are outstanding as may be.
fn accesses(vm: usize, count: u64) -> Vec<TraceOp> {
    let mut random = virtbench_units::Random::new(100 + vm as u64);
    let mut op = || TraceOp {
        time_ns: ns(FILLING_S),
        offset: random.below(DISK_BYTES / 4096) * 4096,
        len: 4096,
        action: if random.below(2) == 0 { TraceAction::Read } else { TraceAction::Write },
        line: 0,
    };
    (0..count).map(|_| op()).collect()
}

fn load(vm: usize, per_second: f64) -> LoadSpec {
    LoadSpec {
        outstanding: 1 << 20,
        time_ns: ns(MEASURED_S),
        seed: 1 + vm as u64,
        rate: Some(Rate { per_second, arrivals: Arrivals::Poisson }),
        ..LoadSpec::new(AccessSpec::single(AccessLine::new(4096, 50.0, 100.0)), DISK_BYTES)
    }
}

fn main() {
    let hdd = HddModel { capacity_bytes: MACHINES as u64 * DISK_BYTES * 160 / 60, ..HddModel::default() };
    let settings = Settings { hdd, disk_bytes: Some(DISK_BYTES), ..Settings::default() };
    let predictors = calibrate(&hdd, &settings.ssd, 4096, 1).expect("a calibration").predictors;
    for slot_ms in [20.0, 30.0] {
        let system = System::new(Store::Partitioned { hit_percent: 50.0 }, Sharing::Slots(slot_ms));
        let bench = Bench { system, settings, predictors: predictors.clone() };
        let all = bench.most(&[true; MACHINES]);
        let alone = bench.most(&[false, true, false, false]);
        println!(
            "\nslots of {slot_ms} ms: {all:.0} a second of all four at most, {:.1} of each; {alone:.1} of one alone",
            all / MACHINES as f64
        );
        println!(
            "| share | of its slots | alone ms | beside ms | differs | the 8 % one: alone ms | beside ms | differs |"
        );
        println!("|---|---|---|---|---|---|---|---|---|");
        for percent in [8.0, 12.0, 16.0, 18.0, 20.0, 22.0, 23.0, 24.0] {
            let (low, high) = (0.08 * all, percent / 100.0 * all);
            let together = bench.open(&[low, high, high, high]);
            let lone = [bench.open(&[low, 0.0, 0.0, 0.0])[0], bench.open(&[0.0, high, 0.0, 0.0])[1]];
            let cells = |vm: usize| {
                let (lone, beside) = (lone[vm].1, together[vm].1);
                let differs = deviation_percent(lone, beside).unwrap_or(f64::NAN);
                format!("{lone:.1} | {beside:.1} | {differs:.0} %")
            };
            let used = [alone, all / MACHINES as f64].map(|most| 100.0 * high / most);
            println!("| {percent} % | {:.0} % | {:.0} % | {} | {} |", used[0], used[1], cells(1), cells(0));
        }
    }
}
