//! How a client comes in, and how it does not.

#![allow(clippy::unwrap_used)]

use crate::common;

use common::{client, greeting, init, protocol_error};
use virtbench_rfb::{Client, Limits, RfbError, ServerEvent, answer, parse_chord};

fn with_password() -> Client {
    Client::new(Some("secret".into()), Limits::default())
}

#[test]
fn all_three_versions_let_a_client_in() {
    for (version, rest, said) in [
        ("RFB 003.003\n", [&[0, 0, 0, 1][..]].concat(), &b"RFB 003.003\n\x01"[..]),
        ("RFB 003.007\n", vec![2, 16, 1], b"RFB 003.007\n\x01\x01"),
        ("RFB 003.008\n", vec![1, 1, 0, 0, 0, 0], b"RFB 003.008\n\x01\x01"),
        ("RFB 003.889\n", vec![1, 1, 0, 0, 0, 0], b"RFB 003.008\n\x01\x01"),
    ] {
        let mut client = client();
        let events = client.take(&[version.as_bytes(), &rest, &init(8, 8)].concat()).unwrap();
        assert_eq!(events, [ServerEvent::Ready { name: "desk".into() }], "{version}");
        let output = client.take_output();
        assert!(output.starts_with(said), "{version}: {output:?}");
        assert_eq!(output.len(), said.len() + 20 + 4 + 6 * 4, "pixel format and encodings follow");
    }
}

#[test]
fn bytes_may_come_in_any_pieces() {
    let mut client = client();
    let mut events = Vec::new();
    for byte in greeting(8, 8) {
        events.extend(client.take(&[byte]).unwrap());
    }
    assert_eq!(events, [ServerEvent::Ready { name: "desk".into() }]);
}

#[test]
fn a_password_answers_the_challenge_as_openssl_does() {
    // printf '\0\1...\17' | openssl enc -des-ecb -nopad -K ce a6 c6 4e a6 2e 00 00 (`secret`, bits reversed), provider legacy.
    let challenge: [u8; 16] = std::array::from_fn(|at| u8::try_from(at).unwrap());
    let expected =
        [0xee, 0x22, 0x53, 0x9f, 0x33, 0xa5, 0x98, 0x3e, 0xc1, 0x2f, 0x9c, 0x2e, 0xdb, 0xc9, 0x95, 0xdd];
    assert_eq!(answer("secret", challenge), expected);
    let mut client = with_password();
    let bytes = [&b"RFB 003.008\n\x01\x02"[..], &challenge, &[0; 4], &init(8, 8)].concat();
    assert_eq!(client.take(&bytes).unwrap().len(), 1);
    assert_eq!(client.take_output()[13..29], expected);
}

#[test]
fn a_server_that_refuses_is_named_with_the_next_step() {
    let none = client().take(b"RFB 003.008\n\x01\x02").unwrap_err();
    assert_eq!(none, RfbError::NoPassword);
    let other = client().take(b"RFB 003.008\n\x02\x13\x12").unwrap_err();
    assert!(matches!(&other, RfbError::Security { offered } if offered == &[0x13, 0x12]), "{other}");
    let refused = [&b"RFB 003.008\n\x01\x02"[..], &[0; 16], &[0, 0, 0, 1, 0, 0, 0, 3], b"no!"].concat();
    assert_eq!(with_password().take(&refused).unwrap_err(), RfbError::Password { reason: "no!".into() });
    let old = [&b"RFB 003.003\n\0\0\0\x02"[..], &[0; 16], &[0, 0, 0, 1]].concat();
    assert!(with_password().take(&old).unwrap_err().to_string().contains("refuses the password"));
    let full = [&b"RFB 003.008\n\0"[..], &[0, 0, 0, 4], b"full"].concat();
    assert_eq!(client().take(&full).unwrap_err(), RfbError::Refused { reason: "full".into() });
}

#[test]
fn what_is_no_vnc_server_is_said() {
    assert!(protocol_error(client().take(b"SSH-2.0-OpenSSH_9.2")).contains("is it a VNC server?"));
    assert!(protocol_error(client().take(b"RFB 002.000\n")).contains("is it a VNC server?"));
    let mut long = greeting(8, 8);
    let at = long.len() - 8;
    long[at..at + 4].copy_from_slice(&[0xff; 4]);
    let told = client().take(&long).unwrap_err();
    assert!(matches!(told, RfbError::TooLarge { what: "a name", .. }), "{told}");
    let gigantic = client().take(&greeting(0xffff, 0xffff)).unwrap_err();
    assert!(gigantic.to_string().contains("65535x65535 pixels"), "{gigantic}");
}

#[test]
fn keys_are_held_around_the_one_that_is_pressed() {
    let mut client = common::ready(8, 8);
    drop(client.take_output());
    client.press(&parse_chord("ctrl+s").unwrap());
    let key = |pressed, low| [4, pressed, 0, 0, 0, 0, if low == 0x73 { 0 } else { 0xff }, low];
    let expected = [key(1, 0xe3), key(1, 0x73), key(0, 0x73), key(0, 0xe3)].concat();
    assert_eq!(client.take_output(), expected);
    client.button(virtbench_rfb::PointerButton::Left, true, 3, 260);
    assert_eq!(client.take_output(), [5, 1, 0, 3, 1, 4]);
}
