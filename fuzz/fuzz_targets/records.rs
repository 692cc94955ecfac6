//! The lines of a run folder: what is cut off at a kill leaves whole lines before it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use virtbench_record::parse_records;

fuzz_target!(|text: &str| {
    if let Ok((records, length)) = parse_records(text) {
        let (again, whole) = parse_records(&text[..length]).expect("whole lines are read again");
        assert_eq!((again.len(), whole), (records.len(), length));
    }
});
