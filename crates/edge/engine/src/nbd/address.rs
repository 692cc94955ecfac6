//! Where an NBD server is: NBD URIs (the NetworkBlockDevice project's `doc/uri.md`).

use std::path::PathBuf;

use fluent_uri::Uri;
use fluent_uri::pct_enc::{EStr, Encoder, encoder};

use super::NbdError;

/// The port of `nbd://` without one.
const DEFAULT_PORT: u16 = 10809;

/// Where an NBD server is, and which of its exports is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NbdAddress {
    /// How to reach it.
    pub server: Server,
    /// The export's name; servers call their default "".
    pub export: String,
}

/// How to reach a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Server {
    /// Over TCP: host name or address, and port.
    Tcp(String, u16),
    /// Through a unix socket.
    Unix(PathBuf),
}

impl std::fmt::Display for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

impl NbdAddress {
    /// Reads `nbd://HOST[:PORT]/EXPORT` or `nbd+unix:///EXPORT?socket=PATH`.
    ///
    /// # Errors
    /// [`NbdError::Uri`], saying what is wrong.
    pub fn parse(text: &str) -> Result<Self, NbdError> {
        let fail = |why: &str| NbdError::Uri { uri: text.to_owned(), why: why.to_owned() };
        let uri = Uri::parse(text).map_err(|error| fail(&error.to_string()))?;
        let authority = uri.authority().ok_or_else(|| fail("// is missing"))?;
        if authority.userinfo().is_some_and(|user| !user.is_empty()) {
            return Err(fail("NBD without TLS knows no users"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let path = uri.path().as_str();
        let export = EStr::<encoder::Path>::new(path.strip_prefix('/').unwrap_or(path))
            .and_then(decoded)
            .ok_or_else(|| fail("the export's name is not UTF-8"))?;
        let mut socket = None;
        for pair in uri.query().map(|query| query.split('&')).into_iter().flatten() {
            let (key, value) = pair.split_once('=').unwrap_or((pair, EStr::EMPTY));
            if key.as_str() == "socket" {
                socket = Some(decoded(value).ok_or_else(|| fail("the socket's path is not UTF-8"))?);
            }
        }
        let server = match (uri.scheme().as_str().to_ascii_lowercase().as_str(), socket) {
            ("nbd", None) if host.is_empty() => return Err(fail("the host is missing")),
            ("nbd", None) => {
                let port = authority.port().filter(|port| !port.is_empty());
                let port = port.map_or(Ok(DEFAULT_PORT), |port| port.as_str().parse());
                Server::Tcp(host.to_owned(), port.map_err(|_| fail("the port is not below 65536"))?)
            }
            ("nbd", Some(_)) => return Err(fail("a socket needs nbd+unix")),
            ("nbd+unix", _) if !host.is_empty() => {
                return Err(fail("nbd+unix has no host: begin with nbd+unix:///"));
            }
            ("nbd+unix", Some(path)) if !path.is_empty() => Server::Unix(PathBuf::from(path)),
            ("nbd+unix", _) => return Err(fail("?socket= is missing")),
            ("nbds" | "nbds+unix", _) => return Err(fail("virtbench does not speak TLS")),
            _ => return Err(fail("this is no NBD scheme")),
        };
        Ok(Self { server, export })
    }
}

fn decoded<E: Encoder>(text: &EStr<E>) -> Option<String> {
    text.decode().to_string().ok().map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_forms_of_the_specification_are_read() {
        let tcp = |host: &str, port, export: &str| NbdAddress {
            server: Server::Tcp(host.into(), port),
            export: export.into(),
        };
        for (text, address) in [
            ("nbd://localhost", tcp("localhost", 10809, "")),
            ("nbd://localhost/", tcp("localhost", 10809, "")),
            ("nbd://127.0.0.1:7777/disk", tcp("127.0.0.1", 7777, "disk")),
            ("NBD://[::1]:10810/a%20b/c", tcp("::1", 10810, "a b/c")),
            ("nbd://h//leading", tcp("h", 10809, "/leading")),
        ] {
            assert_eq!(NbdAddress::parse(text).unwrap(), address, "{text}");
        }
        let unix = NbdAddress::parse("nbd+unix:///e?socket=/run/my%20nbd.sock&x=y").unwrap();
        assert_eq!(unix.server, Server::Unix("/run/my nbd.sock".into()));
        assert_eq!(unix.export, "e");
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, word) in [
            ("nbd://", "host"),
            ("nbd:///disk", "host"),
            ("nbd:disk", "//"),
            ("nbd://h:99999/", "port"),
            ("nbd://me@h/", "users"),
            ("nbd+unix:///e", "socket"),
            ("nbd+unix:///e?socket=", "socket"),
            ("nbd+unix://host/e?socket=/s", "no host"),
            ("nbd://h/e?socket=/s", "nbd+unix"),
            ("nbds://h/", "TLS"),
            ("nbd://h/%ff", "UTF-8"),
            ("nbd://h/ ", "nbd://h/ "),
        ] {
            let message = NbdAddress::parse(text).unwrap_err().to_string();
            assert!(message.contains(word), "{text}: {message}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(nbd(\\+unix)?://)?[ -~é]{0,40}") {
            let _ = NbdAddress::parse(&text);
        }
    }
}
