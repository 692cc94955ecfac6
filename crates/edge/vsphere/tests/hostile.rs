//! Servers that are none: refused TLS, garbage, endless answers, silence.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use virtbench_vsphere::{Address, FaultKind, LocalVcenter, Secret, Trust, Vsphere, VsphereError};

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(5)
}

fn password() -> Secret {
    Secret::new("hunter2-secret".to_owned())
}

/// Answers each connection with `answer` until the test ends.
fn server(answer: impl Fn(TcpStream) + Send + 'static) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 65536]);
            let mut rest = stream.try_clone().unwrap();
            answer(stream);
            // What is closed with something unread is reset, and the answer lost.
            let _ = (rest.shutdown(Shutdown::Write), rest.set_read_timeout(Some(Duration::from_secs(1))));
            let _ = io::copy(&mut rest, &mut io::sink());
        }
    });
    Address::parse(&format!("vsphere+http://user@127.0.0.1:{port}")).unwrap()
}

fn refused(address: &Address, until: Instant) -> VsphereError {
    let error = Vsphere::connect(address, password(), until).unwrap_err();
    assert!(!error.to_string().contains("hunter2"), "{error}");
    error
}

fn answering(body: &'static str) -> Address {
    server(move |mut stream| {
        let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    })
}

#[test]
fn a_certificate_is_trusted_only_when_told_so() {
    let vcenter = LocalVcenter::start(&["--hosts", "1", "--vms", "1"]).unwrap();
    let connect =
        |options: &str| Vsphere::connect(&vcenter.address(options).unwrap(), vcenter.password(), soon());
    let unknown = connect("").unwrap_err();
    assert!(
        matches!(unknown, VsphereError::Tls { .. }) && unknown.to_string().contains("thumbprint=HEX"),
        "{unknown}"
    );
    let file = format!("ca={}", vcenter.certificate().display());
    let certificate = std::fs::read_to_string(vcenter.certificate().with_file_name("ready.tls")).unwrap();
    connect(&file).unwrap();
    connect("verify=no").unwrap();
    let wrong = connect(&format!("thumbprint={}", "00".repeat(32))).unwrap_err();
    assert!(wrong.to_string().contains("another thumbprint"), "{wrong}");
    let digest = thumbprint(&certificate);
    connect(&format!("thumbprint={digest}")).unwrap();
    // Another name than the certificate's.
    let address = Address {
        url: vcenter.address(&file).unwrap().url.replace("127.0.0.1", "localhost"),
        ..vcenter.address(&file).unwrap()
    };
    let other = Vsphere::connect(&address, vcenter.password(), soon()).unwrap_err();
    assert!(matches!(other, VsphereError::Tls { .. }), "{other}");
    let none = Address { trust: Trust::Authorities("/dev/null".into()), ..address };
    assert!(refused(&none, soon()).to_string().contains("BEGIN CERTIFICATE"));
}

/// SHA-256 of a certificate, by openssl.
fn thumbprint(certificate: &str) -> String {
    let mut openssl = std::process::Command::new("openssl")
        .args(["x509", "-noout", "-fingerprint", "-sha256"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("openssl is missing: scripts/setup.sh test installs it");
    openssl.stdin.take().unwrap().write_all(certificate.as_bytes()).unwrap();
    let said = String::from_utf8(openssl.wait_with_output().unwrap().stdout).unwrap();
    said.trim().split('=').nth(1).unwrap().to_owned()
}

#[test]
fn a_wrong_password_is_tried_once_and_not_shown() {
    let vcenter =
        LocalVcenter::start(&["--hosts", "1", "--vms", "1", "--user", "someone", "--password", "else"])
            .unwrap();
    let error = refused(&vcenter.address("verify=no").unwrap(), soon());
    assert_eq!(error.fault(), Some(FaultKind::InvalidLogin), "{error}");
    assert!(error.to_string().contains("VIRTBENCH_VSPHERE_PASSWORD"), "{error}");
}

#[test]
fn what_is_no_vcenter_is_told_clearly() {
    for (body, words) in [
        ("<html><body>It works!</body></html>", "no SOAP envelope"),
        ("", "no XML"),
        ("\u{0}\u{1}\u{2}", "no XML"),
        ("<Envelope><Body><X><returnval/></X></Body></Envelope>", "does not say what it is"),
    ] {
        let error = refused(&answering(body), soon());
        assert!(
            matches!(error, VsphereError::Garbled { .. }) && error.to_string().contains(words),
            "{body}: {error}"
        );
    }
    let missing = server(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    });
    assert!(matches!(refused(&missing, soon()), VsphereError::Http { status: 404, .. }));
    let no_http = server(|mut stream| drop(stream.write_all(b"SSH-2.0-OpenSSH\r\n")));
    assert!(matches!(refused(&no_http, soon()), VsphereError::Unreachable { .. }));
    let nobody = Address::parse("vsphere+https://user@127.0.0.1:1?verify=no").unwrap();
    let error = refused(&nobody, soon());
    assert!(
        matches!(&error, VsphereError::Unreachable { .. }) && error.to_string().contains("refused"),
        "{error}"
    );
    let no_tls = answering("");
    let no_tls = Address { url: no_tls.url.replace("http:", "https:"), trust: Trust::Anybody, ..no_tls };
    let error = refused(&no_tls, soon());
    assert!(matches!(&error, VsphereError::Tls { .. }), "{error}");
}

#[test]
fn silence_and_endless_answers_end_in_time() {
    let limit = || Instant::now() + Duration::from_millis(700);
    let silent = server(|stream| {
        thread::sleep(Duration::from_secs(30));
        drop(stream);
    });
    let begun = Instant::now();
    assert!(matches!(refused(&silent, limit()), VsphereError::Late { .. }));
    // A byte now and then keeps no call alive.
    let slow = server(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
        while stream.write_all(b" ").is_ok() {
            thread::sleep(Duration::from_millis(50));
        }
    });
    assert!(matches!(refused(&slow, limit()), VsphereError::Late { .. }));
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    let endless = server(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n<Envelope>");
        while stream.write_all(&[b'a'; 65536]).is_ok() {}
    });
    let error = refused(&endless, Instant::now() + Duration::from_secs(30));
    assert!(error.to_string().contains("64 MiB"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn no_answer_makes_the_client_panic(body in "\\PC{0,200}|(<[a-zA-Z:]{1,9}( type=\"[a-z]\")?/?>|</[a-z]{1,5}>|[a-z]){0,40}") {
        let address = server(move |mut stream| {
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        });
        prop_assert!(Vsphere::connect(&address, password(), soon()).is_err());
    }
}
