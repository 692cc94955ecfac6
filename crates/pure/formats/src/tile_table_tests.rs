use super::*;
use crate::any_table::{AnyTable, read_any_table};

fn tiles(text: &str) -> TileTable {
    match read_any_table(text.as_bytes()) {
        Ok(AnyTable::Tiles(table)) => table,
        other => panic!("not a table of tiles: {other:?}"),
    }
}

#[test]
fn an_idle_member_has_no_score_and_tiles_are_counted_where_the_table_does_not_say() {
    let table = tiles(
        "# title: a test\nconfiguration,tile,member,value,reference,held\nhost,1,mail,330,300,yes\nhost,2,mail,300,300,no\n\
         host,2,standby,,,\n",
    );
    assert_eq!(table.facts.get("title"), Some("a test"));
    assert!(table.rows.iter().all(|row| row.tiles == 2));
    assert_eq!((table.rows[0].done, table.rows[0].held), (Some([330.0, 300.0]), Some(true)));
    assert_eq!((table.rows[1].held, table.rows[2].done, table.rows[2].held), (Some(false), None, None));
}

#[test]
fn operations_of_the_infrastructure_load_belong_to_no_tile() {
    let table = tiles(
        "configuration,tile,member,value,reference\nhost,1,mail,330,300\nhost,infrastructure,clone,2,2\n",
    );
    let found: Vec<_> = table.rows.iter().map(|row| (row.tile, row.tiles)).collect();
    assert_eq!(found, [(1, 1), (virtbench_record::INFRASTRUCTURE, 1)]);
}

#[test]
fn a_mistyped_column_and_a_run_without_a_tile_are_refused() {
    let unknown = read_any_table(b"configuration,tile,member,value,reference,hold\na,1,mail,1,1,no\n");
    let unknown = unknown.expect_err("there is no column hold").to_string();
    assert!(unknown.contains("column hold") && unknown.contains("held"), "{unknown}");
    let alone = read_any_table(b"configuration,tile,member,value,reference\nA,infrastructure,clone,10,10\n");
    assert_eq!(alone, Err(TableError::NoTile { configuration: "A".into() }));
    let table = tiles("configuration,tile,member,value,reference,held\nA,1,mail,0,0,no\n");
    assert_eq!(table.rows[0].done, Some([0.0, 0.0]), "what results.csv has of a member that did nothing");
}

#[test]
fn faults_of_a_table_of_tiles_name_their_line() {
    let head = "configuration,repetition,tiles,tile,member,value,reference,held\n";
    for (row, word) in [
        ("a,0,2,3,mail,1,1,yes", "tile 3 of 2"),
        ("a,0,2,0,mail,1,1,yes", "tile"),
        ("a,0,2,platform,clone,1,1,yes", "tile"),
        ("a,0,2,1,,1,1,yes", "member"),
        ("a,0,2,1,mail,x,1,yes", "value"),
        ("a,0,2,1,mail,1,0,yes", "reference"),
        ("a,0,2,1,mail,,1,yes", "value"),
        ("a,0,2,1,mail,1,1,perhaps", "held"),
        ("a,0,2,1,mail,1,1,yes\na,0,2,1,mail,1,1,yes", "line 2"),
    ] {
        let error = read_any_table(format!("{head}{row}\n").as_bytes()).expect_err(row);
        assert!(matches!(&error, TableError::Line { why, .. } if why.contains(word)), "{row}: {error}");
    }
    let missing = read_any_table(b"configuration,tile,member,value\na,1,mail,1\n").expect_err("no reference");
    assert_eq!(missing, TableError::NoColumn("reference"));
}
