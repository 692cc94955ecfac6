//! Every query of the dashboard over a shared catalogue, put to a PostgreSQL that holds one.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use serde_json::Value;
use tempfile::tempdir;
use virtbench_oltp::LocalServer;
use virtbench_record::DatabaseKind;

use super::tests::{quietly, run};
use super::*;

const DASHBOARD: &str = include_str!("../../../../contrib/grafana/history.json");

/// As Grafana hands it to the database.
fn put(sql: &str) -> String {
    let sql = sql.replace("$study", "'native-vs-vm'").replace("$machine", "'a'");
    let Some((before, rest)) = sql.split_once("$__timeFilter(") else { return sql };
    let mut depth = 1;
    let end = rest.find(|letter| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        depth == 0
    });
    let (column, after) = rest.split_at(end.unwrap());
    format!("{before}{column} BETWEEN '1970-01-01T00:00:00Z' AND '2100-01-01T00:00:00Z'{}", &after[1..])
}

#[test]
fn every_query_of_the_dashboard_over_runs_is_answered() {
    let server = LocalServer::start(DatabaseKind::PostgreSql, &["fsync=off"]).unwrap();
    let folder = tempdir().unwrap();
    run(&folder.path().join("one"), 86_400, "cpu");
    std::fs::create_dir(folder.path().join("damaged")).unwrap();
    std::fs::write(folder.path().join("damaged/run.json"), "{").unwrap();
    let place = Place::Server(Box::new(server.connect()));
    let mut catalogue = Catalogue::open_as(place, "a".into()).unwrap();
    catalogue.scan(&[folder.path().to_owned()], &mut quietly).unwrap();
    // A run of which something was measured.
    let measures = r#"[{"subject":"vm","quantity":"throughput","unit":"B/s","better":"higher","headline":true,"value":5.0},
        {"subject":"vm / native","quantity":"throughput","unit":"","better":"higher","headline":true,"value":0.5},
        {"subject":"vm","quantity":"mean latency","unit":"ns","better":"lower","headline":true,"value":0.5}]"#;
    server.query(&[&format!("UPDATE virtbench_history.runs SET measures = '{measures}'")]).unwrap();

    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let mut asked = 0;
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            let sql = put(target["rawSql"].as_str().unwrap());
            // Whatever their types, the server says them as text.
            let rows = server.query(&[&format!("SELECT row_to_json(found)::text FROM ({sql}) AS found")]);
            let rows = rows.unwrap_or_else(|error| panic!("{}: {error}: {sql}", panel["title"]));
            assert!(!rows.is_empty(), "{}: {sql}", panel["title"]);
            asked += 1;
        }
    }
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        if variable["type"] == "query" {
            let sql = variable["query"].as_str().unwrap();
            assert_eq!(server.query(&[sql]).unwrap().len(), 1, "{sql}");
            asked += 1;
        }
    }
    assert!(asked > 6, "{asked}");
}
