//! The emulated device in a time of the test's own, over a real file and a real ring.

use std::fs::File;
use std::time::Duration;

use virtbench_fence::{Device, DiskId};
use virtbench_units::Random;

use super::super::{Opened, open};
use super::*;
use crate::config::DeviceSpec;
use crate::memory::{Buffer, Segment};
use crate::ring::Event;

const FILE_BYTES: u64 = 64 << 20;

/// A command: when it comes in, what it does, where.
type Arrival = (u64, DeviceOp, u64);

struct Bench {
    backend: Box<dyn Backend>,
    ring: Ring,
    under_way: usize,
    _folder: tempfile::TempDir,
}

impl Bench {
    fn new(device: &str) -> Self {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = folder.path().join("disk");
        File::create(&path).unwrap().set_len(FILE_BYTES).unwrap();
        let (kind, options) = device.split_once('?').unwrap_or((device, ""));
        let spec: DeviceSpec = format!("{kind}:{}?{options}", path.display()).parse().unwrap();
        let Opened { backend, .. } = open(Device::Slow, &spec).unwrap();
        Self { backend, ring: Ring::new(64).unwrap(), under_way: 0, _folder: folder }
    }

    /// Lets the file do its part of everything.
    fn settle(&mut self, now: Time) {
        for _ in 0..1000 {
            let mut events = Vec::new();
            self.ring.submit().unwrap();
            self.ring.reap(64, &mut events);
            for event in events {
                let Event::Device { slot, result, .. } = event else { panic!("{event:?}") };
                self.under_way -= 1;
                self.backend.on_ring(now, slot, result, &mut self.ring);
            }
            if self.under_way == 0 {
                return;
            }
            self.ring.wait(Some(Duration::from_secs(10))).unwrap();
        }
        panic!("the file is not done");
    }

    /// Plays arrivals, each with its place as its slot: what finished when, nanoseconds.
    fn play(&mut self, arrivals: &[Arrival], sync: bool) -> Vec<(u32, u64)> {
        let memory = Buffer::zeroed(arrivals.len() * 4096);
        let whole = [memory.segment()];
        let mut finished = Vec::new();
        let mut next = 0;
        while finished.len() < arrivals.len() {
            let arrival = arrivals.get(next).map(|(at, ..)| Time::from_ns(*at));
            let due = self.backend.next_deadline();
            let now = arrival.into_iter().chain(due).min().expect("it waits for nothing");
            if due.is_some_and(|due| due <= now) {
                self.backend.on_timer(now, &mut self.ring);
            } else {
                let (_, op, offset_bytes) = arrivals[next];
                let mut segments: Vec<Segment> = Vec::new();
                let moves = op != DeviceOp::Flush;
                assert!(!moves || crate::memory::slice(&whole, next * 4096, 4096, &mut segments));
                let len_bytes = if moves { 4096 } else { 0 };
                let slot = u32::try_from(next).unwrap();
                self.backend.start(
                    now,
                    &Io { slot, disk: DiskId(0), op, offset_bytes, len_bytes, segments: &segments },
                    &mut self.ring,
                );
                self.under_way += usize::from(moves || sync);
                next += 1;
                self.settle(now);
            }
            while let Some(Finished { slot, result }) = self.backend.finished() {
                assert_eq!(result, Ok(()));
                finished.push((slot, now.ns()));
            }
        }
        finished
    }
}

fn arrivals(seed: u64, count: usize, gap_ns: u64) -> Vec<Arrival> {
    let mut random = Random::new(seed);
    let mut at = 0;
    (0..count)
        .map(|_| {
            at += random.below(gap_ns);
            let op = [DeviceOp::Read, DeviceOp::Write, DeviceOp::Flush]
                [usize::try_from(random.below(100)).unwrap() * 3 / 150];
            (at, op, random.below(FILE_BYTES / 4096) * 4096)
        })
        .collect()
}

/// What the simulator makes of the same arrivals.
fn simulated(mut station: Station<u32>, arrivals: &[Arrival]) -> Vec<(u32, u64)> {
    let mut finished = Vec::new();
    let mut due: Option<u64> = None;
    let mut next = 0;
    while finished.len() < arrivals.len() {
        match (due, arrivals.get(next)) {
            (Some(at), arrival) if arrival.is_none_or(|(arrives, ..)| at <= *arrives) => {
                let (slot, after) = station.done().unwrap();
                finished.push((slot, at));
                due = after.map(|ns| at + ns);
            }
            (_, Some(&(at, op, offset))) => {
                let tag = u32::try_from(next).unwrap();
                let len = if op == DeviceOp::Flush { 0 } else { 4096 };
                due = station.take_in(Command { tag, offset, len, op }).map_or(due, |ns| Some(at + ns));
                next += 1;
            }
            (None, None) | (Some(_), None) => unreachable!(),
        }
    }
    finished
}

