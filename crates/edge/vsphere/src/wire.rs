//! Requests over HTTP: bounded in time and in size, over connections that are kept.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{Connector, NextTimeout, TcpConnector};
use ureq::{Agent, Error};

use crate::address::Address;
use crate::error::VsphereError;
use crate::secure::Secure;
use crate::trust;

/// Bytes of an answer at most.
pub(crate) const MOST_BYTES: u64 = 64 << 20;
/// Connections that are kept for the next request.
const KEPT: usize = 256;
/// Which version of the API is spoken: that of vSphere 6.5, which every later one speaks too.
const VERSION: &str = "urn:vim25/6.5";

/// What was answered.
pub(crate) struct Answer {
    /// HTTP's status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
    /// The session's cookie, where one was set.
    pub cookie: Option<String>,
    /// From the moment at which the request was handed over until the answer began: the network's and the server's.
    pub waited: Duration,
}

/// A server's HTTP side. Threads share it; each request has a connection of its own meanwhile.
pub(crate) struct Wire {
    agent: Agent,
    url: String,
    host: String,
}

impl Wire {
    /// Nothing is connected yet.
    pub fn new(address: &Address) -> Result<Self, VsphereError> {
        let secure = Secure(Arc::new(trust::configuration(&address.trust)?));
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .max_redirects(0)
            .max_idle_connections(KEPT)
            .max_idle_connections_per_host(KEPT)
            .user_agent(concat!("virtbench/", env!("CARGO_PKG_VERSION")))
            .build();
        let agent = Agent::with_parts(
            config,
            ().chain(TcpConnector::default()).chain(secure),
            Remembering::default(),
        );
        Ok(Self { agent, url: address.url.clone(), host: address.host.clone() })
    }

    /// Who is asked.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Sends a request and reads the answer, within `limit`.
    pub fn post(
        &self,
        what: &str,
        body: &[u8],
        cookie: Option<&str>,
        limit: Duration,
    ) -> Result<Answer, VsphereError> {
        let late = || VsphereError::Late { what: what.to_owned(), limit, last: None };
        if limit.is_zero() {
            return Err(late());
        }
        let error = |error| self.error(error, late());
        let begun = Instant::now();
        let mut request = self
            .agent
            .post(&self.url)
            .header("content-type", "text/xml; charset=utf-8")
            .header("soapaction", VERSION);
        if let Some(cookie) = cookie {
            request = request.header("cookie", cookie);
        }
        let mut response = request.config().timeout_global(Some(limit)).build().send(body).map_err(error)?;
        let waited = begun.elapsed();
        let cookie = response.headers().get("set-cookie").and_then(|cookie| cookie.to_str().ok());
        let cookie = cookie.map(|cookie| cookie.split(';').next().unwrap_or(cookie).trim().to_owned());
        let status = response.status().as_u16();
        let body = response.body_mut().with_config().limit(MOST_BYTES).read_to_vec().map_err(error)?;
        Ok(Answer { status, body, cookie, waited })
    }

    /// Breaks requests that are in flight; later ones fail.
    pub fn shut_down(&self) {
        self.agent.clone().shutdown();
    }

    fn error(&self, error: Error, late: VsphereError) -> VsphereError {
        let host = self.host.clone();
        match error {
            Error::Timeout(_) => late,
            Error::Io(error) if error.kind() == io::ErrorKind::TimedOut => late,
            Error::Io(error) => match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>())
            {
                Some(rustls::Error::InvalidCertificate(
                    rustls::CertificateError::ApplicationVerificationFailure,
                )) => VsphereError::Tls { host, why: "its certificate has another thumbprint".to_owned() },
                Some(inner) => VsphereError::Tls { host, why: inner.to_string() },
                None => {
                    let was_sent = error.kind() != io::ErrorKind::ConnectionRefused;
                    VsphereError::Unreachable { host, why: error.to_string(), was_sent }
                }
            },
            Error::BodyExceedsLimit(bytes) => {
                let why = format!("an answer has more than {} MiB", bytes >> 20);
                VsphereError::Unreachable { host, why, was_sent: true }
            }
            Error::Tls(why) => VsphereError::Tls { host, why: why.to_owned() },
            error => {
                let was_sent = !matches!(error, Error::HostNotFound | Error::ConnectionFailed);
                VsphereError::Unreachable { host, why: error.to_string(), was_sent }
            }
        }
    }
}

/// Looks a name up once: ureq would for every request.
#[derive(Debug, Default)]
struct Remembering {
    inner: DefaultResolver,
    known: Mutex<Option<ResolvedSocketAddrs>>,
}

impl Resolver for Remembering {
    fn resolve(
        &self,
        uri: &ureq::http::Uri,
        config: &ureq::config::Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known {
            return Ok(known);
        }
        let found = self.inner.resolve(uri, config, timeout)?;
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(found.clone());
        Ok(found)
    }
}
