//! Conditions on real servers: each is broken in each way, within a transaction that is rolled back.

use super::*;
use crate::local_server::LocalServer;
use crate::populate::populate;

static NEVER: AtomicBool = AtomicBool::new(false);
const POPULATION: Population = Population { warehouses: 1, seed: 4 };
/// An order that is delivered, and one that is not.
const DELIVERED: &str = "o_w_id = 1 AND o_d_id = 1 AND o_id = 50";
const LINES: &str = "ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 50";
const CUSTOMER: &str = "c_w_id = 1 AND c_d_id = 1 AND c_id = 7";

/// What is wrong, the statements that make it so, and a condition that says so.
fn breaks() -> Vec<(&'static str, Vec<String>, u32)> {
    let one = |statement: &str| vec![statement.to_owned()];
    let mut all = vec![
        ("warehouse missing", one("DELETE FROM @warehouse"), 1),
        ("w_ytd null", one("UPDATE @warehouse SET w_ytd = NULL"), 1),
        ("w_ytd", one("UPDATE @warehouse SET w_ytd = w_ytd + 1"), 1),
        ("another warehouse", one("INSERT INTO @warehouse (w_id, w_ytd) VALUES (2, 0)"), 0),
        ("district missing", one("DELETE FROM @district WHERE d_id = 10"), 0),
        ("d_ytd null", one("UPDATE @district SET d_ytd = NULL WHERE d_id = 3"), 1),
        ("d_next_o_id null", one("UPDATE @district SET d_next_o_id = NULL WHERE d_id = 4"), 2),
        ("d_next_o_id", one("UPDATE @district SET d_next_o_id = d_next_o_id + 1 WHERE d_id = 4"), 2),
        ("another district", one("INSERT INTO @district (d_id, d_w_id, d_ytd) VALUES (11, 1, 0)"), 0),
        ("a hole in new_order", one("DELETE FROM @new_order WHERE no_d_id = 1 AND no_o_id = 2900"), 3),
        ("a district's new_order", one("DELETE FROM @new_order WHERE no_d_id = 2"), 3),
        ("new_order of no order", one("INSERT INTO @new_order VALUES (99999, 1, 1)"), 2),
        (
            "new_order moved",
            one("UPDATE @new_order SET no_o_id = 2100 WHERE no_d_id = 1 AND no_o_id = 3000"),
            2,
        ),
        ("a line missing", vec![format!("DELETE FROM @order_line WHERE {LINES} AND ol_number = 1")], 4),
        (
            "a line of no order",
            one("INSERT INTO @order_line (ol_o_id, ol_d_id, ol_w_id, ol_number) VALUES (99999, 1, 1, 1)"),
            4,
        ),
        (
            "a line of no warehouse",
            one("INSERT INTO @order_line (ol_o_id, ol_d_id, ol_w_id, ol_number) VALUES (1, 1, 9, 1)"),
            0,
        ),
        ("o_ol_cnt null", vec![format!("UPDATE @orders SET o_ol_cnt = NULL WHERE {DELIVERED}")], 4),
        ("o_carrier_id null", vec![format!("UPDATE @orders SET o_carrier_id = NULL WHERE {DELIVERED}")], 5),
        (
            "an order with its lines",
            vec![
                format!("DELETE FROM @orders WHERE {DELIVERED}"),
                format!("DELETE FROM @order_line WHERE {LINES}"),
            ],
            2,
        ),
    ];
    all.extend(breaks_of_one_order_or_customer());
    // Every new order may have been delivered, but then nothing is undelivered.
    let number = |table: Table| if table == Table::NewOrder { 3 } else { 0 };
    all.extend(
        Table::ALL
            .map(|table| ("a table emptied", vec![format!("DELETE FROM @{}", table.name())], number(table))),
    );
    all
}

