//! Prints one case.
use virtbench_fence_sim::client::Personality;
use virtbench_fence_sim::experiment::*;
fn main() {
    let settings = Settings::default();
    let c = virtbench_fence_sim::calibrate::calibrate(
        &settings.hdd,
        &settings.ssd,
        settings.calibration_bytes,
        1,
    )
    .unwrap();
    println!("{:?} {:?} {:?}", c.slow, c.fast, c.predictors);
    let p = c.predictors;
    for system in [
        System::new(Store::Hdd, Sharing::Fifo),
        System::new(Store::Hdd, Sharing::Slots(20.0)),
        System::new(Store::Ssd, Sharing::Slots(20.0)),
    ] {
        for workload in [Personality::Fileserver, Personality::Mailserver] {
            let case = Case::heterogeneous(system, workload);
            let t = std::time::Instant::now();
            let r = case.run(&settings, &p).unwrap();
            println!(
                "{}: sat {:.1}/s, {} events, {:.2} M/s",
                case.name(),
                r.saturation,
                r.events,
                r.events as f64 / t.elapsed().as_secs_f64() / 1e6
            );
            for vm in &r.vms[..2] {
                println!(
                    "  threads {} think {:.1} ms wanted {:.1} got {:.1}->{:.1}; R {:.2}->{:.2} ms; dX {:.1} dR {:.1} [{:?}]",
                    vm.paced.client.threads,
                    vm.paced.client.think_ns / 1e6,
                    vm.paced.wanted,
                    vm.throughput[0].mean,
                    vm.throughput[1].mean,
                    vm.response_ms[0].mean,
                    vm.response_ms[1].mean,
                    vm.throughput_deviation.mean,
                    vm.response_deviation.mean,
                    vm.response_deviation.span()
                );
            }
        }
    }
}
