//! Addresses of existing desktops, and links to them.

#![allow(clippy::unwrap_used)]

use virtbench_desktops::{Link, OneWay, VncAddress};

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
fn a_link_that_is_invalid_is_refused_with_its_reason() {
    let link: Link = "delay=50ms, rate=10mbit".parse().unwrap();
    assert_eq!(link, Link { delay_ns: 50_000_000, rate: Some(10_000_000), loss_ppm: 0 });
    assert_eq!("loss=0.25%".parse::<Link>(), Ok(Link { delay_ns: 0, rate: None, loss_ppm: 2_500 }));
    for (text, said) in [
        ("", "write such as"),
        ("delay", "write such as"),
        ("delay=soon", "write such as"),
        ("rate=10", "write such as"),
        ("delay=1s,delay=2s", "write such as"),
        ("delay=0ms", "one of them has to be there"),
        ("delay=1m", "10 s at most"),
        ("rate=1bit", "8kbit at least"),
        ("loss=1", "write such as"),
        ("loss=-1%", "write such as"),
        ("loss=51%", "50% at most"),
    ] {
        let told = text.parse::<Link>().unwrap_err().to_string();
        assert!(told.contains(said), "{text}: {told}");
    }
}

#[test]
fn bytes_come_out_of_a_link_in_order_late_and_no_faster_than_its_rate() {
    // 8 Mbit/s: a byte a microsecond.
    let mut way = OneWay::new(Link { delay_ns: 5_000_000, rate: Some(8_000_000), loss_ppm: 0 }, 1);
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
    let mut way = OneWay::new(Link { delay_ns: 1_000, rate: None, loss_ppm: 0 }, 1);
    let room = way.room();
    way.put(&vec![0; room], 0);
    assert_eq!(way.room(), 0);
    assert_eq!(way.take(1_000).len(), room);
    assert_eq!(way.room(), room);
}

#[test]
fn what_is_lost_comes_later_as_tcp_brings_it_and_nothing_overtakes_it() {
    let link = Link { delay_ns: 10_000_000, rate: None, loss_ppm: 20_000 };
    let (mut way, trials) = (OneWay::new(link, 7), 20_000_u64);
    let (mut late, mut sent) = (0_u64, Vec::new());
    let mut got = Vec::new();
    for trial in 0..trials {
        let now = trial * 1_000_000_000_000;
        let bytes = [trial.to_le_bytes()[0]];
        way.put(&bytes, now);
        sent.extend(bytes);
        let out = way.next_ns().unwrap();
        let by = out - now;
        // Alone on its way: there, or two round trips and a late acknowledgement later, or with timeouts on top.
        assert!(by == 10_000_000 || by == 250_000_000 || by > 600_000_000, "{by}");
        late += u64::from(by > 10_000_000);
        got.extend(way.take(out));
    }
    assert_eq!(got, sent);
    // 2 % of 20,000 are 400, with a standard deviation of 20.
    assert!((300..=500).contains(&late), "{late} of {trials}");
    // Of a hundred segments at once some are lost. The last three may have to be probed for; before them a round trip is enough.
    let mut way = OneWay::new(Link { loss_ppm: 100_000, ..link }, 3);
    way.put(&vec![1; 1448 * 100], 0);
    assert!(way.take(9_999_999).is_empty());
    let at_once = way.take(10_000_000).len();
    assert!(at_once < 1448 * 100, "those behind the first that was lost wait for it");
    let then = way.take(30_000_000).len();
    assert!(at_once + then > 1448, "{at_once}, {then}");
    let rest = way.take(u64::MAX).len();
    assert_eq!(at_once + then + rest, 1448 * 100);
}
