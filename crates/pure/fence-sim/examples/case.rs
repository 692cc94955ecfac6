//! Prints the cases of the figures named.
use virtbench_fence_sim::client::Personality;
use virtbench_fence_sim::experiment::*;
fn main() {
    let mut settings = Settings::default();
    if std::env::var("CAL").is_ok() {
        settings.calibration_bytes = std::env::var("CAL").unwrap().parse().unwrap();
    }
    if std::env::var("ALL").is_ok() {
        settings.saturating = Saturating::All;
    }
    let p = virtbench_fence_sim::calibrate::calibrate(
        &settings.hdd,
        &settings.ssd,
        settings.calibration_bytes,
        1,
    )
    .unwrap()
    .predictors;
    for figure in std::env::args().skip(1).map(|f| f.parse::<Figure>().unwrap()) {
        for bar in figure.bars(&Personality::ALL) {
            if !bar.case.system.exists() {
                continue;
            }
            let case = bar.case;
            let t = std::time::Instant::now();
            let r = match case.run(&settings, &p) {
                Ok(r) => r,
                Err(e) => {
                    println!("{e}");
                    continue;
                }
            };
            println!(
                "{}: sat {:.1}/s, hit {:?} blocks {}, {} events, {:.2} s",
                case.name(),
                r.saturation,
                r.hit_rate,
                r.cache_blocks,
                r.events,
                t.elapsed().as_secs_f64()
            );
            for vm in &r.vms {
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
