//! Where a database is, and how it is reached.

use std::fmt;
use std::path::{Path, PathBuf};

use fluent_uri::Uri;
use virtbench_record::{DatabaseKind, OltpIsolation};

use crate::tls::{Tls, TlsMode};

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// Name or address, and port.
    Tcp(String, u16),
    /// A Unix socket: of PostgreSQL the folder with its port, of MariaDB the socket itself.
    Unix(PathBuf, u16),
}

/// A database, as an address names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Which database serves.
    pub kind: DatabaseKind,
    /// Where it listens.
    pub endpoint: Endpoint,
    /// As whom to log in.
    pub user: String,
    /// The database's name.
    pub database: String,
    /// The schema of the tables, where that is not the one in which the server makes new ones.
    pub schema: Option<String>,
    /// Whether connections are encrypted.
    pub tls: Tls,
}

/// How a database is reached.
#[derive(Clone)]
pub struct Connect {
    /// Where it is.
    pub address: Address,
    /// For the login; it is never printed.
    pub password: Option<String>,
}

impl fmt::Debug for Connect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connect({})", self.address)
    }
}

const FORM: &str = "write for example postgresql://user@host:5432/database, mariadb://user@host:3306/database, or \
                    postgresql://user@localhost/database?socket=/run/postgresql";

/// The options of an address.
const KNOWN: &str = "socket=PATH, schema=NAME, sslmode=MODE and sslrootcert=FILE";

impl Address {
    /// A database of this name, reached as this user.
    #[must_use]
    pub fn new(kind: DatabaseKind, endpoint: Endpoint, user: &str, database: &str) -> Self {
        Self {
            kind,
            endpoint,
            user: user.into(),
            database: database.into(),
            schema: None,
            tls: Tls::default(),
        }
    }

    /// Reads `postgresql://USER@HOST:PORT/DATABASE` or `mariadb://...`; `?socket=PATH` in place of host and port.
    ///
    /// # Errors
    /// Why it is no address, with what to write.
    pub fn parse(text: &str) -> Result<Self, String> {
        let uri = Uri::parse(text).map_err(|_| format!("this is no address of a database: {FORM}"))?;
        let kind = match uri.scheme().as_str() {
            "postgresql" | "postgres" => DatabaseKind::PostgreSql,
            "mariadb" | "mysql" => DatabaseKind::MariaDb,
            other => return Err(format!("no database is reached by {other:?}: {FORM}")),
        };
        let authority = uri.authority().ok_or_else(|| format!("the address lacks a host: {FORM}"))?;
        let user = match authority.userinfo() {
            Some(info) if info.as_str().contains(':') => {
                return Err(
                    "a password in an address can be read by every user of this machine: leave it out, and \
                            give it in PGPASSWORD (MariaDB: MYSQL_PWD) or in a file"
                        .to_owned(),
                );
            }
            Some(info) => decoded(info.as_str())?,
            None => default_user(kind).to_owned(),
        };
        let port = match authority.port().map(|port| port.as_str()) {
            None | Some("") => default_port(kind),
            Some(text) => text.parse().map_err(|_| format!("{text:?} is no port"))?,
        };
        let options = Options::parse(kind, uri.query().map_or("", |query| query.as_str()))?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let database = decoded(uri.path().as_str().trim_start_matches('/'))?;
        if database.is_empty() {
            return Err(format!("the address lacks the database's name: {FORM}"));
        }
        let endpoint = match options.socket {
            Some(path) => Endpoint::Unix(path, port),
            None if host.is_empty() => return Err(format!("the address lacks a host: {FORM}")),
            None if host.contains(':') => Endpoint::Tcp(host, port),
            None => Endpoint::Tcp(decoded(&host)?, port),
        };
        let is_local = matches!(endpoint, Endpoint::Unix(..));
        if is_local && options.tls.mode != TlsMode::Disable {
            return Err("a Unix socket is not encrypted: leave sslmode out, or name a host".to_owned());
        }
        if kind == DatabaseKind::MariaDb && options.tls.mode == TlsMode::VerifyCa {
            return Err("sslmode=verify-ca is for PostgreSQL: MariaDB's client always checks the name too, verify-full".to_owned());
        }
        let Options { schema, tls, .. } = options;
        Ok(Self { schema, tls, ..Self::new(kind, endpoint, &user, &database) })
    }

    /// The folder of PostgreSQL's socket, where the socket itself may be named.
    pub(crate) fn socket_folder(path: &Path) -> &Path {
        let is_socket = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".s.PGSQL."));
        path.parent().filter(|_| is_socket).unwrap_or(path)
    }
}

fn default_port(kind: DatabaseKind) -> u16 {
    match kind {
        DatabaseKind::PostgreSql => 5432,
        DatabaseKind::MariaDb => 3306,
    }
}

fn default_user(kind: DatabaseKind) -> &'static str {
    match kind {
        DatabaseKind::PostgreSql => "postgres",
        DatabaseKind::MariaDb => "root",
    }
}

fn decoded(text: &str) -> Result<String, String> {
    let text = fluent_uri::pct_enc::EStr::<fluent_uri::pct_enc::encoder::Query>::new(text)
        .ok_or_else(|| format!("{text:?} cannot be decoded"))?;
    text.decode().to_string().map(Into::into).map_err(|_| "the address is not UTF-8".to_owned())
}

/// What stands behind the `?` of an address.
#[derive(Debug, Default)]
struct Options {
    socket: Option<PathBuf>,
    schema: Option<String>,
    tls: Tls,
}

