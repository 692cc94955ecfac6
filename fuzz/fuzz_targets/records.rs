//! The lines of a run folder, of each kind of study: what is cut off at a kill leaves whole lines before it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use virtbench_record::{PointRecord, Record, SetRecord, Trial, parse_records};

fn read<R: Record>(text: &str) {
    if let Ok((records, length)) = parse_records::<R>(text) {
        let (again, whole) = parse_records::<R>(&text[..length]).expect("whole lines are read again");
        assert_eq!((again.len(), whole), (records.len(), length));
    }
}

fuzz_target!(|text: &str| {
    read::<PointRecord>(text);
    read::<SetRecord>(text);
    read::<Trial>(text);
});