/// The same of conditions that look at one order or one customer, and of rows that nothing else counts.
fn breaks_of_one_order_or_customer() -> Vec<(&'static str, Vec<String>, u32)> {
    let one = |statement: &str| vec![statement.to_owned()];
    vec![
        ("o_ol_cnt", vec![format!("UPDATE @orders SET o_ol_cnt = o_ol_cnt + 1 WHERE {DELIVERED}")], 6),
        ("ol_delivery_d null", vec![format!("UPDATE @order_line SET ol_delivery_d = NULL WHERE {LINES}")], 7),
        ("ol_amount null", vec![format!("UPDATE @order_line SET ol_amount = NULL WHERE {LINES}")], 10),
        (
            "ol_amount",
            vec![format!("UPDATE @order_line SET ol_amount = 1 WHERE {LINES} AND ol_number = 1")],
            12,
        ),
        ("h_amount null", one("UPDATE @history SET h_amount = NULL WHERE h_d_id = 1 AND h_c_id = 7"), 8),
        ("h_amount", one("UPDATE @history SET h_amount = 9 WHERE h_d_id = 1 AND h_c_id = 7"), 9),
        ("history missing", one("DELETE FROM @history WHERE h_d_id = 1 AND h_c_id = 7"), 10),
        (
            "history twice",
            one("INSERT INTO @history SELECT * FROM @history WHERE h_d_id = 1 AND h_c_id = 7"),
            8,
        ),
        ("history of nobody", one("UPDATE @history SET h_c_id = NULL WHERE h_d_id = 1 AND h_c_id = 7"), 0),
        ("c_balance null", vec![format!("UPDATE @customer SET c_balance = NULL WHERE {CUSTOMER}")], 10),
        ("c_balance", vec![format!("UPDATE @customer SET c_balance = 5 WHERE {CUSTOMER}")], 12),
        (
            "c_ytd_payment null",
            vec![format!("UPDATE @customer SET c_ytd_payment = NULL WHERE {CUSTOMER}")],
            12,
        ),
        ("customer missing", vec![format!("DELETE FROM @customer WHERE {CUSTOMER}")], 0),
        ("stock missing", one("DELETE FROM @stock WHERE s_i_id = 77"), 0),
        ("s_quantity null", one("UPDATE @stock SET s_quantity = NULL WHERE s_i_id = 77"), 0),
        ("item missing", one("DELETE FROM @item WHERE i_id = 77"), 0),
    ]
}

fn each_way_is_found(kind: DatabaseKind, settings: &[&str]) {
    let server = LocalServer::start(kind, settings).unwrap();
    let connect = server.connect();
    populate(&connect, POPULATION, false, &NEVER, &mut |_| {}).unwrap();
    wait(async {
        let mut session = connected(&connect, Manner::default()).await?;
        mark::require(&mut session, &connect).await?;
        let mut numbers = std::collections::BTreeSet::new();
        for (what, statements, number) in breaks() {
            session.query("BEGIN").await.unwrap();
            for statement in &statements {
                session.query_tables(statement).await.unwrap();
            }
            let mut look = Look { session: &mut session, population: POPULATION, stop: &NEVER };
            // What finds it, and no more: all of them take long.
            let mut broken = match CONDITIONS.iter().find(|condition| condition.number == number) {
                Some(condition) => look.of(condition).await?.into_iter().collect(),
                None => look.in_districts(&mut |_| {}).await?,
            };
            if number == 0 {
                broken.extend(look.in_tables().await?);
            }
            assert!(broken.iter().any(|violation| violation.condition == number), "{what}: {broken:?}");
            numbers.insert(number);
            session.query("ROLLBACK").await.unwrap();
        }
        assert_eq!(numbers.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12]);
        let mut look = Look { session: &mut session, population: POPULATION, stop: &NEVER };
        assert_eq!(look.broken(Depth::All, &mut |_| {}).await?, []);
        Ok(())
    })
    .unwrap();
}

#[test]
fn each_condition_is_found_broken_in_each_way_on_postgresql() {
    each_way_is_found(DatabaseKind::PostgreSql, &["fsync=off", "shared_buffers=256MB"]);
}

#[test]
fn each_condition_is_found_broken_in_each_way_on_mariadb() {
    let settings =
        ["innodb-flush-log-at-trx-commit=0", "innodb-buffer-pool-size=256M", "innodb-doublewrite=0"];
    each_way_is_found(DatabaseKind::MariaDb, &settings);
}
