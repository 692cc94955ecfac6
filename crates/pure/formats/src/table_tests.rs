use super::*;
use proptest::prelude::*;

const PAPER: &str = include_str!("../../../../docs/data/paper2-adapters.csv");
const HEAD: &str = "configuration,block,read_percent,random_percent,iops\n";

fn read(text: &str) -> Result<ResultTable, TableError> {
    read_table(text.as_bytes())
}

fn refusal(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

#[test]
fn the_papers_tables_are_read_whole() {
    let table = read(PAPER).unwrap();
    assert_eq!(table.rows.len(), 40);
    let found = |name: &str, block_bytes, read_percent, random_percent| {
        let point = PointKey { block_bytes, read_percent, random_percent };
        let row = table.rows.iter().find(|row| row.configuration == name && row.point == point).unwrap();
        (row.figures.iops, row.figures.cpu_percent.unwrap())
    };
    // Corners of Tables 2 to 5.
    assert_eq!(found("LSI Logic", 4096, 0, 100), (817.0, 10.7));
    assert_eq!(found("LSI Logic", 65536, 100, 0), (2878.0, 51.5));
    assert_eq!(found("BusLogic", 8192, 100, 0), (13264.0, 107.8));
    assert_eq!(found("BusLogic", 65536, 0, 0), (1896.0, 27.9));
    assert!(table.facts.get("product").unwrap().contains("ESX Server 2.5.0"));
    // 16 outstanding, 817 a second (Little's law).
    assert!(table.latency_derived);
    assert!((table.rows[0].figures.latency_ns.unwrap() - 16.0 / 817.0 * 1e9).abs() < 1.0);
}

#[test]
fn a_runs_own_table_is_one_too() {
    let table = read(
        "environment,block_bytes,read_percent,random_percent,repetition,started_unix_ns,iops,bytes_per_second,\
         latency_mean_ns,host_cpu_percent\n\"a, b\",4096,100,0,2,17,10.5,43008,1500,120.5\n",
    )
    .unwrap();
    let row = &table.rows[0];
    assert_eq!((row.configuration.as_str(), row.repetition), ("a, b", 2));
    assert_eq!(row.figures.latency_ns, Some(1500.0));
    assert!(!table.latency_derived);
}

#[test]
fn either_rate_gives_the_other_and_an_empty_cell_is_unknown() {
    let table = read(
        "block,read_percent,random_percent,configuration,bytes_per_second,response_ms,cpu_percent\n4k,100,0,x,40960,,\n",
    )
    .unwrap();
    let figures = table.rows[0].figures;
    assert_eq!((figures.iops, figures.latency_ns, figures.cpu_percent), (10.0, None, None));
}

#[test]
fn what_is_wrong_is_named_with_its_line_and_column() {
    assert_eq!(refusal(""), TableError::NoColumn("configuration").to_string());
    assert!(refusal("configuration,block,read_percent,random_percent\n").contains("no column iops"));
    assert_eq!(refusal(HEAD), "no rows below the header");
    for (row, told) in [
        ("x,4x,0,0,1", "block"),
        ("x,0,0,0,1", "block"),
        ("x,4k,101,0,1", "read_percent"),
        ("x,4k,0,-1,1", "random_percent"),
        ("x,4k,0,0,inf", "iops"),
        ("x,4k,0,0,-1", "iops"),
        ("x,4k,0,0,", "neither iops nor bytes_per_second"),
        (",4k,0,0,1", "no name"),
    ] {
        let message = refusal(&format!("# a comment\n{HEAD}x,8k,0,0,1\n{row}\n"));
        assert!(message.starts_with("line 4: ") && message.contains(told), "{row}: {message}");
        let dos = refusal(&format!("# a comment\n{HEAD}x,8k,0,0,1\n{row}\n").replace('\n', "\r\n"));
        assert_eq!(dos, message, "lines of DOS");
    }
    let twice = refusal(&format!("{HEAD}x,4k,0,0,1\nx,4k,0,0,2\n"));
    assert!(
        twice.starts_with("line 3: ") && twice.contains("line 2") && twice.contains("repetition"),
        "{twice}"
    );
}

#[test]
fn counts_are_bounded() {
    let rows = |number: usize, row: fn(usize) -> String| {
        HEAD.to_owned() + &(0..number).map(row).collect::<Vec<_>>().join("\n")
    };
    assert!(refusal(&rows(33, |n| format!("c{n},4k,0,0,1"))).contains("32 configurations"));
    assert!(refusal(&rows(257, |n| format!("c,{},0,0,1", n + 1))).contains("256 points"));
    assert!(matches!(
        read_table(&vec![b'#'; MAX_TABLE_BYTES + 1]),
        Err(TableError::TooMany { what: "bytes", .. })
    ));
}

proptest! {
    #[test]
    fn no_bytes_panic_it(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = read_table(&bytes);
        let _ = read_table(&[HEAD.as_bytes(), &bytes].concat());
    }

    #[test]
    fn what_is_written_comes_back(
        rows in prop::collection::vec(("[a-z][a-z ,\"]{0,6}[a-z]", 1u64..1 << 30, 0u8..=100, 0u8..=100, 0.0f64..1e9), 1..20),
    ) {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(HEAD.trim().split(',').chain(["repetition"])).unwrap();
        for (number, (name, block, read, random, iops)) in rows.iter().enumerate() {
            let cells = [name.clone(), block.to_string(), read.to_string(), random.to_string(), iops.to_string(), number.to_string()];
            writer.write_record(cells).unwrap();
        }
        let table = read_table(&writer.into_inner().unwrap()).unwrap();
        prop_assert_eq!(table.rows.len(), rows.len());
        for (row, (name, block, read, random, iops)) in table.rows.iter().zip(&rows) {
            prop_assert_eq!(&row.configuration, name);
            let point = PointKey { block_bytes: *block, read_percent: *read, random_percent: *random };
            prop_assert_eq!(row.point, point);
            prop_assert_eq!(row.figures.iops, *iops);
        }
    }
}
