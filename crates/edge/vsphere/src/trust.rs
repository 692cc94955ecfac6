//! Whether the server is the one it says it is.

use std::path::Path;

use rustls::{CertificateError, ClientConfig, RootCertStore};
use sha2::{Digest, Sha256};
use virtbench_tls::{Believe, Shown, certificates, client, provider, unreadable};

use crate::address::Trust;
use crate::error::VsphereError;

/// How to speak TLS with a server that is trusted so.
///
/// # Errors
/// The authorities' file cannot be read, or the system has none.
pub(crate) fn configuration(trust: &Trust) -> Result<ClientConfig, VsphereError> {
    let set_up = |error| VsphereError::Settings(format!("TLS cannot be set up: {error}"));
    let roots = match trust {
        Trust::System => system()?,
        Trust::Authorities(path) => of_file(path)?,
        Trust::Thumbprint(digest) => return client(Known { digest: Some(*digest) }).map_err(set_up),
        Trust::Anybody => return client(Known { digest: None }).map_err(set_up),
    };
    let builder = ClientConfig::builder_with_provider(provider());
    let builder = builder.with_safe_default_protocol_versions().map_err(set_up)?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn of_file(path: &Path) -> Result<RootCertStore, VsphereError> {
    let useless = |why: &str| VsphereError::Settings(unreadable(path, why));
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path).map_err(|error| VsphereError::Settings(error.to_string()))? {
        roots.add(certificate).map_err(|error| useless(&error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(useless("there is none (PEM, BEGIN CERTIFICATE)"));
    }
    Ok(roots)
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
