//! What a machine's processors did while it was measured.

use virtbench_record::{HostUse, PointRecord};

/// Averages over the measurements of an environment.
#[derive(Debug, Clone, PartialEq)]
pub struct MachineUse {
    /// All processors together, in percent of one.
    pub cpu_percent: f64,
    /// What a hypervisor below it took away, in percent of one processor.
    pub steal_percent: f64,
    /// Each processor, in percent; empty where not every measurement has them.
    pub each_percent: Vec<f64>,
}

/// What the machine of an environment did; nothing where nothing was measured there.
#[must_use]
pub fn machine_use(records: &[PointRecord], environment: &str) -> Option<MachineUse> {
    let of_environment = records.iter().filter(|record| record.environment == environment);
    let hosts: Vec<&HostUse> =
        of_environment.filter_map(|record| record.measured()).map(|measured| &measured.host).collect();
    let processors = hosts.first()?.each_percent.len();
    let average = |value: &dyn Fn(&HostUse) -> f64| {
        hosts.iter().map(|host| value(host)).sum::<f64>() / hosts.len() as f64
    };
    let each = (0..processors).filter(|_| hosts.iter().all(|host| host.each_percent.len() == processors));
    Some(MachineUse {
        cpu_percent: average(&|host| host.cpu_percent),
        steal_percent: average(&|host| host.steal_percent),
        each_percent: each.map(|index| average(&|host| host.each_percent[index])).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use virtbench_record::{PointKey, PointStatus};

    use crate::test_support::good;

    #[test]
    fn each_processor_is_averaged_over_the_measurements_of_its_machine() {
        let measured = |environment, repetition, each: &[f64]| {
            let key = PointKey { block_bytes: 4096, read_percent: 100, random_percent: 100 };
            let mut record = good(key, environment, repetition, 100.0, each.iter().sum());
            if let PointStatus::Measured(measured) = &mut record.status {
                measured.host.each_percent = each.to_vec();
                measured.host.steal_percent = 3.0;
            }
            record
        };
        let mut records =
            vec![measured("a", 0, &[10.0, 30.0]), measured("a", 1, &[20.0, 50.0]), measured("b", 0, &[9.0])];
        let used = machine_use(&records, "a").unwrap();
        assert_eq!((used.cpu_percent, used.steal_percent), (55.0, 3.0));
        assert_eq!(used.each_percent, [15.0, 40.0]);
        records.push(measured("a", 2, &[]));
        assert_eq!(machine_use(&records, "a").unwrap().each_percent, [0.0; 0]);
        assert_eq!(machine_use(&records, "c"), None);
    }
}
