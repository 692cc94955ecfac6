//! Servers that are not who they should be, or say nonsense.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use virtbench_proxmox::{Address, FaultKind, Limit, LocalProxmox, Proxmox, ProxmoxError, Secret};

use crate::operations::soon;

fn refused(argument: &str, secret: &str) -> ProxmoxError {
    let address = Address::parse(argument).unwrap();
    Proxmox::connect(&address, Secret::new(secret.into()), soon()).unwrap_err()
}

#[test]
fn a_server_is_trusted_by_its_certificate_and_the_password_is_in_no_error() {
    let local = LocalProxmox::start(&json!([]), 0.0).unwrap();
    let at = |options: &str| format!("proxmox:{}?{options}", local.host());
    let wrong = refused(&at(&format!("ca={}", local.certificate().display())), "hunter2");
    assert_eq!(wrong.fault(), Some(FaultKind::NotAuthenticated));
    assert!(wrong.to_string().contains("VIRTBENCH_PROXMOX_PASSWORD"), "{wrong}");
    let other = refused(&at(&format!("thumbprint={}", "00".repeat(32))), "hunter2");
    let unknown = refused(&at(""), "hunter2");
    for error in [&other, &unknown] {
        assert!(matches!(error, ProxmoxError::Tls { .. }), "{error:?}");
        assert!(error.to_string().contains("pve-root-ca.pem"), "{error}");
    }
    let token = refused(&format!("proxmox:root@pam!none@{}?verify=no", local.host()), "hunter2");
    assert_eq!(token.fault(), Some(FaultKind::NotAuthenticated));
    for error in [wrong, other, unknown, token] {
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    }
}

#[test]
fn nobody_silence_and_another_protocol_are_told_apart_within_their_limits() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let address = |port: u16| Address::parse(&format!("proxmox:127.0.0.1:{port}?verify=no")).unwrap();
    let connect = |port, within| {
        let limit = Limit::at(Instant::now() + Duration::from_millis(within));
        Proxmox::connect(&address(port), Secret::new("x".into()), limit).unwrap_err()
    };
    // The kernel takes the connection; nobody answers.
    let silent = connect(port, 300);
    assert!(matches!(silent, ProxmoxError::Late { .. }), "{silent:?}");
    let speaker = thread::spawn(move || {
        for stream in listener.incoming().take(2) {
            let mut stream = stream.unwrap();
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi");
            let _ = stream.read(&mut [0; 4096]);
        }
    });
    let plain = connect(port, 60_000);
    assert!(matches!(plain, ProxmoxError::Tls { .. } | ProxmoxError::Unreachable { .. }), "{plain:?}");
    speaker.join().unwrap();
    let nobody = connect(port, 60_000);
    assert!(matches!(nobody, ProxmoxError::Unreachable { was_sent: false, .. }), "{nobody:?}");
}
