//! Filebench models: no bytes panic, and what is read is valid.

#![no_main]

use libfuzzer_sys::fuzz_target;
use virtbench_formats::read_filebench;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(file) = read_filebench("fuzz", bytes, &[]) {
        assert!(file.model.validate().is_ok());
    }
});
