//! Where an NBD server is: NBD URIs (the NetworkBlockDevice project's `doc/uri.md`).

use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;

use super::NbdError;

/// The port of `nbd://` without one.
const DEFAULT_PORT: u16 = 10809;

/// Where an NBD server is, and the name of its export.
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
    /// An export of the server at a Unix socket.
    #[must_use]
    pub fn unix(socket: &Path, export: &str) -> Self {
        Self { server: Server::Unix(socket.to_owned()), export: export.to_owned() }
    }

    /// Reads `nbd://HOST[:PORT]/EXPORT` or `nbd+unix:///EXPORT?socket=PATH`.
    ///
    /// # Errors
    /// [`NbdError::Uri`], saying what is wrong.
    pub fn parse(text: &str) -> Result<Self, NbdError> {
        let fail = |why: &str| NbdError::Uri { uri: text.to_owned(), why: why.to_owned() };
        if let Some(odd) = text.chars().find(|c| !c.is_ascii_graphic() || *c == '#') {
            return Err(fail(&format!("{odd:?} must be written in percent encoding")));
        }
        let (scheme, rest) = text.split_once("://").ok_or_else(|| fail("// is missing"))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.contains('@') {
            return Err(fail("NBD without TLS knows no users"));
        }
        // The colons of an IPv6 address stand in brackets.
        let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, rest)) => (host, rest.strip_prefix(':').unwrap_or(rest)),
            None => authority.split_once(':').unwrap_or((authority, "")),
        };
        let export = decoded(path).ok_or_else(|| fail("the export's name is not UTF-8"))?;
        let socket = query.split('&').find_map(|pair| pair.strip_prefix("socket="));
        let socket = socket.map(|path| decoded(path).ok_or_else(|| fail("the socket's path is not UTF-8")));
        let socket = socket.transpose()?;
        let server = match (scheme.to_ascii_lowercase().as_str(), socket) {
            ("nbd", None) if host.is_empty() => return Err(fail("the host is missing")),
            ("nbd", None) => {
                let port = if port.is_empty() { Ok(DEFAULT_PORT) } else { port.parse() };
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

fn decoded(text: &str) -> Option<String> {
    percent_decode_str(text).decode_utf8().ok().map(std::borrow::Cow::into_owned)
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
            ("nbd://h/ ", "percent encoding"),
            ("nbd://h/a#b", "percent encoding"),
            ("nbd://[::1]x/", "port"),
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
