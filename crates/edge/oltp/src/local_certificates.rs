//! An authority of one's own and a server's certificate of it, for tests of encrypted connections.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use virtbench_record::DatabaseKind;
use virtbench_users::ordinary_folder;

/// An authority, and a server's certificate of it for `localhost`, in a folder that is gone with the value.
#[derive(Debug)]
pub struct LocalCertificates {
    folder: TempDir,
}

impl LocalCertificates {
    /// Makes both, valid for two days.
    ///
    /// # Errors
    /// There is no `openssl`, or it refuses.
    pub fn make() -> io::Result<Self> {
        let folder = ordinary_folder()?;
        let openssl = |words: &[&str]| made(folder.path(), words);
        let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
        let authority = ["req", "-x509", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem"];
        openssl(&[&authority[..], &curve].concat())?;
        let server = ["req", "-subj", "/CN=localhost", "-keyout", "key.pem", "-out", "request"];
        openssl(&[&server[..], &curve[..5]].concat())?;
        fs::write(folder.path().join("names"), "subjectAltName=DNS:localhost\n")?;
        let sign = ["x509", "-req", "-in", "request", "-CA", "ca.pem", "-CAkey", "ca.key", "-days", "2"];
        openssl(&[&sign[..], &["-extfile", "names", "-out", "certificate.pem"]].concat())?;
        let owner = fs::metadata(folder.path())?;
        for name in ["key.pem", "certificate.pem", "ca.pem"] {
            let path = folder.path().join(name);
            chown(&path, Some(owner.uid()), Some(owner.gid()))?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        }
        Ok(Self { folder })
    }

    /// The authority's certificate (PEM).
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Settings with which a [`LocalServer`](crate::LocalServer) takes encrypted connections alone from the network.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn settings(&self, kind: DatabaseKind) -> io::Result<Vec<String>> {
        let of = |option: &str, name: &str| format!("{option}={}", self.folder.path().join(name).display());
        Ok(match kind {
            DatabaseKind::PostgreSql => {
                let rules = self.folder.path().join("hba");
                fs::write(&rules, "local all all trust\nhostssl all all 127.0.0.1/32 trust\n")?;
                vec![
                    "fsync=off".to_owned(),
                    "listen_addresses=127.0.0.1".to_owned(),
                    "ssl=on".to_owned(),
                    of("ssl_cert_file", "certificate.pem"),
                    of("ssl_key_file", "key.pem"),
                    format!("hba_file={}", rules.display()),
                ]
            }
            DatabaseKind::MariaDb => vec![
                "innodb-flush-log-at-trx-commit=0".to_owned(),
                "skip-networking=0".to_owned(),
                "bind-address=127.0.0.1".to_owned(),
                "require-secure-transport=ON".to_owned(),
                of("ssl-cert", "certificate.pem"),
                of("ssl-key", "key.pem"),
                of("ssl-ca", "ca.pem"),
            ],
        })
    }
}

fn made(folder: &Path, words: &[&str]) -> io::Result<()> {
    let done = Command::new("openssl").args(words).current_dir(folder).output();
    let done = done.map_err(|error| {
        io::Error::other(format!("openssl does not start ({error}): install Debian's package openssl"))
    })?;
    if done.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("openssl: {}", String::from_utf8_lossy(&done.stderr).trim_end())))
}
