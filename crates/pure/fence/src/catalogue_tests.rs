use std::collections::BTreeSet;

use super::*;
use crate::cache::{CacheConfig, CachePartitions};
use crate::predict::{FastPredictor, Knot, Predictors, SlowPredictor};
use crate::{Backing, Config, DeviceConfig, DiskConfig, DiskParameters, Fence};

fn parameters() -> Parameters {
    let slow = SlowPredictor::new(vec![Knot { distance_bytes: 0, access_ns: 8e6 }], 0);
    Parameters {
        disks: vec![DiskParameters::EQUAL; 2],
        slot_ns: 20_000_000,
        spare_slots: 0,
        max_batch: MAX_BATCH,
        predict: Predictors { slow, fast: FastPredictor { base_ns: 0.0, per_io_ns: 1e5 } },
    }
}

fn config(variant: &Variant, scheduler: SchedulerConfig) -> Config {
    let cache = |partitions| {
        Backing::Cached(CacheConfig {
            uuid: [1; 16],
            partitions,
            free_target: 64,
            low_watermark: 16,
            scratch_blocks: 64,
            bypass_bytes: Vec::new(),
        })
    };
    let disk = |disk: u64| DiskConfig {
        uuid: u128::from(disk + 1).to_le_bytes(),
        offset_bytes: disk << 20,
        size_bytes: 1 << 20,
    };
    Config {
        disks: (0..2).map(disk).collect(),
        slow: DeviceConfig { size_bytes: 1 << 30, depth: 1 },
        fast: DeviceConfig { size_bytes: 1 << 30, depth: 1 },
        backing: match variant.placement {
            Placement::Slow => Backing::Slow,
            Placement::Fast => Backing::Fast,
            Placement::Shared => cache(CachePartitions::Shared(512)),
            Placement::Partitioned => cache(CachePartitions::PerDisk(vec![256; 2])),
        },
        scheduler,
        max_request_bytes: 64 << 10,
    }
}

#[test]
fn each_variant_has_a_name_of_its_own_and_makes_a_fence() {
    let names: BTreeSet<String> = CATALOGUE.iter().map(|variant| variant.name.to_ascii_lowercase()).collect();
    assert_eq!(names.len(), CATALOGUE.len());
    for variant in CATALOGUE {
        let configures = [Some(variant.scheduler), variant.modelled_host].into_iter().flatten();
        for configure in configures {
            let scheduler = configure(&parameters());
            assert_eq!(variant.slot_ms.is_some(), matches!(scheduler, SchedulerConfig::Slots(_)));
            let fence = Fence::new(config(variant, scheduler));
            fence.map(drop).unwrap_or_else(|error| panic!("{variant:?}: {error}"));
        }
        assert_eq!(find(&variant.name.to_lowercase()), Some(variant));
        assert!(!variant.description.is_empty() && !variant.description.ends_with('.'), "{variant:?}");
    }
    assert!(find("").is_none() && find("VirtualFenc").is_none());
}

#[test]
fn table_1_has_the_paper_s_six_rows_and_four_of_them_have_slots() {
    let table: Vec<&Variant> = CATALOGUE.into_iter().filter(|variant| variant.kind == Kind::Table1).collect();
    assert_eq!(table.iter().filter(|variant| variant.slot_ms == Some(20.0)).count(), 4);
    assert_eq!(table.iter().filter(|variant| variant.placement.is_cached()).count(), 4);
    assert!(table.len() == 6 && table.iter().all(|variant| variant.fixed));
}
