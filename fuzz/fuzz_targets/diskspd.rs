//! Loads in the format Diskspd: no bytes panic, and what is imported is valid.

#![no_main]

use libfuzzer_sys::fuzz_target;
use virtbench_formats::{Format, import};

fuzz_target!(|bytes: &[u8]| {
    let strict = import(bytes, Some(Format::Diskspd), false);
    if let Ok(load) = import(bytes, Some(Format::Diskspd), true) {
        assert!(load.jobs.iter().all(|job| job.load.validate().is_ok()));
        assert_eq!(strict.is_ok(), load.ignored.is_empty());
    } else {
        assert!(strict.is_err());
    }
});
