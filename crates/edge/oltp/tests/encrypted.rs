//! Encrypted connections.

use std::path::Path;

use virtbench_oltp::{
    Address, Connect, Endpoint, FaultKind, LocalCertificates, LocalServer, Population, Tls, TlsMode, check,
    populate, run,
};
use virtbench_record::{DatabaseKind, OltpPlan};

use crate::databases::{NEVER, plan};

/// A server that takes encrypted connections alone from the network.
fn server(kind: DatabaseKind, certificates: &LocalCertificates) -> LocalServer {
    let settings = certificates.settings(kind).unwrap();
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
    let certificates = LocalCertificates::make().unwrap();
    let server = server(kind, &certificates);
    let (authority, stranger) = (certificates.authority(), LocalCertificates::make().unwrap());
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
    let strange = stranger.authority();
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
