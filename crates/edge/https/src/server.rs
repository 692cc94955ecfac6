//! Requests over HTTP: bounded in time and in size, over connections that are kept.

use std::fmt;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use ureq::http::Request;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, TcpConnector, Transport,
    TransportAdapter,
};
use ureq::{Agent, Error};

use crate::trust::{HttpsError, Trust};

/// Bytes of an answer at most.
pub const MOST_BYTES: u64 = 64 << 20;

/// Connections that are kept for the next request.
const KEPT: usize = 256;

/// A request: what is asked of which URL.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// Such as `GET`.
    pub method: &'a str,
    /// The whole URL.
    pub url: &'a str,
    /// Names and values.
    pub headers: &'a [(&'a str, &'a str)],
    /// Empty for a request without one.
    pub body: &'a [u8],
}

/// What was answered.
#[derive(Debug)]
pub struct Answer {
    /// HTTP's status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
    /// Names, in small letters, and values.
    headers: Vec<(String, String)>,
    /// From the moment at which the request was handed over until the answer began: the network's and the server's.
    pub waited: Duration,
}

impl Answer {
    /// The value of a header by its name in small letters, the first where there are several.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The first cookie that was set, as `NAME=VALUE`.
    #[must_use]
    pub fn cookie(&self) -> Option<&str> {
        let cookie = self.header("set-cookie")?;
        Some(cookie.split(';').next().unwrap_or(cookie).trim())
    }
}

/// A server's HTTP side. Threads share it; each request has a connection of its own meanwhile.
#[derive(Debug)]
pub struct HttpsServer {
    agent: Agent,
    host: String,
}

impl HttpsServer {
    /// Nothing is connected yet. `host` is how errors name the server.
    ///
    /// # Errors
    /// Whom to trust cannot be found out.
    pub fn new(host: &str, trust: &Trust) -> Result<Self, HttpsError> {
        let secure = Secure(Arc::new(trust.configuration()?));
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .max_redirects(0)
            .max_idle_connections(KEPT)
            .max_idle_connections_per_host(KEPT)
            .user_agent(concat!("virtbench/", env!("CARGO_PKG_VERSION")))
            .build();
        let connector = ().chain(TcpConnector::default()).chain(secure);
        let agent = Agent::with_parts(config, connector, Remembering::default());
        Ok(Self { agent, host: host.to_owned() })
    }

    /// Who is asked.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Sends a request and reads the answer, within `limit`.
    ///
    /// # Errors
    /// There is no answer, or none in time, or one that is too large.
    pub fn ask(&self, ask: &Ask<'_>, limit: Duration) -> Result<Answer, HttpsError> {
        let late = || HttpsError::Late { host: self.host.clone(), limit };
        if limit.is_zero() {
            return Err(late());
        }
        let error = |error| self.error(error, late());
        let mut request = Request::builder().method(ask.method).uri(ask.url);
        for (name, value) in ask.headers {
            request = request.header(*name, *value);
        }
        let begun = Instant::now();
        let sent = if ask.body.is_empty() && matches!(ask.method, "GET" | "DELETE" | "HEAD") {
            let request = request.body(()).map_err(|wrong| error(wrong.into()))?;
            self.agent.run(self.agent.configure_request(request).timeout_global(Some(limit)).build())
        } else {
            let request = request.body(ask.body).map_err(|wrong| error(wrong.into()))?;
            self.agent.run(self.agent.configure_request(request).timeout_global(Some(limit)).build())
        };
        let mut response = sent.map_err(error)?;
        let waited = begun.elapsed();
        let headers = response
            .headers()
            .iter()
            .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())));
        let headers = headers.collect();
        let status = response.status().as_u16();
        let body = response.body_mut().with_config().limit(MOST_BYTES).read_to_vec().map_err(error)?;
        Ok(Answer { status, body, headers, waited })
    }

    /// Breaks requests that are in flight; later ones fail.
    pub fn shut_down(&self) {
        self.agent.clone().shutdown();
    }

    fn error(&self, error: Error, late: HttpsError) -> HttpsError {
        let host = self.host.clone();
        match error {
            Error::Timeout(_) => late,
            Error::Io(error) if error.kind() == io::ErrorKind::TimedOut => late,
            Error::Io(error) => match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>())
            {
                Some(rustls::Error::InvalidCertificate(
                    rustls::CertificateError::ApplicationVerificationFailure,
                )) => HttpsError::Tls { host, why: "its certificate has another thumbprint".to_owned() },
                Some(inner) => HttpsError::Tls { host, why: inner.to_string() },
                None => {
                    let was_sent = error.kind() != io::ErrorKind::ConnectionRefused;
                    HttpsError::Unreachable { host, why: error.to_string(), was_sent }
                }
            },
            Error::BodyExceedsLimit(bytes) => {
                let why = format!("an answer has more than {} MiB", bytes >> 20);
                HttpsError::Unreachable { host, why, was_sent: true }
            }
            Error::Tls(why) => HttpsError::Tls { host, why: why.to_owned() },
            error => {
                let was_sent = !matches!(error, Error::HostNotFound | Error::ConnectionFailed);
                HttpsError::Unreachable { host, why: error.to_string(), was_sent }
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

/// Speaks TLS over what the connector before it has connected.
#[derive(Debug)]
pub(crate) struct Secure(pub Arc<ClientConfig>);

impl<In: Transport> Connector<In> for Secure {
    type Out = Either<In, Sealed>;

    fn connect(&self, details: &ConnectionDetails, chained: Option<In>) -> Result<Option<Self::Out>, Error> {
        let Some(transport) = chained else { return Ok(None) };
        if !details.needs_tls() {
            return Ok(Some(Either::A(transport)));
        }
        let host = details.uri.host().unwrap_or("").trim_start_matches('[').trim_end_matches(']');
        let name =
            ServerName::try_from(host.to_owned()).map_err(|_| Error::Tls("this is no name of a server"))?;
        let mut connection = ClientConnection::new(self.0.clone(), name).map_err(std::io::Error::other)?;
        let mut socket = TransportAdapter::new(transport.boxed(), details.current_time.clone());
        socket.set_timeout(details.timeout);
        connection.complete_io(&mut socket)?;
        let buffers =
            LazyBuffers::new(details.config.input_buffer_size(), details.config.output_buffer_size());
        Ok(Some(Either::B(Sealed { buffers, stream: StreamOwned::new(connection, socket) })))
    }
}

/// A connection under TLS.
pub(crate) struct Sealed {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl Transport for Sealed {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.stream.get_mut().set_timeout(timeout);
        Ok(self.stream.write_all(&self.buffers.output()[..amount])?)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.stream.get_mut().set_timeout(timeout);
        let amount = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.get_mut().get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealed")
    }
}