fn hdd(seed: u64, order: Order) -> Station<u32> {
    use virtbench_fence_sim::disk::HddModel;
    let model = HddModel { capacity_bytes: FILE_BYTES, ..HddModel::default() };
    Station::new(Model::Hdd(Hdd::new(model, seed)), order)
}

#[test]
fn it_does_at_each_moment_what_the_simulator_s_does() {
    use virtbench_fence_sim::disk::{SsdModel, SsdProfile};
    let ssd = |profile| Station::new(Model::Ssd(Ssd::new(SsdModel::new(profile), 5)), Order::Arrival);
    let cases = [
        ("hdd?seed=5", hdd(5, Order::Scan), 20_000_000),
        ("hdd?seed=5&sync=off", hdd(5, Order::Scan), 5_000_000),
        ("hdd?seed=9&order=arrival&sync=off", hdd(9, Order::Arrival), 5_000_000),
        ("ssd?seed=5&profile=spec&sync=off", ssd(SsdProfile::Spec), 300_000),
        ("ssd?seed=5&profile=paper-fit", ssd(SsdProfile::PaperFit), 1_000_000),
    ];
    for (device, station, gap_ns) in cases {
        let commands = arrivals(3, 120, gap_ns);
        let found = Bench::new(device).play(&commands, !device.contains("sync=off"));
        assert_eq!(found, simulated(station, &commands), "{device}");
    }
}

#[test]
fn a_lone_access_takes_at_least_seek_and_transfer_and_at_most_a_turn_more() {
    let model = hdd_model();
    let transfer_ms = 4096.0 / model.bytes_per_s * 1e3;
    let mut head = 0;
    let lone: Vec<Arrival> =
        arrivals(7, 50, 2).iter().zip(1..).map(|(a, n)| (n * 100_000_000, DeviceOp::Read, a.2)).collect();
    let finished = Bench::new("hdd").play(&lone, true);
    for ((at, _, offset), (_, done)) in lone.iter().zip(finished) {
        let ms = (done - at) as f64 / 1e6;
        let seek_ms = model.seek.ms(offset.abs_diff(head) as f64 / FILE_BYTES as f64);
        let least_ms = seek_ms + transfer_ms;
        assert!(
            (least_ms - 1e-6..=least_ms + model.revolution_ms() + 1e-6).contains(&ms),
            "{ms} at {offset}"
        );
        head = offset + 4096;
    }
}

fn hdd_model() -> virtbench_fence_sim::disk::HddModel {
    virtbench_fence_sim::disk::HddModel::default()
}

#[test]
fn what_the_file_has_not_done_is_not_over_and_holds_up_what_follows() {
    let mut bench = Bench::new("ssd?sync=off");
    let memory = Buffer::zeroed(8192);
    let segments = [memory.segment()];
    for slot in 0..2u32 {
        let io = Io {
            slot,
            disk: DiskId(0),
            op: DeviceOp::Read,
            offset_bytes: 0,
            len_bytes: 8192,
            segments: &segments,
        };
        bench.backend.start(Time::ZERO, &io, &mut bench.ring);
    }
    let flush =
        Io { slot: 2, disk: DiskId(0), op: DeviceOp::Flush, offset_bytes: 0, len_bytes: 0, segments: &[] };
    bench.backend.start(Time::ZERO, &flush, &mut bench.ring);
    let late = Time::from_ns(1_000_000_000);
    bench.backend.on_timer(late, &mut bench.ring);
    assert_eq!((bench.backend.finished(), bench.backend.next_deadline()), (None, None));
    bench.backend.on_ring(late, 1, 8192, &mut bench.ring);
    assert_eq!(bench.backend.finished(), None, "the first is served first");
    bench.backend.on_ring(late, 0, -libc::EIO, &mut bench.ring);
    let over = std::iter::from_fn(|| bench.backend.finished()).collect::<Vec<_>>();
    let results: Vec<_> = over.iter().map(|one| (one.slot, one.result.is_ok())).collect();
    assert_eq!(results, [(0, false), (1, true), (2, true)]);
    bench.under_way = 0;
}
