use proptest::prelude::*;

use super::*;

fn header(error: u32, cookie: u64) -> Vec<u8> {
    let mut bytes = SIMPLE_REPLY_MAGIC.to_be_bytes().to_vec();
    bytes.extend(error.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes
}

/// What was read, and how each slot ended.
type Fed = (Vec<u8>, Vec<(u32, i32)>);

/// Feeds in pieces of `step` bytes; returns what each slot read and how each ended.
fn fed(stream: &mut ReplyStream, bytes: &[u8], step: usize) -> Result<Fed, ClientError> {
    let (mut data, mut done) = (Vec::new(), Vec::new());
    for piece in bytes.chunks(step) {
        stream.feed(piece, &mut |event| match event {
            Event::Data { bytes, .. } => data.extend_from_slice(bytes),
            Event::Done { slot, result } => done.push((slot, result)),
        })?;
    }
    Ok((data, done))
}

#[test]
fn replies_come_in_any_order_and_in_any_pieces() {
    for step in [1, 3, 16, 17, 1000] {
        let mut stream = ReplyStream::new(4);
        let read = stream.expect(0, 5, true);
        let write = stream.expect(1, 512, false);
        let failed = stream.expect(3, 4096, true);
        let bytes = [header(0, write), header(5, failed), header(0, read), b"hello".to_vec()].concat();
        let (data, done) = fed(&mut stream, &bytes, step).unwrap();
        assert_eq!(data, b"hello");
        assert_eq!(done, [(1, 512), (3, -5), (0, 5)]);
        assert_eq!(stream.under_way(), 0);
    }
}

#[test]
fn data_may_be_received_in_place() {
    let mut stream = ReplyStream::new(1);
    let cookie = stream.expect(0, 10, true);
    fed(&mut stream, &[header(0, cookie), vec![1; 4]].concat(), 100).unwrap();
    assert_eq!(stream.wanted(), Some((0, 4, 6)));
    let mut done = Vec::new();
    stream.received(6, &mut |event| done.push(format!("{event:?}")));
    assert_eq!(done, ["Done { slot: 0, result: 10 }"]);
    assert_eq!(stream.wanted(), None);
}

#[test]
fn replies_to_nothing_are_refused() {
    let mut stream = ReplyStream::new(2);
    let cookie = stream.expect(1, 0, false);
    for wrong in [cookie + 1, cookie ^ 1 << 40, u64::MAX, 0] {
        let error = fed(&mut stream, &header(0, wrong), 16).unwrap_err();
        assert!(error.to_string().contains("not in flight"), "{error}");
    }
    fed(&mut stream, &header(0, cookie), 16).unwrap();
    assert!(fed(&mut stream, &header(0, cookie), 16).is_err(), "the same reply counted twice");
    assert!(fed(&mut stream, &[0; 16], 16).is_err());
}

#[test]
fn what_is_abandoned_is_named_once() {
    let mut stream = ReplyStream::new(3);
    stream.expect(0, 1, true);
    stream.expect(2, 1, true);
    assert_eq!(stream.abandon().collect::<Vec<_>>(), [0, 2]);
    assert_eq!(stream.abandon().count(), 0);
    assert_eq!(stream.under_way(), 0);
}

proptest! {
    #[test]
    fn no_bytes_write_beyond_a_buffer(
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        replies in prop::collection::vec((0u32..8, 0u32..3, 0usize..64), 0..12),
        step in 1usize..40,
    ) {
        let mut stream = ReplyStream::new(4);
        let mut input = Vec::new();
        for slot in 0..4 {
            let cookie = stream.expect(slot, 32, slot % 2 == 0);
            // Mostly right, sometimes not: the interesting paths lie just beside the right one.
            for (wrong, error, extra) in replies.iter().filter(|(named, ..)| named % 4 == slot) {
                input.extend(header(*error, cookie + u64::from(wrong / 4)));
                input.extend(&bytes[..(*extra).min(bytes.len())]);
            }
        }
        input.extend(&bytes);
        let mut finished = 0;
        for piece in input.chunks(step) {
            let fed = stream.feed(piece, &mut |event| match event {
                Event::Data { slot, at, bytes } => assert!(slot < 4 && at + bytes.len() <= 32),
                Event::Done { .. } => finished += 1,
            });
            if fed.is_err() {
                break;
            }
        }
        prop_assert_eq!(stream.under_way() + finished, 4);
    }
}
