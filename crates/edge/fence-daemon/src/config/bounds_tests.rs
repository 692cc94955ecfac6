use super::super::Config;

const TEXT: &str = "
[slow]
device = 'null:1 GiB'
[fast]
device = 'null:1 GiB'
[cache]
[scheduler]
name = 'VirtualFence'
[scheduler.predict]
[limits]
[nbd]
listen = 'unix:/n'
[[disk]]
name = 'a'
size = '16 MiB'
cache = '4 MiB'
export = 'a'
[[disk]]
name = 'b'
size = '16 MiB'
cache = '4 MiB'
export = 'b'
";

/// A configuration with a line put behind the `place`th time that `head` stands there.
fn load(head: &str, place: usize, line: &str) -> Result<Config, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fence.toml");
    let at = TEXT.match_indices(head).nth(place).unwrap().0 + head.len();
    std::fs::write(&path, format!("{}{line}\n{}", &TEXT[..at], &TEXT[at..])).unwrap();
    Config::load(&path).map_err(|error| error.to_string())
}

#[test]
fn numbers_without_bounds_are_refused_by_key_and_line() {
    let (slow, fast) = ("[slow]\n", "[fast]\n");
    for (head, place, line, says) in [
        (slow, 0, "depth = 0", "line 3: slow.depth 0: use 1 to 65536"),
        (fast, 0, "depth = 4294967295", "line 5: fast.depth"),
        ("[cache]\n", 0, "scratch_blocks = 4294967295", "line 7: cache.scratch_blocks"),
        ("[scheduler]\n", 0, "slot_ms = inf", "line 8: scheduler.slot_ms inf: use 0.001 to 10000"),
        ("[scheduler]\n", 0, "slot_ms = nan", "line 8: scheduler.slot_ms NaN"),
        ("[scheduler]\n", 0, "slot_ms = 1e308", "line 8: scheduler.slot_ms"),
        ("[scheduler]\n", 0, "slot_ms = 3_600_000", "line 8: scheduler.slot_ms 3600000: use"),
        ("[scheduler]\n", 0, "slot_ms = -1.0", "line 8: scheduler.slot_ms"),
        ("[scheduler]\n", 0, "spare_slots = 4294967295", "line 8: scheduler.spare_slots"),
        ("[scheduler]\n", 0, "max_batch = 4294967295", "line 8: scheduler.max_batch"),
        ("[scheduler.predict]\n", 0, "slow_flush_ms = inf", "line 10: scheduler.predict.slow_flush_ms"),
        ("[scheduler.predict]\n", 0, "slow_knots = [[0, nan]]", "line 10: scheduler.predict.slow_knots"),
        ("[scheduler.predict]\n", 0, "fast_base_us = -1.0", "line 10: scheduler.predict.fast_base_us"),
        ("[scheduler.predict]\n", 0, "fast_per_io_us = 1e300", "line 10: scheduler.predict.fast_per_io_us"),
        ("[limits]\n", 0, "spin_us = 9223372036854775807", "line 11: limits.spin_us"),
        ("[nbd]\n", 0, "stall_s = 9223372036854775807", "line 12: nbd.stall_s"),
        ("[nbd]\n", 0, "negotiation_s = 0", "line 12: nbd.negotiation_s"),
        ("[nbd]\n", 0, "memory = '1 MiB'", "line 12: nbd.memory"),
        ("[[disk]]\n", 0, "slots = 4294967295", "line 14: disk a: slots 4294967295: use 0 to 1024"),
        ("[[disk]]\n", 1, "slots = 100000000", "line 19: disk b: slots"),
        ("[[disk]]\n", 1, "bypass = 100", "line 19: disk b: bypass 100: use 4096 to"),
        ("[[disk]]\n", 1, "share = nan", "line 19: disk b: share"),
        ("[[disk]]\n", 1, "iops = 0", "line 19: disk b: iops"),
        ("[[disk]]\n", 1, "bytes_per_s = 9223372036854775807", "line 19: disk b: bytes_per_s"),
        ("[[disk]]\n", 1, "limit_iops = 0", "line 19: disk b: limit_iops"),
        ("[[disk]]\n", 1, "reservation_iops = 9223372036854775807", "line 19: disk b: reservation_iops"),
        ("[[disk]]\n", 1, "weight = 0", "line 19: disk b: weight"),
    ] {
        let message = load(head, place, line).expect_err(line);
        assert!(message.contains(says), "{line}: {message}");
    }
    for (head, line) in
        [(slow, "depth = 1"), ("[scheduler]\n", "slot_ms = 0.5"), ("[[disk]]\n", "slots = 1024")]
    {
        load(head, 0, line).unwrap_or_else(|message| panic!("{line}: {message}"));
    }
}

#[test]
fn a_rotation_is_bounded_as_a_whole() {
    let disk = |place: usize| {
        format!("[[disk]]\nname = 'd{place}'\nsize = 4096\nexport = 'd{place}'\nslots = 1024\n")
    };
    let disks: String = (0..17).map(disk).collect();
    let text = format!(
        "[slow]\ndevice = 'null:1 GiB'\n[scheduler]\nname = 'HDD+NWC'\n[nbd]\nlisten = 'unix:/n'\n{disks}"
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fence.toml");
    std::fs::write(&path, text).unwrap();
    let message = Config::load(&path).unwrap_err().to_string();
    assert!(message.contains("line 91: disk d16: slots 1024: with it there are 17408 slots"), "{message}");
}
