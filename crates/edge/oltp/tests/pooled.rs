//! A pooler before the server, which gives each transaction another connection: pgbouncer.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use virtbench_oltp::{Connect, Endpoint, LocalServer, OltpError, run};
use virtbench_record::{DatabaseKind, OltpPlan};
use virtbench_users::{free_port, ordinary_command, ordinary_folder};

use crate::databases::{NEVER, brief, populated_server};

/// pgbouncer in transaction mode, with eight connections of the server's for all its clients.
struct Pooler {
    process: Child,
    folder: TempDir,
    port: u16,
}

impl Pooler {
    fn start(server: &LocalServer) -> Self {
        let program = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].map(PathBuf::from);
        let program = program.iter().find(|path| path.is_file());
        let program = program.expect("there is no pgbouncer: install Debian's package pgbouncer");
        let (folder, port) = (ordinary_folder().unwrap(), free_port().unwrap());
        let (place, file) = (folder.path().display(), folder.path().join("pgbouncer.ini"));
        let (host, host_port) = (server.folder().display(), server.port());
        fs::write(folder.path().join("users"), "\"postgres\" \"\"\n").unwrap();
        let settings = format!(
            "[databases]\n* = host={host} port={host_port}\n[pgbouncer]\nlisten_port={port}\nunix_socket_dir={place}\n\
             auth_type=trust\nauth_file={place}/users\npool_mode=transaction\nmax_client_conn=200\ndefault_pool_size=8\n"
        );
        fs::write(&file, settings).unwrap();
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let mut command = ordinary_command(program);
        let process =
            command.arg(&file).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn();
        let pooler = Self { process: process.unwrap(), folder, port };
        pooler.wait_until_ready(&pooler.folder.path().join(format!(".s.PGSQL.{port}")));
        pooler
    }

    fn wait_until_ready(&self, socket: &Path) {
        let begun = Instant::now();
        while !virtbench_host::listens_at(socket) {
            let log = || fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(begun.elapsed() < Duration::from_secs(20), "pgbouncer does not listen: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn connect(&self, server: &LocalServer) -> Connect {
        let mut connect = server.connect();
        connect.address.endpoint = Endpoint::Unix(self.folder.path().to_owned(), self.port);
        connect
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn many_users_share_few_connections_behind_a_pooler_that_is_known_for_one() {
    let (server, _) = populated_server(DatabaseKind::PostgreSql);
    let pooler = Pooler::start(&server);
    let connect = pooler.connect(&server);
    // More users than the server has connections, which is no reason to refuse them here.
    let load = OltpPlan { users: 40, prepared: false, check_all: true, ..brief() };
    let outcome = run(&connect, &load, &NEVER, &mut |_| {}).unwrap();
    assert_eq!((outcome.ended_by.as_deref(), outcome.failed(), outcome.conditions_held.len()), (None, 0, 11));
    assert!(outcome.transactions_per_second > 5.0, "{outcome:?}");
    let kept = OltpPlan { prepared: true, ..load };
    let said = match run(&connect, &kept, &NEVER, &mut |_| {}) {
        Ok(outcome) => outcome.ended_by.expect("a statement that another connection prepared"),
        Err(error @ OltpError::Server { .. }) => error.to_string(),
        Err(error) => panic!("{error}"),
    };
    assert!(said.contains("prepared statement") && said.contains("--prepared no"), "{said}");
}

#[test]
fn statements_that_are_not_prepared_do_the_same() {
    for kind in [DatabaseKind::PostgreSql, DatabaseKind::MariaDb] {
        let (_server, connect) = populated_server(kind);
        let load = OltpPlan { prepared: false, check_all: true, ..brief() };
        let outcome = run(&connect, &load, &NEVER, &mut |_| {}).unwrap();
        assert_eq!((outcome.failed(), outcome.conditions_held.len()), (0, 11), "{outcome:?}");
        for (name, one) in outcome.transactions.iter().filter(|(_, one)| one.completed == 0) {
            assert!(["delivery", "order_status", "stock_level"].contains(&name.as_str()), "{one:?}");
        }
    }
}
