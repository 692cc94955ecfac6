//! Which hypervisor, and which of its storage pools: `libvirt+URI?pool=NAME`.

use std::fmt;

use fluent_uri::Uri;
use fluent_uri::pct_enc::{EStr, Encoder};
use thiserror::Error;

/// What libvirt itself takes in a URI's query (libvirt 9.0, `src/remote/remote_driver.c`).
const OF_LIBVIRT: [&str; 17] = [
    "auth",
    "authfile",
    "command",
    "keyfile",
    "known_hosts",
    "known_hosts_verify",
    "mode",
    "name",
    "netcat",
    "no_sanity",
    "no_tty",
    "no_verify",
    "pkipath",
    "proxy",
    "socket",
    "sshauth",
    "tls_priority",
];
/// The pool that libvirt's own tools take where none is named.
const DEFAULT_POOL: &str = "default";

/// What cannot be the address of a hypervisor.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "{address}: {why}; an address is libvirt+URI?pool=NAME with a URI of libvirt's, such as qemu:///system"
)]
pub struct LibvirtAddressError {
    /// As it was given.
    address: String,
    /// What is wrong with it.
    why: String,
}

/// A hypervisor and a storage pool of its.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibvirtAddress {
    /// What libvirt connects to.
    connection: String,
    host: String,
    pool: String,
}

/// Names and values that stand in a query.
type Settings = Vec<(String, String)>;

impl LibvirtAddress {
    /// How such addresses begin.
    pub const PREFIX: &str = "libvirt+";

    /// Reads `libvirt+URI[?pool=NAME]`. What libvirt takes itself stays in its URI; what neither takes is returned.
    ///
    /// # Errors
    /// It is no such address.
    pub fn parse(text: &str) -> Result<(Self, Settings), LibvirtAddressError> {
        let wrong = |why: &str| LibvirtAddressError { address: text.to_owned(), why: why.to_owned() };
        let connection =
            text.strip_prefix(Self::PREFIX).ok_or_else(|| wrong("it has no URI of libvirt's"))?;
        let uri = Uri::parse(connection).map_err(|error| wrong(&error.to_string()))?;
        let authority = uri.authority().ok_or_else(|| wrong("it has no //"))?;
        if authority.userinfo().is_some_and(|user| user.as_str().contains(':')) {
            // Not even in an error.
            let address = format!("{}{}://...@{}", Self::PREFIX, uri.scheme(), authority.host());
            let why = "a password does not belong into an address; use a key or libvirt's auth.conf".into();
            return Err(LibvirtAddressError { address, why });
        }
        if uri.path() == "/embed" {
            return Err(wrong("a hypervisor within this process is none of a user's"));
        }
        let (mut pool, mut own, mut others) = (DEFAULT_POOL.to_owned(), Vec::new(), Settings::new());
        for setting in uri.query().into_iter().flat_map(|query| query.split('&')) {
            let raw = setting.as_str();
            let setting = decoded(setting).ok_or_else(|| wrong("it is not UTF-8"))?;
            let (name, value) =
                setting.split_once('=').ok_or_else(|| wrong(&format!("{setting} has no value")))?;
            match name {
                "pool" if value.is_empty() => return Err(wrong("pool= names no pool")),
                "pool" => pool = value.to_owned(),
                _ if OF_LIBVIRT.contains(&name) => own.push(raw.to_owned()),
                _ => others.push((name.to_owned(), value.to_owned())),
            }
        }
        let is_ssh = uri.scheme().as_str().ends_with("+ssh");
        if is_ssh && !own.iter().any(|setting| setting.starts_with("no_tty=")) {
            // A study of hours has nobody to ask for a password.
            own.push("no_tty=1".into());
        }
        let base = connection.split('?').next().unwrap_or_default();
        let connection = if own.is_empty() { base.to_owned() } else { format!("{base}?{}", own.join("&")) };
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        Ok((Self { connection, host, pool }, others))
    }

    /// What libvirt connects to.
    #[must_use]
    pub fn connection(&self) -> &str {
        &self.connection
    }

    /// The machine's name; nothing where it is this host.
    #[must_use]
    pub fn host(&self) -> Option<&str> {
        Some(self.host.as_str()).filter(|host| !host.is_empty())
    }

    /// The storage pool that volumes are made in.
    #[must_use]
    pub fn pool(&self) -> &str {
        &self.pool
    }

    /// What a user would type to look at it.
    pub(super) fn virsh(&self) -> String {
        format!("virsh -c '{}'", self.connection)
    }
}

fn decoded<E: Encoder>(part: &EStr<E>) -> Option<String> {
    part.decode().to_string().ok().map(String::from)
}

impl fmt::Display for LibvirtAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join = if self.connection.contains('?') { '&' } else { '?' };
        write!(f, "{}{}{join}pool={}", Self::PREFIX, self.connection, self.pool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_libvirts_own_is_told_apart_from_the_rest() {
        for (text, connection, host, pool, others) in [
            ("libvirt+qemu:///system", "qemu:///system", None, "default", ""),
            ("libvirt+qemu:///system?pool=fast&vcpus=2", "qemu:///system", None, "fast", "vcpus=2"),
            (
                "libvirt+qemu+ssh://root@metal:2222/system?socket=/run/x&pool=a%20b",
                "qemu+ssh://root@metal:2222/system?socket=/run/x&no_tty=1",
                Some("metal"),
                "a b",
                "",
            ),
            (
                "libvirt+qemu+ssh://m/session?no_tty=0",
                "qemu+ssh://m/session?no_tty=0",
                Some("m"),
                "default",
                "",
            ),
            ("libvirt+test:///default?scoket=x", "test:///default", None, "default", "scoket=x"),
        ] {
            let (address, rest) = LibvirtAddress::parse(text).unwrap();
            assert_eq!(address.connection(), connection, "{text}");
            assert_eq!((address.host(), address.pool()), (host, pool), "{text}");
            let rest: Vec<String> = rest.iter().map(|(name, value)| format!("{name}={value}")).collect();
            assert_eq!(rest.join("&"), others, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_in_a_hypervisors_address_is_said() {
        for (text, word) in [
            ("libvirt+qemu", "such as qemu:///system"),
            ("libvirt+qemu:system", "no //"),
            ("libvirt+qemu:///embed?root=/x", "within this process"),
            ("libvirt+qemu+ssh://me:secret@metal/system", "password"),
            ("libvirt+qemu:///system?pool=", "names no pool"),
            ("libvirt+qemu:///system?pool", "pool has no value"),
        ] {
            let error = LibvirtAddress::parse(text).unwrap_err().to_string();
            assert!(error.contains(word) && !error.contains("secret"), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_of_a_hypervisor_panics(text in "libvirt\\+[-a-z0-9@:/?=&%+\\[\\]]{0,30}") {
            let _ = LibvirtAddress::parse(&text).map(|(address, _)| address.to_string());
        }
    }
}
