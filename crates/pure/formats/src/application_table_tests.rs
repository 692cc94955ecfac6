use super::*;
use crate::any_table::{AnyTable, read_any_table};

fn application(text: &str) -> ApplicationTable {
    match read_any_table(text.as_bytes()) {
        Ok(AnyTable::Application(table)) => table,
        other => panic!("not a table of an application: {other:?}"),
    }
}

#[test]
fn what_a_row_leaves_out_is_not_known() {
    let table = application(
        "# title: a test\nconfiguration,users,transactions_per_second,CPI\nNative,125,10600,\nVM,160,,2\n",
    );
    assert_eq!(table.facts.get("title"), Some("a test"));
    assert_eq!(table.rows[0].known.len(), 2);
    assert_eq!(table.rows[1].known, BTreeMap::from([(Quantity::Users, 160.0)]));
}

#[test]
fn the_kind_of_a_table_is_that_of_its_columns() {
    let points = "configuration,block,read_percent,random_percent,iops\na,4KiB,100,0,10\n";
    assert!(matches!(read_any_table(points.as_bytes()), Ok(AnyTable::Points(_))));
    let neither = read_any_table(b"configuration,iops\na,1\n").expect_err("a column is missing");
    assert_eq!(neither, TableError::NoColumn("block"));
    let nameless = read_any_table(b"users\n1\n").expect_err("a column is missing");
    assert_eq!(nameless, TableError::NoColumn("configuration"));
}

#[test]
fn faults_of_a_table_name_their_line() {
    for (text, line) in [
        ("configuration,users\na,1\na,2\n", 3),
        ("configuration,users\na,many\n", 2),
        ("configuration,users\na,-1\n", 2),
        ("configuration,users,repetition\na,1,x\n", 2),
        ("configuration,users\n,1\n", 2),
    ] {
        let error = read_any_table(text.as_bytes()).expect_err("it is damaged");
        assert!(matches!(error, TableError::Line { line: found, .. } if found == line), "{text}: {error}");
    }
    assert_eq!(read_any_table(b"configuration,users\n").expect_err("no rows"), TableError::Empty);
    let many: String = (0..40).map(|number| format!("c{number},1\n")).collect();
    let error = read_any_table(format!("configuration,users\n{many}").as_bytes()).expect_err("too many");
    assert!(matches!(error, TableError::TooMany { what: "configurations", .. }), "{error}");
}
