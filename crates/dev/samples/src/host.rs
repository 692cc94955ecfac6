//! A host that was used, and the appliances on it.

use virtbench_record::{ApplianceFacts, HostUse, PathCost};

/// A quiet host of two processors, of which so much was used, in percent of one.
pub fn host_use(cpu_percent: f64, user_percent: f64, system_percent: f64) -> HostUse {
    HostUse {
        cpu_percent,
        user_percent,
        system_percent,
        steal_percent: 0.0,
        others_percent: None,
        runnable: None,
        processors: 2,
        each_percent: Vec::new(),
        each_user_percent: Vec::new(),
    }
}

/// The way to an appliance.
pub fn path() -> PathCost {
    PathCost {
        round_trips: 1000,
        round_trip_min_ns: 200_000,
        round_trip_median_ns: 300_000,
        round_trip_p99_ns: 600_000,
        to_bytes_per_s: 6e7,
        from_bytes_per_s: 4e7,
    }
}

/// An appliance of this recipe that was ready after so long.
pub fn appliance(recipe: &str, ready_ns: u64) -> ApplianceFacts {
    ApplianceFacts {
        recipe: recipe.into(),
        vcpus: 1,
        memory_bytes: 256 << 20,
        network: "user".into(),
        boot_ns: 2_000_000_000,
        crossing: None,
        ready_ns,
        services: Vec::new(),
        path: Some(path()),
        command_line: Vec::new(),
        notes: Vec::new(),
    }
}
