//! Whether the server is the one it says it is, and a certificate for one on loopback.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustls::{CertificateError, ClientConfig, RootCertStore};
use sha2::{Digest, Sha256};
use thiserror::Error;
use virtbench_tls::{Believe, Shown, certificates, client, provider, unreadable};

/// Whom to believe that it is the server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Trust {
    /// A server for which the system's authorities vouch.
    #[default]
    System,
    /// A server for which the authorities of this file (PEM) vouch.
    Authorities(PathBuf),
    /// A server with the certificate of this SHA-256 digest.
    Thumbprint([u8; 32]),
    /// Anybody.
    Anybody,
}

impl Trust {
    /// Takes an option of an address: `ca=FILE`, `thumbprint=HEX` or `verify=no`. Whether it is one of these.
    ///
    /// # Errors
    /// Its value makes no sense, or whom to trust was said before.
    pub fn take(&mut self, name: &str, value: &str) -> Result<bool, String> {
        let trust = match (name, value) {
            ("ca", file) if !file.is_empty() => Self::Authorities(file.into()),
            ("thumbprint", digits) => Self::Thumbprint(digest(digits).ok_or(
                "a thumbprint has 64 hexadecimal digits, the SHA-256 digest of the certificate: see \
                 `openssl x509 -noout -fingerprint -sha256`",
            )?),
            ("verify", "no") => Self::Anybody,
            _ => return Ok(false),
        };
        if *self != Self::System {
            return Err("say once whom to trust: ca=FILE, thumbprint=HEX or verify=no".to_owned());
        }
        *self = trust;
        Ok(true)
    }

    /// How to speak TLS with a server that is trusted so.
    ///
    /// # Errors
    /// The authorities' file cannot be read, or the system has none.
    pub(crate) fn configuration(&self) -> Result<ClientConfig, HttpsError> {
        let set_up = |error| HttpsError::Settings(format!("TLS cannot be set up: {error}"));
        let roots = match self {
            Self::System => system()?,
            Self::Authorities(path) => of_file(path)?,
            Self::Thumbprint(digest) => return client(Known { digest: Some(*digest) }).map_err(set_up),
            Self::Anybody => return client(Known { digest: None }).map_err(set_up),
        };
        let builder = ClientConfig::builder_with_provider(provider());
        let builder = builder.with_safe_default_protocol_versions().map_err(set_up)?;
        Ok(builder.with_root_certificates(roots).with_no_client_auth())
    }
}

/// Hexadecimal digits, with or without colons.
fn digest(text: &str) -> Option<[u8; 32]> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|letter| *letter != ':')
        .map(|letter| letter.to_digit(16)?.try_into().ok())
        .collect::<Option<_>>()?;
    let mut digest = [0; 32];
    if digits.len() != 2 * digest.len() {
        return None;
    }
    digest.iter_mut().zip(digits.chunks(2)).for_each(|(byte, pair)| *byte = pair[0] * 16 + pair[1]);
    Some(digest)
}

fn of_file(path: &Path) -> Result<RootCertStore, HttpsError> {
    let useless = |why: &str| HttpsError::Settings(unreadable(path, why));
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path).map_err(|error| HttpsError::Settings(error.to_string()))? {
        roots.add(certificate).map_err(|error| useless(&error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(useless("there is none (PEM, BEGIN CERTIFICATE)"));
    }
    Ok(roots)
}

fn system() -> Result<RootCertStore, HttpsError> {
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if added == 0 {
        return Err(HttpsError::Settings(
            "this system has no certificates of authorities: install ca-certificates, or give ?ca=FILE or \
             ?thumbprint=HEX in the address"
                .to_owned(),
        ));
    }
    Ok(roots)
}

/// Believes a server with a certificate of this digest, or without one any server.
#[derive(Debug)]
struct Known {
    digest: Option<[u8; 32]>,
}

impl Believe for Known {
    fn believe(&self, shown: &Shown<'_>) -> Result<(), rustls::Error> {
        let found: [u8; 32] = Sha256::digest(shown.certificate).into();
        if self.digest.is_some_and(|digest| digest != found) {
            return Err(CertificateError::ApplicationVerificationFailure.into());
        }
        Ok(())
    }
}

/// A request without an answer, or settings that make none possible.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HttpsError {
    /// An address, a secret or a certificate's file makes no sense.
    #[error("{0}")]
    Settings(String),
    /// Nobody is there, or the connection broke.
    #[error("cannot reach {host}: {why}")]
    Unreachable {
        /// Who was asked.
        host: String,
        /// What the system says.
        why: String,
        /// Whether the server may have had what was asked: the connection broke afterwards.
        was_sent: bool,
    },
    /// The server's certificate is not trusted, or it does not speak TLS.
    #[error("cannot trust {host}: {why}")]
    Tls {
        /// Who was asked.
        host: String,
        /// What is wrong.
        why: String,
    },
    /// It was not answered in time.
    #[error("{host} did not answer within {limit:?}")]
    Late {
        /// Who was asked.
        host: String,
        /// How long it was waited for.
        limit: Duration,
    },
}

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
