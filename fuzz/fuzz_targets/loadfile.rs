//! dbench loadfiles: no bytes panic, and every name stays in its client's folder.

#![no_main]

use libfuzzer_sys::fuzz_target;
use virtbench_formats::read_loadfile;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(load) = read_loadfile(bytes) {
        assert!(load.names.iter().all(|name| name.split('/').all(|part| part != "..")));
    }
});
