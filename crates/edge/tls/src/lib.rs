//! TLS clients that decide themselves whom they believe, and certificates from files.
//!
//! That a server holds the key of the certificate that it shows is seen in any case.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};

/// What a server shows, and to whom it was connected when.
#[derive(Debug)]
pub struct Shown<'a> {
    /// The server's certificate.
    pub certificate: &'a CertificateDer<'a>,
    /// Those that lead from it to an authority.
    pub intermediates: &'a [CertificateDer<'a>],
    /// The name by which the server was reached.
    pub name: &'a ServerName<'a>,
    /// What its authority said of the certificate lately, if it shows that.
    pub ocsp: &'a [u8],
    /// The moment by which its certificate has to be valid.
    pub now: UnixTime,
}

/// Who decides which server is believed.
pub trait Believe: fmt::Debug + Send + Sync {
    /// Believes what a server shows.
    ///
    /// # Errors
    /// It is not believed, and why.
    fn believe(&self, shown: &Shown<'_>) -> Result<(), rustls::Error>;
}

/// The cryptography of all clients.
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// How a client speaks TLS that believes so.
///
/// # Errors
/// The cryptography has no version of the protocol in common with rustls.
pub fn client(believe: impl Believe + 'static) -> Result<ClientConfig, rustls::Error> {
    let provider = provider();
    let verifier = Arc::new(Verifier { believe, provider: Arc::clone(&provider) });
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// The certificates in a PEM file.
///
/// # Errors
/// It cannot be read, in the words of [`unreadable`].
pub fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let cannot = |why: String| io::Error::other(unreadable(path, &why));
    let read = CertificateDer::pem_file_iter(path).map_err(|error| cannot(error.to_string()))?;
    read.map(|certificate| certificate.map_err(|error| cannot(error.to_string()))).collect()
}

/// That a file of certificates is of no use.
#[must_use]
pub fn unreadable(path: &Path, why: &str) -> String {
    format!("cannot read certificates from {}: {why}", path.display())
}

#[derive(Debug)]
struct Verifier<B> {
    believe: B,
    provider: Arc<CryptoProvider>,
}

impl<B: Believe> ServerCertVerifier for Verifier<B> {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let shown = Shown { certificate, intermediates, name, ocsp, now };
        self.believe.believe(&shown).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
