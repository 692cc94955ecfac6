//! The VNC client: no server panics it or makes it hold more than its limits allow, and its picture is the same in whatever pieces
//! the bytes come.

#![no_main]

use libfuzzer_sys::fuzz_target;
use virtbench_rfb::{Client, Limits, RfbError};

const PIXELS: u32 = 256 * 256;

fn client(is_let_in: bool, password: bool) -> Client {
    let limits = Limits { pixels: PIXELS, text_bytes: 256, clipboard_bytes: 4096 };
    let mut client = Client::new(password.then(|| "secret".to_owned()), limits);
    if is_let_in {
        let size = [0, 70, 0, 70];
        let greeting = [&b"RFB 003.008\n\x01\x01\0\0\0\0"[..], &size, &[0; 16], &[0; 4]].concat();
        client.take(&greeting).unwrap();
    }
    client
}

/// What is left of the picture, and whether the server was refused.
fn play(mut client: Client, bytes: &[u8], piece: usize) -> (Vec<u32>, Option<RfbError>) {
    for part in bytes.chunks(piece) {
        let taken = client.take(part);
        client.request_update(true);
        assert!(client.take_output().len() < 4096);
        assert!(client.frame().pixels().len() <= PIXELS as usize);
        if let Err(error) = taken {
            return (client.frame().pixels().to_vec(), Some(error));
        }
    }
    (client.frame().pixels().to_vec(), None)
}

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else { return };
    let new = || client(first & 1 == 1, first & 2 == 2);
    let piece = usize::from(first >> 2) + 1;
    assert_eq!(play(new(), rest, rest.len().max(1)), play(new(), rest, piece));
});
