//! Whether the server is the one it says it is.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use sha2::{Digest, Sha256};

use crate::address::Trust;
use crate::error::VsphereError;

/// How to speak TLS with a server that is trusted so.
///
/// # Errors
/// The authorities' file cannot be read, or the system has none.
pub(crate) fn configuration(trust: &Trust) -> Result<ClientConfig, VsphereError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| VsphereError::Settings(format!("TLS cannot be set up: {error}")))?;
    let builder = match trust {
        Trust::System => builder.with_root_certificates(system()?),
        Trust::Authorities(path) => {
            let why = |why: String| {
                VsphereError::Settings(format!("cannot read certificates from {}: {why}", path.display()))
            };
            let read = CertificateDer::pem_file_iter(path).map_err(|error| why(error.to_string()))?;
            let mut roots = RootCertStore::empty();
            for certificate in read {
                let certificate = certificate.map_err(|error| why(error.to_string()))?;
                roots.add(certificate).map_err(|error| why(error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(why("there is none (PEM, BEGIN CERTIFICATE)".to_owned()));
            }
            builder.with_root_certificates(roots)
        }
        Trust::Thumbprint(digest) => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Known { digest: Some(*digest), provider })),
        Trust::Anybody => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(Known { digest: None, provider }))
        }
    };
    Ok(builder.with_no_client_auth())
}

fn system() -> Result<RootCertStore, VsphereError> {
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if added == 0 {
        return Err(VsphereError::Settings(
            "this system has no certificates of authorities: install ca-certificates, or give ?ca=FILE or \
             ?thumbprint=HEX in the address"
                .to_owned(),
        ));
    }
    Ok(roots)
}

/// Believes whoever has a certificate of this digest, or without one anybody. That the server holds the certificate's key
/// is seen in either case.
#[derive(Debug)]
struct Known {
    digest: Option<[u8; 32]>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Known {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let shown: [u8; 32] = Sha256::digest(end_entity).into();
        if self.digest.is_some_and(|digest| digest != shown) {
            return Err(CertificateError::ApplicationVerificationFailure.into());
        }
        Ok(ServerCertVerified::assertion())
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
