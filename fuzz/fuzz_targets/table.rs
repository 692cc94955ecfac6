//! Tables of results of any kind: no bytes panic, and what is read is within its limits.

#![no_main]

use libfuzzer_sys::fuzz_target;
use virtbench_formats::{AnyTable, MAX_ROWS, read_any_table};

fuzz_target!(|bytes: &[u8]| match read_any_table(bytes) {
    Ok(AnyTable::Points(table)) => {
        assert!(!table.rows.is_empty() && table.rows.len() <= MAX_ROWS);
        for row in &table.rows {
            assert!(row.point.block_bytes > 0 && row.point.read_percent <= 100 && row.point.random_percent <= 100);
            assert!(row.figures.iops.is_finite() && row.figures.bytes_per_second.is_finite());
        }
    }
    Ok(AnyTable::Application(table)) => {
        assert!(!table.rows.is_empty() && table.rows.len() <= MAX_ROWS);
        assert!(table.rows.iter().flat_map(|row| row.known.values()).all(|value| value.is_finite()));
    }
    Ok(AnyTable::Tiles(table)) => {
        assert!(!table.rows.is_empty() && table.rows.len() <= MAX_ROWS);
        assert!(table.rows.iter().all(|row| (1..=row.tiles).contains(&row.tile)));
        assert!(table.rows.iter().filter_map(|row| row.done).all(|[value, reference]| value >= 0.0 && reference > 0.0));
    }
    Ok(AnyTable::Operations(table)) => assert!(!table.rows.is_empty() && table.rows.len() <= MAX_ROWS),
    Err(_) => {}
});
