//! TLS for NBD: a certificate and its key, and whose clients are let in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use thiserror::Error;

/// Files in PEM form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, and those between it and its authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authority whose clients are let in; all clients without one.
    pub client_authority: Option<PathBuf>,
}

/// Why TLS cannot be spoken.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum TlsError {
    /// A file is not there, or not what it should be.
    #[error("nbd.tls: {path}: {why}", path = path.display())]
    File {
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Certificate and key do not go together.
    #[error("nbd.tls: {0}")]
    Mismatch(String),
}

/// What every TLS connection needs.
#[derive(Debug, Clone)]
pub struct TlsServer(Arc<ServerConfig>);

impl TlsServer {
    /// Reads the files.
    ///
    /// # Errors
    /// One cannot be read or has nothing usable in it, or they do not go together.
    pub fn load(files: &TlsFiles) -> Result<Self, TlsError> {
        let mismatch = |error: &dyn std::fmt::Display| TlsError::Mismatch(error.to_string());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| unusable(&files.key, &error))?;
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| mismatch(&error))?;
        let builder = match &files.client_authority {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(path)? {
                    roots.add(certificate).map_err(|error| unusable(path, &error))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().map_err(|error| unusable(path, &error))?)
            }
        };
        let config = builder.with_single_cert(certificates(&files.certificate)?, key);
        Ok(Self(Arc::new(config.map_err(|error| mismatch(&error))?)))
    }

    /// For a client that has asked for it.
    pub(super) fn connection(&self) -> Result<ServerConnection, rustls::Error> {
        ServerConnection::new(Arc::clone(&self.0))
    }
}

fn unusable(path: &Path, error: &dyn std::fmt::Display) -> TlsError {
    TlsError::File { path: path.to_owned(), why: error.to_string() }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(path).map_err(|error| unusable(path, &error))?.collect();
    let found = found.map_err(|error| unusable(path, &error))?;
    if found.is_empty() {
        return Err(unusable(path, &"there is no certificate in it"));
    }
    Ok(found)
}
