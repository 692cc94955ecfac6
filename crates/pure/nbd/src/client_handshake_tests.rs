use proptest::prelude::*;

use super::*;

fn greeting(flags: u16) -> Vec<u8> {
    [&GREETING.to_be_bytes()[..], &OPTION.to_be_bytes(), &flags.to_be_bytes()].concat()
}

fn reply(kind: u32, data: &[u8]) -> Vec<u8> {
    let head = [&OPTION_REPLY.to_be_bytes()[..], &opt::GO.to_be_bytes(), &kind.to_be_bytes()].concat();
    [&head[..], &length(data.len()).to_be_bytes(), data].concat()
}

fn export(size_bytes: u64, flags: u16) -> Vec<u8> {
    [&info::EXPORT.to_be_bytes()[..], &size_bytes.to_be_bytes(), &flags.to_be_bytes()].concat()
}

fn block_sizes(least: u32, most: u32) -> Vec<u8> {
    let sizes = [least.to_be_bytes(), 4096u32.to_be_bytes(), most.to_be_bytes()].concat();
    [&info::BLOCK_SIZE.to_be_bytes()[..], &sizes].concat()
}

/// Feeds what a server sends; returns what the client sent and where it ended.
fn shaken(name: &str, server: &[u8]) -> (Vec<u8>, Result<Export, ClientError>) {
    let mut handshake = Handshake::new(name).unwrap();
    let (mut sent, mut rest) = (Vec::new(), server);
    loop {
        let wants = handshake.wants();
        assert!(wants > 0 && wants <= MAX_OPTION_REPLY_BYTES as usize);
        let Some((bytes, left)) = rest.split_at_checked(wants) else {
            return (sent, Err(handshake.closed()));
        };
        rest = left;
        match handshake.take(bytes) {
            Ok(Progress::Send(bytes)) => sent.extend(bytes),
            Ok(Progress::Done(export)) => return (sent, Ok(export)),
            Err(error) => return (sent, Err(error)),
        }
    }
}

#[test]
fn a_modern_server_tells_everything() {
    let server = [
        greeting(3),
        reply(rep::INFO, &export(1 << 30, 0b1_0010_0101)),
        reply(rep::INFO, &[0, 1, b'x']),
        reply(rep::INFO, &block_sizes(512, 1 << 20)),
        reply(rep::ACK, &[]),
    ]
    .concat();
    let (sent, export) = shaken("disk", &server);
    let export = export.unwrap();
    assert_eq!(
        (export.size_bytes, export.min_block_bytes, export.max_payload_bytes),
        (1 << 30, 512, 1 << 20)
    );
    assert!(export.can_flush() && export.can_trim() && export.can_multi_conn() && !export.read_only());
    let go = [
        &3u32.to_be_bytes()[..],
        b"IHAVEOPT",
        &[0, 0, 0, 7, 0, 0, 0, 12, 0, 0, 0, 4],
        b"disk",
        &[0, 1, 0, 3],
    ];
    assert_eq!(sent, go.concat());
}

#[test]
fn old_servers_are_asked_the_old_way() {
    let by_name = [&b"IHAVEOPT"[..], &[0, 0, 0, 1, 0, 0, 0, 1], b"d"].concat();
    let old_answer = [&(1u64 << 20).to_be_bytes()[..], &1u16.to_be_bytes()].concat();
    // One that does not know NBD_OPT_GO.
    let (sent, export) =
        shaken("d", &[greeting(3), reply(rep::ERROR + 1, b"what?"), old_answer.clone()].concat());
    assert_eq!(export.unwrap().size_bytes, 1 << 20);
    assert!(sent.ends_with(&by_name));
    // One that is not even fixed, and sends zeroes.
    let (sent, export) = shaken("d", &[greeting(0), old_answer, vec![0; 124]].concat());
    assert_eq!(export.unwrap().size_bytes, 1 << 20);
    assert_eq!(sent, [&[0; 4][..], &by_name].concat());
    // Closing is how such a server says that there is no export of the name.
    assert!(matches!(shaken("d", &greeting(0)).1, Err(ClientError::NoExport { .. })));
}

#[test]
fn refusals_are_told_apart() {
    let refused =
        |kind, text: &str| shaken("d", &[greeting(3), reply(rep::ERROR + kind, text.as_bytes())].concat()).1;
    assert!(
        matches!(refused(6, "no such thing"), Err(ClientError::NoExport { said, .. }) if said == " (no such thing)")
    );
    assert!(refused(5, "").unwrap_err().to_string().contains("TLS"));
    assert!(refused(2, "\x1b[31mno").unwrap_err().to_string().contains("[31mno"));
}

#[test]
fn lies_are_found_out() {
    let said = |server: &[Vec<u8>]| shaken("", &server.concat()).1.unwrap_err().to_string();
    assert!(said(&[vec![b'x'; 18]]).contains("greets"));
    assert!(said(&[vec![]]).contains("closed"));
    let endless: Vec<Vec<u8>> =
        std::iter::once(greeting(3)).chain(vec![reply(rep::INFO, &[0, 9]); 100]).collect();
    assert!(said(&endless).contains("does not end"));
    let mut huge = reply(rep::INFO, &[]);
    huge[16..20].copy_from_slice(&u32::MAX.to_be_bytes());
    assert!(said(&[greeting(3), huge]).contains("8 KiB allowed"));
    assert!(said(&[greeting(3), reply(rep::ACK, &[])]).contains("how large"));
    assert!(said(&[greeting(3), reply(rep::INFO, &block_sizes(0, 0))]).contains("0 to 0 bytes"));
    assert!(said(&[greeting(3), reply(rep::INFO, &export(u64::MAX, 1))]).contains("export"));
    assert!(said(&[greeting(3), reply(rep::INFO, &[0])]).contains("expected"));
    assert!(Handshake::new(&"x".repeat(5000)).is_err());
}

proptest! {
    #[test]
    fn no_server_keeps_it_from_ending(noise in prop::collection::vec(any::<u8>(), 0..2000), good in any::<bool>()) {
        let server = if good { [greeting(3), noise].concat() } else { noise };
        let _ = shaken("export", &server);
    }

    #[test]
    fn any_replies_end_it(replies in prop::collection::vec((0u32..10, any::<bool>(), prop::collection::vec(any::<u8>(), 0..40)), 0..80)) {
        let mut server = greeting(3);
        for (kind, error, data) in replies {
            server.extend(reply(kind | u32::from(error) << 31, &data));
        }
        let _ = shaken("export", &server);
    }
}
