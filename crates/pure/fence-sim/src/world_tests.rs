//! The world against queueing theory, and against itself.

use super::*;
use crate::client::{ClosedLoop, Personality};
use crate::disk::SsdProfile;
use virtbench_fence::{Backing, DeviceConfig, DiskConfig, SchedulerConfig};
use virtbench_units::Random;
use virtbench_workload::{Pace, TraceOp};

const GIB: u64 = 1 << 30;

fn config(vms: u16, clients: Vec<Client>, seed: u64) -> WorldConfig {
    let disk = |vm: u16| DiskConfig {
        uuid: u128::from(vm + 1).to_le_bytes(),
        offset_bytes: u64::from(vm) * 30 * GIB,
        size_bytes: 30 * GIB,
    };
    WorldConfig {
        fence: Config {
            disks: (0..vms).map(disk).collect(),
            slow: DeviceConfig { size_bytes: 160_000_000_000, depth: 1 },
            fast: DeviceConfig { size_bytes: 60_000_000_000, depth: 1 },
            backing: Backing::Slow,
            scheduler: SchedulerConfig::Fifo,
            max_request_bytes: 128 << 10,
        },
        hdd: HddModel::default(),
        ssd: SsdModel::new(SsdProfile::Spec),
        hdd_order: Order::Arrival,
        clients,
        fill: 0,
        span: Span { warm_up_ns: 1_000_000_000, measure_ns: 60_000_000_000 },
        seed,
    }
}

fn closed(threads: u32, think_ms: f64) -> Client {
    Client::Closed(ClosedLoop {
        personality: Personality::Fileserver,
        files: 1000,
        threads,
        think_ns: think_ms * 1e6,
        page_cache_hits: 0.0,
    })
}

/// Poisson arrivals of random 4 KiB reads, `rho` of what the disk can serve.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // times of a test
fn poisson(rho: f64, count: usize, mean_ms: f64, seed: u64) -> Vec<TraceOp> {
    let mut random = Random::new(seed);
    let mut at_ns = 0.0;
    (0..count)
        .map(|_| {
            at_ns -= (1.0 - random.unit()).ln() * mean_ms * 1e6 / rho;
            let offset = random.below(30 * GIB / 4096) * 4096;
            TraceOp { time_ns: at_ns as u64, offset, len: 4096, action: TraceAction::Read, line: 1 }
        })
        .collect()
}

/// Mean waiting in a queue with Poisson arrivals and general service (Pollaczek and Khinchine):
/// rho * E[S] * (1 + cv^2) / (2 * (1 - rho)).
#[test]
fn waiting_is_that_of_an_m_g_1_queue() {
    let mut disk = Hdd::new(HddModel::default(), 11);
    let mut random = Random::new(12);
    let (mut sum, mut squares) = (0.0, 0.0);
    for _ in 0..400_000 {
        let ms = disk.service_ns(random.below(30 * GIB / 4096) * 4096, 4096) as f64 / 1e6;
        sum += ms;
        squares += ms * ms;
    }
    let (mean, square) = (sum / 4e5, squares / 4e5);
    for rho in [0.3, 0.6, 0.8] {
        let ops = poisson(rho, 400_000, mean, 13).into();
        let trace = Client::Trace { ops, pace: Pace::Speed(1.0), outstanding: u32::MAX };
        let mut config = config(1, vec![trace], 14);
        config.span = Span { warm_up_ns: 100_000_000_000, measure_ns: 5_000_000_000_000 };
        let figures = &World::new(config).unwrap().run().unwrap().vms[0];
        let want = mean + rho * square / mean / (2.0 * (1.0 - rho));
        let got = figures.mean_ms().unwrap();
        // Successive seeks share a position; that correlation is small beside these 3 %.
        assert!((got / want - 1.0).abs() < 0.03, "rho {rho}: {got} ms for {want} ms");
    }
}

fn bytes_of(outcome: &Outcome) -> Vec<u8> {
    let mut text = format!("{:?} {:?}\n", outcome.events, outcome.busy);
    for vm in &outcome.vms {
        text += &format!(
            "{} {} {:?} {}\n",
            vm.accesses,
            vm.bytes,
            vm.summary(),
            vm.response.encode_histogram().unwrap()
        );
    }
    text.into_bytes()
}

#[test]
fn a_seed_determines_every_byte() {
    let run = |seed| {
        let clients = vec![closed(3, 50.0), closed(1, 20.0)];
        bytes_of(&World::new(config(2, clients, seed)).unwrap().run().unwrap())
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}

#[test]
fn response_times_and_throughput_obey_little_s_law() {
    let (threads, think_ms) = (6, 40.0);
    let mut config = config(1, vec![closed(threads, think_ms)], 7);
    config.span.measure_ns = 2_000_000_000_000;
    let figures = &World::new(config).unwrap().run().unwrap().vms[0];
    let want = f64::from(threads) / (think_ms + figures.mean_ms().unwrap()) * 1e3;
    assert!((figures.per_second() / want - 1.0).abs() < 0.01, "{} for {want}", figures.per_second());
    assert_eq!(figures.failed, 0);
}

#[test]
fn a_machine_does_the_same_alone_and_in_company() {
    let accesses = |clients| {
        let machines = Machines::new(clients, &[30 * GIB, 30 * GIB], 3);
        machines.threads.len()
    };
    assert_eq!(accesses(&[closed(2, 1.0), Client::Off]), 2);
    let first = |clients: &[Client]| {
        let mut machines = Machines::new(clients, &[30 * GIB, 30 * GIB], 3);
        (0..50).map(|_| format!("{:?} {}", machines.step(0), machines.think_ns(0))).collect::<Vec<_>>()
    };
    assert_eq!(first(&[closed(2, 1.0), Client::Off]), first(&[closed(2, 1.0), closed(9, 0.0)]));
}

#[test]
fn worlds_that_cannot_be_are_refused() {
    let refused = |config: WorldConfig| World::new(config).err().unwrap().to_string();
    let mut none = config(1, vec![Client::Off], 1);
    none.span.measure_ns = 0;
    assert!(refused(none).contains("span"));
    assert!(refused(config(2, vec![Client::Off], 1)).contains("1 clients for 2"));
    let mut ops = poisson(0.5, 10, 10.0, 1);
    ops.swap(3, 7);
    let trace = Client::Trace { ops: ops.into(), pace: Pace::Max, outstanding: 4 };
    assert!(refused(config(1, vec![trace], 1)).contains("trace"));
    let mut stopped = config(1, vec![Client::Off], 1);
    stopped.hdd.rpm = f64::NAN;
    assert!(refused(stopped).contains("`rpm`"));
}

#[test]
fn a_trace_as_fast_as_it_goes_keeps_its_outstanding_operations() {
    let run = |outstanding| {
        let ops = poisson(0.5, 500, 10.0, 1).into();
        let trace = Client::Trace { ops, pace: Pace::Max, outstanding };
        let mut config = config(1, vec![trace], 1);
        config.span.warm_up_ns = 0;
        World::new(config).unwrap().run().unwrap().vms[0].accesses
    };
    assert_eq!(run(1), 500);
    assert_eq!(run(8), 500);
}
