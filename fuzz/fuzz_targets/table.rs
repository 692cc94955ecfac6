//! Tables of results: no bytes panic, and what is read is within its limits.

#![no_main]

use libfuzzer_sys::fuzz_target;
use virtbench_formats::{MAX_ROWS, read_table};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(table) = read_table(bytes) {
        assert!(!table.rows.is_empty() && table.rows.len() <= MAX_ROWS);
        for row in &table.rows {
            assert!(row.point.block_bytes > 0 && row.point.read_percent <= 100 && row.point.random_percent <= 100);
            assert!(row.figures.iops.is_finite() && row.figures.bytes_per_second.is_finite());
        }
    }
});
