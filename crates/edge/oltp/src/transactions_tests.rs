//! Transactions on real servers.

use std::sync::atomic::AtomicBool;

use virtbench_record::{DatabaseKind, OltpKind};

use super::*;
use crate::address::Manner;
use crate::draws::Constants;
use crate::input::Terminal;
use crate::local_server::LocalServer;
use crate::mark;
use crate::populate::populate;
use crate::population::Population;
use crate::session::{connected, wait};
use crate::statement::{One, bare};
use crate::tables::Table;

/// More than 16 bits with a sign hold.
const WAREHOUSE: u32 = 40_000;

/// Whether it stays at its own warehouse, the only one that is there.
fn stays(input: &Input) -> bool {
    match input {
        Input::NewOrder(order) => order.lines.iter().all(|line| line.supply == WAREHOUSE),
        Input::Payment(payment) => payment.customer_warehouse == WAREHOUSE,
        Input::OrderStatus(_) | Input::Delivery(_) | Input::StockLevel(_) => true,
    }
}

fn all_kinds_of_a_late_warehouse(kind: DatabaseKind, settings: &[&str]) {
    let server = LocalServer::start(kind, settings).unwrap();
    let (connect, never) = (server.connect(), AtomicBool::new(false));
    populate(&connect, Population { warehouses: 1, seed: 2 }, false, &never, &mut |_| {}).unwrap();
    wait(async {
        let mut session = connected(&connect, Manner { keeps: true, ..Manner::default() }).await?;
        mark::require(&mut session, &connect).await?;
        for table in Table::ALL {
            let columns =
                table.columns().into_iter().map(|(name, _)| name).filter(|name| name.ends_with("w_id"));
            let sets: Vec<String> = columns.map(|name| format!("{name} = {WAREHOUSE}")).collect();
            if !sets.is_empty() {
                let statement = format!("UPDATE @{} SET {}", table.name(), sets.join(", "));
                session.query_tables(&statement).await.unwrap();
            }
        }
        let constants = Constants::of_population(2);
        let mut terminal = Terminal::new(1, WAREHOUSE - 1, WAREHOUSE, constants);
        for kind in OltpKind::ALL {
            let input = std::iter::repeat_with(|| terminal.enter(kind)).find(stays).unwrap();
            let done =
                perform(&mut session, &input).await.unwrap_or_else(|fault| panic!("{kind:?}: {fault}"));
            assert!(kind != OltpKind::Delivery || done.orders == 10, "{done:?}");
            session.run(&[bare(One::Rollback)]).await.unwrap();
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn warehouses_beyond_sixteen_bits_work_on_postgresql() {
    all_kinds_of_a_late_warehouse(DatabaseKind::PostgreSql, &["fsync=off", "shared_buffers=256MB"]);
}

#[test]
fn warehouses_beyond_sixteen_bits_work_on_mariadb() {
    let settings = ["innodb-flush-log-at-trx-commit=0", "innodb-buffer-pool-size=256M"];
    all_kinds_of_a_late_warehouse(DatabaseKind::MariaDb, &settings);
}
