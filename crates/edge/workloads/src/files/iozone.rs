//! Iozone's tests.

use std::fs::File;
use std::io;
use std::path::Path;

use virtbench_engine::{Buffers, Positioned};
use virtbench_units::{Random, format_bytes};
use virtbench_workload::files::{IozoneSpec, IozoneTest};

use crate::files::board::Ended;
use crate::files::model::shuffle;
use crate::files::trials::{Trial, Trials};

/// Makes all tests for each size of a record in turn.
pub(crate) fn perform(spec: &IozoneSpec, trials: &mut Trials<'_>) -> Result<(), Ended> {
    let path = trials.path("iozone");
    for &record_bytes in &spec.record_bytes {
        let name = |test: IozoneTest| format!("{} {}", test.name(), format_bytes(record_bytes));
        let mut buffers = trials.buffers(record_bytes)?;
        let file = trials.open(&path, true).map_err(|error| Ended::by("making", &path, &error))?;
        if !spec.tests.contains(&IozoneTest::Write) {
            make(&file, spec, record_bytes, &mut buffers, &path)?;
        }
        for test in IozoneTest::ALL.into_iter().filter(|test| spec.tests.contains(test)) {
            let records = Records::of_test(test, spec, record_bytes, &mut trials.random);
            let sync = spec.include_flush && test.writes();
            trials.test(&name(test), &path, |trial| {
                one(test, &file, &records, record_bytes, &mut buffers, trial)?;
                if sync { file.sync_all() } else { Ok(()) }
            })?;
        }
    }
    std::fs::remove_file(&path).map_err(|error| Ended::by("deleting", &path, &error))
}

fn make(
    file: &File,
    spec: &IozoneSpec,
    record_bytes: u64,
    buffers: &mut Buffers,
    path: &Path,
) -> Result<(), Ended> {
    let len = len(record_bytes);
    for record in 0..spec.file_bytes / record_bytes {
        buffers.renew(0, len);
        file.write_all_at(&buffers.slot(0)[..len], record * record_bytes)
            .map_err(|error| Ended::by("writing", path, &error))?;
    }
    Ok(())
}

fn one(
    test: IozoneTest,
    file: &File,
    records: &Records,
    record_bytes: u64,
    buffers: &mut Buffers,
    trial: &mut Trial<'_>,
) -> io::Result<()> {
    for record in records.iter() {
        let (offset, len) = (record * record_bytes, len(record_bytes));
        if test.writes() {
            trial.make(|| buffers.renew(0, len));
            let data = &buffers.slot(0)[..len];
            trial.operate(record_bytes, || file.write_all_at(data, offset))?;
        } else {
            let data = &mut buffers.slot(0)[..len];
            trial.operate(record_bytes, || file.read_exact_at(data, offset))?;
        }
    }
    Ok(())
}

#[allow(clippy::cast_possible_truncation)]
fn len(record_bytes: u64) -> usize {
    record_bytes as usize
}

/// In which order a test visits the records of the file.
#[derive(Debug)]
struct Records {
    count: u64,
    order: Order,
}

#[derive(Debug)]
enum Order {
    Forward,
    Backward,
    Same,
    Strided(u64),
    Random(Vec<u32>),
}

impl Records {
    fn of_test(test: IozoneTest, spec: &IozoneSpec, record_bytes: u64, random: &mut Random) -> Self {
        let count = spec.file_bytes / record_bytes;
        let order = match test {
            IozoneTest::Write | IozoneTest::Rewrite | IozoneTest::Read | IozoneTest::Reread => Order::Forward,
            IozoneTest::BackwardRead => Order::Backward,
            IozoneTest::RecordRewrite => Order::Same,
            IozoneTest::StridedRead => Order::Strided(spec.stride_records),
            IozoneTest::RandomRead | IozoneTest::RandomWrite => {
                let mut order: Vec<u32> = (0..u32::try_from(count).unwrap_or(u32::MAX)).collect();
                shuffle(&mut order, random);
                Order::Random(order)
            }
        };
        Self { count, order }
    }

    fn iter(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        let count = self.count;
        match &self.order {
            Order::Forward => Box::new(0..count),
            Order::Backward => Box::new((0..count).rev()),
            Order::Same => Box::new((0..count).map(move |_| count / 2)),
            Order::Strided(stride) => {
                let stride = usize::try_from(*stride).unwrap_or(usize::MAX);
                Box::new((0..stride as u64).flat_map(move |first| (first..count).step_by(stride)))
            }
            Order::Random(order) => Box::new(order.iter().map(|record| u64::from(*record))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_test_visits_each_record_once_but_the_one_that_stays(
            count in 1u64..500, stride in 1u64..40, seed in any::<u64>(),
        ) {
            let spec = IozoneSpec { stride_records: stride, ..IozoneSpec::new(count * 4096) };
            for test in IozoneTest::ALL {
                let mut visited: Vec<u64> = Records::of_test(test, &spec, 4096, &mut Random::new(seed)).iter().collect();
                prop_assert_eq!(visited.len() as u64, count);
                if test != IozoneTest::RecordRewrite {
                    visited.sort_unstable();
                    prop_assert_eq!(visited, (0..count).collect::<Vec<u64>>());
                }
            }
        }
    }

    #[test]
    fn a_strided_read_leaps() {
        let spec = IozoneSpec { stride_records: 3, ..IozoneSpec::new(8 * 4096) };
        let records = Records::of_test(IozoneTest::StridedRead, &spec, 4096, &mut Random::new(1));
        assert_eq!(records.iter().collect::<Vec<u64>>(), [0, 3, 6, 1, 4, 7, 2, 5]);
    }
}
