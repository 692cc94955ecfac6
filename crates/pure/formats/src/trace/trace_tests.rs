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
        head in prop_oneof![Just("time_us,offset,size,operation\n"), Just("fio version 2 iolog\n"), Just("fio version 3 iolog\n"), Just("")],
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        lines in prop::collection::vec("[0-9a-z.,/ -]{0,30}", 0..10),
    ) {
        let text = [head.as_bytes(), lines.join("\n").as_bytes(), &bytes].concat();
        let _ = read_trace(Cursor::new(text));
    }
}