impl Options {
    fn parse(kind: DatabaseKind, query: &str) -> Result<Self, String> {
        let mut options = Self::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decoded(value)?;
            match key {
                "socket" | "host" => options.socket = Some(PathBuf::from(value)),
                "schema" if kind == DatabaseKind::PostgreSql => options.schema = Some(value),
                "schema" => {
                    return Err("a schema of MariaDB is a database: name it behind the host".to_owned());
                }
                "sslmode" => options.tls.mode = tls_mode(&value)?,
                "sslrootcert" => options.tls.roots = Some(PathBuf::from(value)),
                _ => return Err(format!("of an address's options {KNOWN} are known, not {pair:?}")),
            }
            if pair.ends_with('=') || !pair.contains('=') {
                return Err(format!("{pair:?} lacks a value"));
            }
        }
        if options.tls.roots.is_some() && !matches!(options.tls.mode, TlsMode::VerifyCa | TlsMode::VerifyFull)
        {
            return Err("sslrootcert needs sslmode=verify-ca or sslmode=verify-full".to_owned());
        }
        Ok(options)
    }
}

fn tls_mode(name: &str) -> Result<TlsMode, String> {
    let found = TlsMode::ALL.into_iter().find(|mode| mode.name() == name);
    found.ok_or_else(|| format!("sslmode is disable, require, verify-ca or verify-full, not {name:?}"))
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.kind {
            DatabaseKind::PostgreSql => "postgresql",
            DatabaseKind::MariaDb => "mariadb",
        };
        let Self { user, database, .. } = self;
        let mut options = Vec::new();
        match &self.endpoint {
            Endpoint::Tcp(host, port) if host.contains(':') => {
                write!(f, "{scheme}://{user}@[{host}]:{port}/{database}")?;
            }
            Endpoint::Tcp(host, port) => write!(f, "{scheme}://{user}@{host}:{port}/{database}")?,
            Endpoint::Unix(path, port) => {
                let port = if *port == default_port(self.kind) { String::new() } else { format!(":{port}") };
                write!(f, "{scheme}://{user}@localhost{port}/{database}")?;
                options.push(format!("socket={}", path.display()));
            }
        }
        if self.tls.mode != TlsMode::Disable {
            options.push(format!("sslmode={}", self.tls.mode.name()));
        }
        options.extend(self.tls.roots.iter().map(|path| format!("sslrootcert={}", path.display())));
        options.extend(self.schema.iter().map(|schema| format!("schema={schema}")));
        if options.is_empty() { Ok(()) } else { write!(f, "?{}", options.join("&")) }
    }
}

/// How transactions are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Manner {
    /// What keeps them apart.
    pub isolation: OltpIsolation,
    /// Whether the server keeps statements, and settings of the connection, from one transaction to the next. Behind a pooler it may be
    /// another server process each time.
    pub keeps: bool,
}

/// The name of an isolation in SQL.
pub fn isolation_name(isolation: OltpIsolation) -> &'static str {
    match isolation {
        OltpIsolation::ReadCommitted => "READ COMMITTED",
        OltpIsolation::RepeatableRead => "REPEATABLE READ",
        OltpIsolation::Serializable => "SERIALIZABLE",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written_without_passwords() {
        for (text, shown) in [
            ("postgresql://bench@db:6000/tpcc", "postgresql://bench@db:6000/tpcc"),
            ("postgres://db/tpcc", "postgresql://postgres@db:5432/tpcc"),
            ("mariadb://[::1]/a%20b", "mariadb://root@[::1]:3306/a b"),
            ("mysql://u@localhost/t?socket=/run/m.sock", "mariadb://u@localhost/t?socket=/run/m.sock"),
            ("postgresql://u@x/t?schema=b%20c", "postgresql://u@x:5432/t?schema=b c"),
            ("postgresql://u@x/t?schema=a&socket=/run", "postgresql://u@localhost/t?socket=/run&schema=a"),
            ("postgresql://u@x/t?sslmode=require", "postgresql://u@x:5432/t?sslmode=require"),
            (
                "mariadb://u@x/t?sslmode=verify-full&sslrootcert=/a.pem",
                "mariadb://u@x:3306/t?sslmode=verify-full&sslrootcert=/a.pem",
            ),
            ("postgresql://u@x:99/t?socket=/run", "postgresql://u@localhost:99/t?socket=/run"),
        ] {
            assert_eq!(Address::parse(text).unwrap().to_string(), shown);
        }
        for (text, word) in [
            ("postgresql://u:secret@db/t", "PGPASSWORD"),
            ("oracle://db/t", "oracle"),
            ("postgresql://db", "name"),
            ("postgresql:///t", "host"),
            ("postgresql://db:99999/t", "99999"),
            ("postgresql://db/t?ssl=yes", "ssl=yes"),
            ("postgresql://db/t?schema=", "lacks a value"),
            ("postgresql://db/t?sslmode=prefer", "verify-full"),
            ("mariadb://db/t?sslmode=verify-ca", "verify-full"),
            ("postgresql://db/t?sslrootcert=/x", "sslmode=verify-ca"),
            ("postgresql://db/t?socket=/run&sslmode=require", "not encrypted"),
            ("mariadb://db/t?schema=x", "behind the host"),
            ("tpcc", "no address"),
        ] {
            let said = Address::parse(text).unwrap_err();
            assert!(said.contains(word) && !said.contains("secret"), "{text}: {said}");
        }
    }

    #[test]
    fn the_folder_of_a_socket_is_found() {
        let folder = |path: &str| Address::socket_folder(Path::new(path)).display().to_string();
        assert_eq!(
            (folder("/run/pg/.s.PGSQL.5432"), folder("/run/pg")),
            ("/run/pg".into(), "/run/pg".into())
        );
    }

    #[test]
    fn a_password_is_not_printed() {
        let address = Address::parse("postgresql://db/t").unwrap();
        let connect = Connect { address, password: Some("secret".into()) };
        assert!(!format!("{connect:?}").contains("secret"));
    }
}
