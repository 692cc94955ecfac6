//! Where a database is, and how it is reached.

use std::fmt;
use std::path::{Path, PathBuf};

use fluent_uri::Uri;
use virtbench_record::DatabaseKind;

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

impl Address {
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
        let socket = uri.query().map(|query| socket(query.as_str())).transpose()?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let database = decoded(uri.path().as_str().trim_start_matches('/'))?;
        if database.is_empty() {
            return Err(format!("the address lacks the database's name: {FORM}"));
        }
        let endpoint = match socket {
            Some(path) => Endpoint::Unix(path, port),
            None if host.is_empty() => return Err(format!("the address lacks a host: {FORM}")),
            None if host.contains(':') => Endpoint::Tcp(host, port),
            None => Endpoint::Tcp(decoded(&host)?, port),
        };
        Ok(Self { kind, endpoint, user, database })
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

fn socket(query: &str) -> Result<PathBuf, String> {
    match query.split_once('=') {
        Some(("socket" | "host", path)) if !path.contains('&') => Ok(PathBuf::from(decoded(path)?)),
        _ => Err(format!("of an address's options only ?socket=PATH is known, not {query:?}")),
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.kind {
            DatabaseKind::PostgreSql => "postgresql",
            DatabaseKind::MariaDb => "mariadb",
        };
        match &self.endpoint {
            Endpoint::Tcp(host, port) if host.contains(':') => {
                write!(f, "{scheme}://{}@[{host}]:{port}/{}", self.user, self.database)
            }
            Endpoint::Tcp(host, port) => {
                write!(f, "{scheme}://{}@{host}:{port}/{}", self.user, self.database)
            }
            Endpoint::Unix(path, port) => {
                let port = if *port == default_port(self.kind) { String::new() } else { format!(":{port}") };
                let (user, database) = (&self.user, &self.database);
                write!(f, "{scheme}://{user}@localhost{port}/{database}?socket={}", path.display())
            }
        }
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
            ("postgresql://db/t?sslmode=require", "sslmode"),
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
