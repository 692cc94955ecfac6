//! Addresses of existing desktops, and links to them.

#![allow(clippy::unwrap_used)]

use virtbench_desktops::{Link, NoLink, OneWay, VncAddress};

#[test]
fn addresses_are_read_as_vnc_viewers_read_them() {
    for (text, host, port) in [
        ("vnc://desk", "desk", 5900),
        ("vnc://10.0.0.7:3", "10.0.0.7", 5903),
        ("vnc://desk:5999", "desk", 5999),
        ("vnc://desk::80", "desk", 80),
        ("vnc://[fe80::1%eth0]:1", "fe80::1%eth0", 5901),
    ] {
        let address: VncAddress = text.parse().unwrap();
        assert_eq!((address.host.as_str(), address.port), (host, port), "{text}");
        assert_eq!(address.to_string().parse(), Ok(address), "{text}");
    }
    for text in [
        "desk",
        "vnc://",
        "vnc://:1",
        "vnc://desk:",
        "vnc://desk::0",
        "vnc://desk/x",
        "vnc://[::1",
        "vnc://a b",
    ] {
        let told = text.parse::<VncAddress>().unwrap_err().to_string();
        assert!(told.contains("write vnc://HOST"), "{text}: {told}");
    }
}

#[test]
fn a_link_that_cannot_be_meant_is_refused_with_its_reason() {
    let link: Link = "delay=50ms, rate=10mbit".parse().unwrap();
    assert_eq!(link, Link { delay_ns: 50_000_000, rate: Some(10_000_000) });
    assert_eq!("delay=1s,loss=1%".parse::<Link>(), Err(NoLink::Loss));
    for (text, said) in [
        ("", "write such as"),
        ("delay", "write such as"),
        ("delay=soon", "write such as"),
        ("rate=10", "write such as"),
        ("delay=1s,delay=2s", "write such as"),
        ("delay=0ms", "one of them has to be there"),
        ("delay=1m", "10 s at most"),
        ("rate=1bit", "8kbit at least"),
    ] {
        let told = text.parse::<Link>().unwrap_err().to_string();
        assert!(told.contains(said), "{text}: {told}");
    }
}

#[test]
fn bytes_come_out_of_a_link_in_order_late_and_no_faster_than_its_rate() {
    // 8 Mbit/s: a byte a microsecond.
    let mut way = OneWay::new(Link { delay_ns: 5_000_000, rate: Some(8_000_000) });
    let sent: Vec<u8> = (0..20_000_u32).map(|at| u8::try_from(at % 251).unwrap()).collect();
    way.put(&sent[..100], 0);
    way.put(&sent[100..], 0);
    assert!(way.take(5_000_000).is_empty());
    assert_eq!(way.next_ns(), Some(5_100_000), "the first bytes were on their way for 0.1 ms");
    let mut got = Vec::new();
    for now in (5_000_000..26_000_000).step_by(100_000) {
        got.extend(way.take(now));
        let most = usize::try_from((now - 5_000_000) / 1_000).unwrap();
        assert!(
            got.len() <= most && most - got.len().min(most) < 1_600 || got.len() == sent.len(),
            "{now}: {}",
            got.len()
        );
    }
    assert_eq!(got, sent);
    assert_eq!(way.next_ns(), None);
    // What goes in later does not come out earlier.
    way.put(&[1], 100_000_000);
    assert_eq!(way.next_ns(), Some(105_001_000));
}

#[test]
fn a_link_has_room_for_so_much_and_again_once_it_has_gone() {
    let mut way = OneWay::new(Link { delay_ns: 1_000, rate: None });
    let room = way.room();
    way.put(&vec![0; room], 0);
    assert_eq!(way.room(), 0);
    assert_eq!(way.take(1_000).len(), room);
    assert_eq!(way.room(), room);
}
