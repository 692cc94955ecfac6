//! A certificate for a server on loopback, as tests and benchmarks start them.

use std::io;
use std::path::Path;
use std::process::Command;

/// Makes `certificate.pem`, for 127.0.0.1 and two days, and `key.pem` in a folder, by openssl.
///
/// # Errors
/// There is no openssl, or it fails.
pub fn make_loopback_certificate(folder: &Path) -> io::Result<()> {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"])
        .args(["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", "key.pem", "-out", "certificate.pem"])
        .current_dir(folder)
        .output()
        .map_err(|error| {
            io::Error::other(format!("no certificate without openssl (apt install openssl): {error}"))
        })?;
    if made.status.success() { Ok(()) } else { Err(io::Error::other(String::from_utf8_lossy(&made.stderr))) }
}
