use virtbench_fence::catalogue::CATALOGUE;
use virtbench_fence_sim::World;
use virtbench_fence_sim::calibrate::calibrate;
use virtbench_fence_sim::client::{ClosedLoop, Personality};

use super::*;

/// Two closed loops for two seconds on each row.
#[test]
fn every_variant_of_the_catalogue_is_a_world_that_serves() {
    let settings = Settings::default();
    let predictors = calibrate(&settings.hdd, &settings.ssd, 4096, settings.seed).unwrap().predictors;
    let client = ClosedLoop {
        personality: Personality::Webserver,
        files: 200,
        threads: 2,
        think_ns: 0.0,
        page_cache_hits: 0.0,
    };
    for variant in CATALOGUE {
        let system = System::listed(variant);
        let span = Span { warm_up_ns: 0, measure_ns: 2_000_000_000 };
        let clients = vec![Client::Closed(client); 2];
        let world = system.world(&settings, &predictors, 1000, clients, span, 1);
        assert_eq!(
            world.fence.scheduler == SchedulerConfig::Fifo,
            *variant == catalogue::FIFO || *variant == catalogue::PASS_THROUGH
        );
        assert_eq!(world.fence.slow.depth == u32::MAX, variant.unlimited_depth, "{variant:?}");
        let outcome = World::new(world).unwrap().run().unwrap();
        assert!(outcome.vms.iter().all(|vm| vm.per_second() > 5.0), "{variant:?}");
    }
}

#[test]
fn what_was_chosen_is_what_the_catalogue_has() {
    let settings = Settings::default();
    let predictors = calibrate(&settings.hdd, &settings.ssd, 4096, settings.seed).unwrap().predictors;
    let listed = System::listed(&catalogue::PACED);
    let chosen = System::new(listed.store, Sharing::Paced(Pacing::CHOSEN));
    assert_eq!(
        listed.scheduler(&settings, &predictors, 4),
        chosen.scheduler(&settings, &predictors, 4),
        "one of the two was changed alone"
    );
}
