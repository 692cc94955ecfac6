//! NBD through TLS, as libnbd and QEMU speak it.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

use crate::certificates;
use crate::common;

use certificates::{Certificates, free_port};
use common::{Daemon, run, success};
use virtbench_fence_daemon::ServeError;
use virtbench_fence_daemon::frontend::nbd::NbdSetupError;

fn nbdinfo(uri: &str) -> (bool, String) {
    let output = run("nbdinfo", "libnbd-bin", &[uri]);
    let text = [&output.stdout[..], &output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

fn copy(from: &str, to: &str) {
    success("nbdcopy", "libnbd-bin", &["--connections=2", "--requests=32", "--flush", from, to]);
}

#[test]
fn libnbd_and_qemu_read_and_write_through_tls() {
    let (certificates, port) = (Certificates::new(), free_port());
    let daemon = Daemon::serve(&certificates.config(port, &certificates.authority_line()));
    let uri = certificates.uri(port);
    let (fine, said) = nbdinfo(&uri);
    assert!(fine && said.contains("TLS") && said.contains("33554432"), "{said}");
    let (source, back) = (daemon.path("source"), daemon.path("back"));
    std::fs::write(&source, (0..32u32 << 20).map(|at| (at / 512 + at) as u8).collect::<Vec<u8>>()).unwrap();
    copy(source.to_str().unwrap(), &uri);
    copy(&uri, back.to_str().unwrap());
    assert!(std::fs::read(&source).unwrap() == std::fs::read(&back).unwrap());
    let credentials = format!("tls-creds-x509,id=t,endpoint=client,dir={}", certificates.0.path().display());
    let image = format!("driver=nbd,host=localhost,port={port},export=alpha,tls-creds=t");
    let arguments = ["--object", &credentials, "--image-opts", &image];
    let commands = ["-c", "write -P 7 1M 3M", "-c", "read -P 7 1M 3M", "-c", "flush"];
    let said = success("qemu-io", "qemu-utils", &[&arguments[..], &commands].concat());
    assert!(!said.contains("fail"), "{said}");
}

#[test]
fn without_tls_or_a_certificate_of_the_authority_nothing_is_told() {
    let (certificates, port) = (Certificates::new(), free_port());
    let _daemon = Daemon::serve(&certificates.config(port, &certificates.authority_line()));
    let (fine, said) = nbdinfo(&format!("nbd://localhost:{port}/alpha"));
    assert!(!fine && !said.contains("33554432"), "{said}");
    let strangers = Certificates::new();
    std::fs::copy(certificates.path("ca-cert.pem"), strangers.path("ca-cert.pem")).unwrap();
    let (fine, said) = nbdinfo(&strangers.uri(port));
    assert!(!fine && !said.contains("33554432"), "{said}");
    assert!(nbdinfo(&certificates.uri(port)).0, "it serves on");
}

#[test]
fn tls_that_is_only_offered_may_be_left_out() {
    let (certificates, port) = (Certificates::new(), free_port());
    let _daemon = Daemon::serve(&certificates.config(port, "required = false"));
    for uri in [format!("nbd://localhost:{port}/alpha"), certificates.uri(port)] {
        let (fine, said) = nbdinfo(&uri);
        assert!(fine, "{uri}: {said}");
    }
}

#[test]
fn certificates_that_cannot_be_used_are_named() {
    let certificates = Certificates::new();
    let (port, absent) = (free_port(), "/nonexistent/ca.pem");
    let config = certificates.config(port, "");
    let refused = |config: &str| match Daemon::try_serve(config).map(|_| ()) {
        Err(ServeError::Nbd(NbdSetupError::Tls(error))) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(refused(&config.replace("server-cert", "no-cert")).contains("no-cert.pem"));
    assert!(refused(&config.replace("server-cert", "server-key")).contains("no certificate"));
    assert!(refused(&config.replace("server-key", "server-cert")).contains("server-cert.pem"));
    assert!(refused(&config.replace("server-key", "client-key")).contains("nbd.tls"));
    let unknown = certificates.config(port, &format!("client_authority = {absent:?}"));
    assert!(refused(&unknown).contains(absent));
}
