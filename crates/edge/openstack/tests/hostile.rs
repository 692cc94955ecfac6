//! Servers that are not who they should be, or say nonsense.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use virtbench_openstack::{Address, FaultKind, Limit, LocalOpenStack, OpenStack, OpenStackError};

fn clouds(folder: &Path, url: &str, password: &str) -> Address {
    let file = folder.join("clouds.yaml");
    let auth = format!("{{auth_url: '{url}', username: admin, password: {password}, project_name: bench}}");
    fs::write(&file, format!("clouds:\n  c: {{auth: {auth}}}\n")).unwrap();
    Address::parse(&format!("openstack:c?clouds={}", file.display())).unwrap()
}

fn refused(address: &Address, ms: u64) -> OpenStackError {
    let limit = Limit::at(Instant::now() + Duration::from_millis(ms));
    OpenStack::connect(address, limit).unwrap_err()
}

#[test]
fn a_wrong_password_of_a_cloud_is_in_no_error() {
    let (local, folder) = (LocalOpenStack::start(0.0).unwrap(), tempfile::tempdir().unwrap());
    let file = fs::read_to_string(local.clouds()).unwrap();
    let url = file.split('\'').nth(1).unwrap();
    let wrong = refused(&clouds(folder.path(), url, "hunter2"), 60_000);
    assert_eq!(wrong.fault(), Some(FaultKind::NotAuthenticated));
    assert!(!format!("{wrong} {wrong:?}").contains("hunter2"), "{wrong:?}");
    assert!(wrong.to_string().contains("clouds.yaml"), "{wrong}");
}

#[test]
fn a_cloud_that_is_away_silent_or_another_program_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let at = |scheme: &str| clouds(folder.path(), &format!("{scheme}://127.0.0.1:{port}"), "hunter2");
    let silent = refused(&at("http"), 300);
    assert!(matches!(silent, OpenStackError::Late { .. }), "{silent:?}");
    let speaker = thread::spawn(move || {
        for connection in listener.incoming().take(3) {
            let mut connection = connection.unwrap();
            let _ = connection.read(&mut [0; 4096]);
            let _ = connection
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello");
            // What is closed with something unread is reset, and the answer lost.
            let _ = (
                connection.shutdown(Shutdown::Write),
                connection.set_read_timeout(Some(Duration::from_secs(1))),
            );
            let _ = io::copy(&mut connection, &mut io::sink());
        }
    });
    let other = refused(&at("http"), 60_000);
    assert!(matches!(other, OpenStackError::Garbled { .. }), "{other:?}");
    let plain = refused(&at("https"), 2_000);
    assert!(!matches!(plain, OpenStackError::Garbled { .. }), "{plain:?}");
    drop(speaker);
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let nobody = refused(&clouds(folder.path(), &format!("http://127.0.0.1:{unused}"), "hunter2"), 5_000);
    assert!(matches!(nobody, OpenStackError::Unreachable { was_sent: false, .. }), "{nobody:?}");
    assert!(nobody.to_string().contains("auth_url"), "{nobody}");
}
