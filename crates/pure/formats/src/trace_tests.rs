use std::io::Cursor;

use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Result<Trace, TraceError> {
    read_trace(Cursor::new(text.to_owned()))
}

#[test]
fn a_csv_is_read_in_any_column_order_and_unit() {
    let trace = read(
        "# from blktrace\nSize, Operation,time_s,offset\n4096,W,0.5,8192\n512,read,0.000001,0\n,flush,1,\n",
    )
    .unwrap();
    let op = |time_ns, offset, len, action, line| TraceOp { time_ns, offset, len, action, line };
    assert_eq!(
        trace.ops,
        [
            op(1_000, 0, 512, TraceAction::Read, 4),
            op(500_000_000, 8192, 4096, TraceAction::Write, 3),
            op(1_000_000_000, 0, 0, TraceAction::Flush, 5),
        ]
    );
    assert!(trace.notes.len() == 1 && trace.notes[0].starts_with("line 4 "), "{:?}", trace.notes);
}

#[test]
fn both_versions_of_the_iolog_are_read() {
    let two = "fio version 2 iolog\n/d/a add\n/d/a open\n/d/a wait 500 0\n/d/a read 0 4096\n/d/a wait 250 0\n/d/a write 4096 512\n/d/a sync 0 0\n/d/a close\n";
    let three = "fio version 3 iolog\n0 /d/a add\n1 /d/a open\n500 /d/a read 0 4096\n750 /d/a write 4096 512\n750 /d/a sync 4096 0\n800 /d/a close\n";
    let (two, three) = (read(two).unwrap(), read(three).unwrap());
    let less_lines = |trace: &Trace| without_lines(&trace.ops);
    assert_eq!(less_lines(&two), less_lines(&three));
    assert_eq!(two.ops.iter().map(|op| op.time_ns).collect::<Vec<_>>(), [500_000, 750_000, 750_000]);
}

#[test]
fn traces_of_msr_cambridge_begin_with_their_first_operation() {
    let text =
        "128166372003061629,hm,0,Read,383496192,32768,413\n128166372016382155,hm,1,Write,2822144,4096,1001\n";
    let trace = read(text).unwrap();
    let op = |time_ns, offset, len, action, line| TraceOp { time_ns, offset, len, action, line };
    assert_eq!(
        trace.ops,
        [
            op(0, 383_496_192, 32768, TraceAction::Read, 1),
            op(1_332_052_600, 2_822_144, 4096, TraceAction::Write, 2),
        ]
    );
    assert!(trace.notes[0].contains("several disks"), "{:?}", trace.notes);
}

#[test]
fn what_blkparse_prints_is_replayed_as_it_was_queued() {
    let text = "  8,0    3        1     0.000000000   697  Q  WS 223490 + 8 [kjournald]\n\
         \u{20} 8,0    3        2     0.000001829   697  G  WS 223490 + 8 [kjournald]\n\
         \u{20} 8,0    1        1     0.500000000    12  Q   R 64 + 16 [cat]\n\
         \u{20} 8,0    1        2     0.600000000    12  D   R 64 + 16 [cat]\n\
         \u{20} 8,0    1        3     1.000000000    12  Q  FN [cat]\n\
         \u{20} 8,0    1        4     2.000000000    12  Q   D 0 + 2048 [fstrim]\n\
         CPU0 (8,0):\n Reads Queued:           1,        8KiB\t Writes Queued:           1,        4KiB\n";
    let trace = read(text).unwrap();
    let op = |time_ns, offset, len, action, line| TraceOp { time_ns, offset, len, action, line };
    assert_eq!(
        trace.ops,
        [
            op(0, 223_490 * 512, 4096, TraceAction::Write, 1),
            op(500_000_000, 64 * 512, 8192, TraceAction::Read, 3),
            op(1_000_000_000, 0, 0, TraceAction::Flush, 5),
            op(2_000_000_000, 0, 1 << 20, TraceAction::Trim, 6),
        ]
    );
    let issued = read("8,0 1 2 0.600000000 12 D R 64 + 16 [cat]\n").unwrap_err().to_string();
    assert!(issued.contains("no event of kind Q"), "{issued}");
}

#[test]
fn several_files_are_noted() {
    let trace = read("fio version 3 iolog\n0 a add\n0 b add\n0 a read 0 512\n").unwrap();
    assert!(trace.notes[0].contains("several files"));
}

#[test]
fn damage_names_its_line() {
    for (text, line) in [
        ("time_us,offset,size,operation\n1,0,512,read\n2,0,512,erase\n", 3),
        ("time_us,offset,size,operation\n\n# x\nx,0,512,read\n", 4),
        ("time_us,offset,size,operation\n1,0,0,read\n", 2),
        ("time_us,offset,size,operation\n1,0,99999999999,read\n", 2),
        ("time_us,offset,size,operation\n1,18446744073709551615,512,read\n", 2),
        ("time_us,offset,size,operation\n99999999999999999999,0,512,read\n", 2),
        ("fio version 2 iolog\na wait\n", 2),
        ("fio version 3 iolog\n1 a wait 1 1\n", 2),
        ("fio version 3 iolog\na read 0 512\n", 2),
        ("1,a,0,Read,0,512,1\n2,a,0,Erase,0,512,1\n", 2),
        ("8,0 1 1 0.000000000 1 Q R 36028797018963968 + 8 [x]\n", 1),
    ] {
        match read(text) {
            Err(TraceError::Syntax { line: found, .. }) => assert_eq!(found, line, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    assert!(matches!(read(""), Err(TraceError::Empty)));
    assert!(matches!(read("time_us,offset,size,operation\n"), Err(TraceError::Empty)));
    assert!(matches!(read("fio version 1 iolog\n"), Err(TraceError::UnknownFormat)));
    let long = format!("time_us,offset,size,operation\n{}", "9".repeat(10_000));
    assert!(matches!(read(&long), Err(TraceError::Syntax { line: 2, .. })));
}

fn op() -> impl Strategy<Value = TraceOp> {
    let action = prop_oneof![
        Just(TraceAction::Read),
        Just(TraceAction::Write),
        Just(TraceAction::Trim),
        Just(TraceAction::Flush)
    ];
    (any::<u64>(), 0u64..1 << 50, 1u32..1 << 26, action).prop_map(|(time_ns, offset, len, action)| TraceOp {
        time_ns,
        offset,
        len,
        action,
        line: 0,
    })
}

fn without_lines(ops: &[TraceOp]) -> Vec<TraceOp> {
    ops.iter().map(|op| TraceOp { line: 0, ..*op }).collect()
}

proptest! {
    #[test]
    fn the_csv_goes_round(ops in prop::collection::vec(op(), 1..50)) {
        let mut sorted = ops.clone();
        sorted.sort_by_key(|op| op.time_ns);
        prop_assert_eq!(without_lines(&read(&write_csv(&ops)).unwrap().ops), sorted);
    }

    #[test]
    fn no_bytes_panic(
        head in prop_oneof![Just("time_us,offset,size,operation\n"), Just("fio version 2 iolog\n"), Just("fio version 3 iolog\n"), Just("1,a,0,Read,0,512,1\n"), Just("8,0 1 1 0.000000000 1 Q R 0 + 8 [x]\n"), Just("")],
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        lines in prop::collection::vec("[0-9a-z.,/ -]{0,30}", 0..10),
    ) {
        let text = [head.as_bytes(), lines.join("\n").as_bytes(), &bytes].concat();
        let _ = read_trace(Cursor::new(text));
    }
}
