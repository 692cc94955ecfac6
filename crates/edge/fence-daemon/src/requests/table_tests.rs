use super::*;

fn pending(action: Action, len_bytes: u64) -> Pending {
    let request = Request { tag: 0, disk: DiskId(0), action, offset_bytes: 0, len_bytes };
    Pending::new(0, request, Memory::None, Time::ZERO)
}

/// Hands everything over, answering the parts as they come: what they were, and after how many it was done.
fn play(pending: &mut Pending, max: u32, fail_at: Option<usize>) -> Vec<(Op, u64, u32)> {
    let mut parts = Vec::new();
    let mut waiting = 0;
    let mut answered = 0;
    loop {
        while let Some(part) = pending.next_part(max) {
            parts.push((part.op, part.at_bytes, part.len_bytes));
            waiting += 1;
            assert!(waiting <= MOST_PARTS, "too much at once");
        }
        assert!(waiting > 0, "it waits for nothing: {parts:?}");
        waiting -= 1;
        answered += 1;
        let result = if fail_at == Some(answered) { Err(IoError::Device(5)) } else { Ok(()) };
        if pending.answered(result) {
            assert_eq!(waiting, 0);
            return parts;
        }
        if let Some(part) = pending.closing_flush() {
            parts.push((part.op, part.at_bytes, part.len_bytes));
            waiting += 1;
        }
    }
}

#[test]
fn a_long_request_goes_in_parts_few_at_once() {
    let parts = play(&mut pending(Action::Read, 10 * 4096), 4096, None);
    let expected: Vec<_> = (0..10).map(|part| (Op::Read, part * 4096, 4096)).collect();
    assert_eq!(parts, expected);
    assert_eq!(play(&mut pending(Action::Write { fua: false }, 512), 4096, None), [(Op::Write, 0, 512)]);
}

#[test]
fn a_forced_write_is_flushed_after_its_last_part() {
    for action in [Action::Write { fua: true }, Action::WriteZeroes { fua: true }] {
        let parts = play(&mut pending(action, 3 * 4096), 4096, None);
        assert_eq!(parts.len(), 4);
        assert_eq!(parts[3], (Op::Flush, 0, 0));
    }
}

#[test]
fn after_an_error_nothing_more_is_handed_over() {
    let mut failed = pending(Action::Write { fua: true }, 20 * 4096);
    let parts = play(&mut failed, 4096, Some(1));
    assert_eq!(parts.len(), MOST_PARTS as usize, "only what was in flight");
    assert_eq!(failed.finish().0.result, Err(IoError::Device(5)));
}

#[test]
fn a_flush_is_one_part_and_so_is_a_request_of_no_length() {
    assert_eq!(play(&mut pending(Action::Flush, 0), 4096, None), [(Op::Flush, 0, 0)]);
    // The fence refuses it.
    assert_eq!(play(&mut pending(Action::Read, 0), 4096, None), [(Op::Read, 0, 0)]);
    assert_eq!(play(&mut pending(Action::Write { fua: true }, 0), 4096, Some(1)), [(Op::Write, 0, 0)]);
}

#[test]
fn a_disk_has_no_more_under_way_than_it_may() {
    let mut table = Table::new(2, 2);
    let first = table.insert(pending(Action::Flush, 0));
    table.insert(pending(Action::Flush, 0));
    assert_eq!((table.room(DiskId(0)), table.room(DiskId(1)), table.room(DiskId(9))), (0, 2, 0));
    table.remove(first);
    table.remove(first);
    assert_eq!((table.room(DiskId(0)), table.len()), (1, 1));
}

#[test]
fn of_an_abandoned_request_nothing_more_is_handed_over() {
    let mut abandoned = pending(Action::Write { fua: true }, 20 * 4096);
    while abandoned.next_part(4096).is_some() {}
    abandoned.abandon();
    for left in (0..MOST_PARTS).rev() {
        assert_eq!(abandoned.answered(Ok(())), left == 0);
        assert_eq!(abandoned.next_part(4096), None);
        assert_eq!(abandoned.closing_flush(), None);
    }
}
