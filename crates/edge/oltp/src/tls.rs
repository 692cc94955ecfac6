//! Encrypted connections: whom to believe, as libpq's sslmode names it.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use virtbench_tls::{Believe, Shown, certificates, client, provider};

/// Whether connections are encrypted, and whom they believe.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tls {
    /// Not encrypted, encrypted with anybody, or with whom a certificate says.
    pub mode: TlsMode,
    /// File with the certificates of authorities (PEM); those of this system where there is none.
    pub roots: Option<PathBuf>,
}

/// libpq's sslmode. Its `allow` and `prefer` are left out: figures of a connection that may or may not be encrypted say nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TlsMode {
    /// Not encrypted.
    #[default]
    Disable,
    /// Encrypted; anybody is believed.
    Require,
    /// Encrypted; the server has a certificate of a known authority.
    VerifyCa,
    /// Encrypted; and it is that of the host's name.
    VerifyFull,
}

impl TlsMode {
    /// All four.
    pub const ALL: [Self; 4] = [Self::Disable, Self::Require, Self::VerifyCa, Self::VerifyFull];

    /// As addresses name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }
}

impl Tls {
    /// Certificates of the authorities that are believed.
    ///
    /// # Errors
    /// The file cannot be read, or there is none.
    pub(crate) fn authorities(&self) -> io::Result<Vec<CertificateDer<'static>>> {
        let found = match &self.roots {
            Some(path) => certificates(path)?,
            None => rustls_native_certs::load_native_certs().certs,
        };
        if found.is_empty() {
            let place = self.roots.as_ref().map_or("this system".into(), |path| path.display().to_string());
            let words = format!("{place} has no certificates of authorities: give sslrootcert=FILE (PEM)");
            return Err(io::Error::other(words));
        }
        Ok(found)
    }

    /// How to speak TLS. It is made once for each address: every user has a connection.
    pub(crate) fn configuration(&self) -> io::Result<Arc<ClientConfig>> {
        static LAST: Mutex<Option<(Tls, Arc<ClientConfig>)>> = Mutex::new(None);
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, made)) = last.as_ref().filter(|(of, _)| of == self) {
            return Ok(Arc::clone(made));
        }
        let made = Arc::new(self.made()?);
        *last = Some((self.clone(), Arc::clone(&made)));
        Ok(made)
    }

    fn made(&self) -> io::Result<ClientConfig> {
        let verified = match self.mode {
            TlsMode::Disable | TlsMode::Require => None,
            TlsMode::VerifyCa | TlsMode::VerifyFull => {
                let mut roots = RootCertStore::empty();
                roots.add_parsable_certificates(self.authorities()?);
                let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider());
                Some(builder.build().map_err(io::Error::other)?)
            }
        };
        client(Trust { verified, names: self.mode == TlsMode::VerifyFull }).map_err(io::Error::other)
    }
}

/// Whom to believe.
#[derive(Debug)]
struct Trust {
    /// By whom certificates are checked; anybody is believed where there is none.
    verified: Option<Arc<WebPkiServerVerifier>>,
    /// Whether the name counts.
    names: bool,
}

impl Believe for Trust {
    fn believe(&self, shown: &Shown<'_>) -> Result<(), rustls::Error> {
        let Some(verifier) = &self.verified else { return Ok(()) };
        let Shown { certificate, intermediates, name, ocsp, now } = *shown;
        match verifier.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.names => Ok(()),
            verified => verified.map(drop),
        }
    }
}

/// For PostgreSQL's client.
#[derive(Clone)]
pub struct Connector(pub Arc<ClientConfig>);

impl MakeTlsConnect<Socket> for Connector {
    type Stream = Stream;
    type TlsConnect = Named;
    type Error = io::Error;

    fn make_tls_connect(&mut self, name: &str) -> io::Result<Named> {
        // A Unix socket has no name, and is not encrypted.
        Ok(Named { configuration: Arc::clone(&self.0), name: ServerName::try_from(name.to_owned()).ok() })
    }
}

/// For one connection.
pub struct Named {
    configuration: Arc<ClientConfig>,
    name: Option<ServerName<'static>>,
}

impl TlsConnect<Socket> for Named {
    type Stream = Stream;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Stream>>;

    fn connect(self, socket: Socket) -> Self::Future {
        async move {
            let name = self.name.ok_or_else(|| io::Error::other("the host has no name for TLS"))?;
            let connector = tokio_rustls::TlsConnector::from(self.configuration);
            Ok(Stream(connector.connect(name, socket).await?))
        }
        .boxed()
    }
}

/// An encrypted connection.
pub struct Stream(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for Stream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
