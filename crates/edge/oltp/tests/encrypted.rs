//! Encrypted connections.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use virtbench_oltp::{
    Address, Connect, Endpoint, FaultKind, LocalServer, Population, Tls, TlsMode, check, populate, run,
};
use virtbench_record::{DatabaseKind, OltpPlan};
use virtbench_users::ordinary_folder;

use crate::databases::{NEVER, plan};

/// An authority, and a server's certificate of it for `localhost`.
struct Certificates {
    folder: tempfile::TempDir,
}

impl Certificates {
    fn make() -> Self {
        let folder = ordinary_folder().unwrap();
        let openssl = |words: &[&str]| {
            let done = Command::new("openssl").args(words).current_dir(folder.path()).output();
            let done = done.expect("there is no openssl: install Debian's package openssl");
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        };
        let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
        let authority = ["req", "-x509", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem"];
        openssl(&[&authority[..], &curve].concat());
        let server = ["req", "-subj", "/CN=localhost", "-keyout", "key.pem", "-out", "request"];
        openssl(&[&server[..], &curve[..5]].concat());
        fs::write(folder.path().join("names"), "subjectAltName=DNS:localhost\n").unwrap();
        let sign = ["x509", "-req", "-in", "request", "-CA", "ca.pem", "-CAkey", "ca.key", "-days", "2"];
        openssl(&[&sign[..], &["-extfile", "names", "-out", "certificate.pem"]].concat());
        let owner = fs::metadata(folder.path()).unwrap();
        for name in ["key.pem", "certificate.pem", "ca.pem"] {
            let path = folder.path().join(name);
            chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// A server that takes encrypted connections alone from the network.
fn server(kind: DatabaseKind, certificates: &Certificates) -> LocalServer {
    let of = |option: &str, name: &str| format!("{option}={}", certificates.path(name).display());
    let settings = match kind {
        DatabaseKind::PostgreSql => {
            let rules = certificates.path("hba");
            fs::write(&rules, "local all all trust\nhostssl all all 127.0.0.1/32 trust\n").unwrap();
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
    };
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    LocalServer::start(kind, &settings).unwrap()
}

fn encrypted(server: &LocalServer, host: &str, mode: TlsMode, roots: Option<&Path>) -> Connect {
    let mut connect = server.connect();
    connect.address.endpoint = Endpoint::Tcp(host.into(), server.port());
    connect.address.tls = Tls { mode, roots: roots.map(Path::to_owned) };
    assert_eq!(Address::parse(&connect.address.to_string()), Ok(connect.address.clone()));
    connect
}

fn whole_way(kind: DatabaseKind) {
    let certificates = Certificates::make();
    let server = server(kind, &certificates);
    let (authority, stranger) = (certificates.path("ca.pem"), Certificates::make());
    let refused = |connect: &Connect| {
        let error = check(connect, virtbench_oltp::Depth::Required, &NEVER, &mut |_| {}).unwrap_err();
        (error.fault(), error.to_string())
    };
    let (_, bare) = refused(&encrypted(&server, "127.0.0.1", TlsMode::Disable, None));
    assert!(bare.contains("?sslmode=require"), "{bare}");
    assert_eq!(
        bare.contains("check user and password"),
        kind == DatabaseKind::MariaDb,
        "it says no more: {bare}"
    );
    let strange = stranger.path("ca.pem");
    for (host, roots) in [("localhost", &strange), ("127.0.0.1", &authority)] {
        let (kind, said) = refused(&encrypted(&server, host, TlsMode::VerifyFull, Some(roots)));
        assert_eq!(kind, Some(FaultKind::Encryption), "{said}");
        assert!(said.contains("sslrootcert=FILE"), "{said}");
    }
    let required = encrypted(&server, "127.0.0.1", TlsMode::Require, None);
    populate(&required, Population { warehouses: 1, seed: 3 }, false, &NEVER, &mut |_| {}).unwrap();
    let mut connects = vec![required, encrypted(&server, "localhost", TlsMode::VerifyFull, Some(&authority))];
    if kind == DatabaseKind::PostgreSql {
        connects.push(encrypted(&server, "127.0.0.1", TlsMode::VerifyCa, Some(&authority)));
    }
    for connect in connects {
        let load = OltpPlan { time_ns: 1_000_000_000, ..plan() };
        let outcome = run(&connect, &load, &NEVER, &mut |_| {}).unwrap();
        assert!(outcome.failed() == 0 && outcome.conditions_held == [1, 2, 3, 4], "{outcome:?}");
        assert!(outcome.notes.iter().any(|note| note.contains("encrypted")), "{:?}", outcome.notes);
    }
}

#[test]
fn postgresql_is_loaded_through_encrypted_connections() {
    whole_way(DatabaseKind::PostgreSql);
}

#[test]
fn mariadb_is_loaded_through_encrypted_connections() {
    whole_way(DatabaseKind::MariaDb);
}

#[test]
fn a_server_without_encryption_is_named() {
    let server =
        LocalServer::start(DatabaseKind::PostgreSql, &["fsync=off", "listen_addresses=127.0.0.1"]).unwrap();
    let connect = encrypted(&server, "127.0.0.1", TlsMode::Require, None);
    let error = check(&connect, virtbench_oltp::Depth::Required, &NEVER, &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("leave sslmode out"), "{error}");
}
