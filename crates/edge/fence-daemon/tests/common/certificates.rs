//! Certificates for TLS, made on the spot.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::new_without_default, missing_docs)]

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

/// An authority, a server for `localhost` and a client, as QEMU and libnbd expect to find them.
pub struct Certificates(pub TempDir);

impl Certificates {
    pub fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let made = Self(folder);
        let openssl = |arguments: &[&str]| {
            let output = Command::new("openssl").args(arguments).output();
            let output = output.expect("openssl: install it with `apt-get install openssl`");
            assert!(output.status.success(), "openssl {arguments:?}: {output:?}");
        };
        let path = |name: &str| made.path(name).to_str().unwrap().to_owned();
        openssl(&[
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=authority",
            "-keyout",
            &path("ca-key.pem"),
            "-out",
            &path("ca-cert.pem"),
        ]);
        for (name, more) in [
            ("server", "subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth"),
            ("client", "extendedKeyUsage=clientAuth"),
        ] {
            let file = |end: &str| path(&format!("{name}-{end}"));
            std::fs::write(file("ext"), more).unwrap();
            let subject = format!("/CN={name}");
            openssl(&[
                "req",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-subj",
                &subject,
                "-keyout",
                &file("key.pem"),
                "-out",
                &file("request.pem"),
            ]);
            openssl(&[
                "x509",
                "-req",
                "-days",
                "2",
                "-in",
                &file("request.pem"),
                "-CA",
                &path("ca-cert.pem"),
                "-CAkey",
                &path("ca-key.pem"),
                "-CAcreateserial",
                "-extfile",
                &file("ext"),
                "-out",
                &file("cert.pem"),
            ]);
        }
        made
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// What a server at this port says in `[nbd]`: `listen` and `tls`, the latter with this key more, if any.
    pub fn config(&self, port: u16, more: &str) -> String {
        let pem = |name: &str| self.path(name).display().to_string();
        let keys = format!("certificate = {:?}, key = {:?}", pem("server-cert.pem"), pem("server-key.pem"));
        let more = if more.is_empty() { String::new() } else { format!(", {more}") };
        format!("listen = \"tcp:127.0.0.1:{port}\"\ntls = {{ {keys}{more} }}\n")
    }

    pub fn authority_line(&self) -> String {
        format!("client_authority = \"{}\"", self.path("ca-cert.pem").display())
    }

    pub fn uri(&self, port: u16) -> String {
        format!("nbds://localhost:{port}/alpha?tls-certificates={}", self.0.path().display())
    }
}

pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
