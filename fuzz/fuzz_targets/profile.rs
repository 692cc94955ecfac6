//! Profiles and results of model loads: no bytes panic, and what is read is possible.

#![no_main]

use libfuzzer_sys::fuzz_target;
use virtbench_formats::{read_model_runs, read_profile};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(profile) = read_profile(bytes) {
        assert!(profile.check().is_ok() && profile.rate() > 0.0);
    }
    if let Ok(runs) = read_model_runs(bytes) {
        assert!(runs.check().is_ok());
    }
});
