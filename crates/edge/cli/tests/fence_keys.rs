//! The reference of a fence's configuration is made from the code: every key, what it is for, and what it is without.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;

use virtbench_fence_daemon::config::{Config, DeviceTable, DiskTable, NbdTable};

use crate::tidy::root;

/// Rewrites the reference.
const UPDATE: &str = "VIRTBENCH_UPDATE_REFERENCE";
const PAGE: &str = "docs/fence-configuration.md";
/// Tables in the order of the page: the struct, its file, and where its keys stand.
const TABLES: [(&str, &str, &str); 10] = [
    ("Config", "mod.rs", "at the beginning of the file"),
    ("DeviceTable", "mod.rs", "[slow], [fast]"),
    ("CacheTable", "mod.rs", "[cache]"),
    ("SchedulerTable", "mod.rs", "[scheduler]"),
    ("PredictTable", "predictions.rs", "[scheduler.predict]"),
    ("Limits", "mod.rs", "[limits]"),
    ("NbdTable", "nbd.rs", "[nbd]"),
    ("TlsTable", "nbd.rs", "[nbd.tls]"),
    ("DiskTable", "mod.rs", "[[disk]]"),
    ("PoolTable", "mod.rs", "[pool.NAME]"),
];

const HEAD: &str = "\
# Configuration of a fence

Every key of the TOML file that `virtbench fence serve` takes. A key without a value here has none unless it is given; an
unknown key is refused with its line. Sizes are bytes or texts such as \"10 GiB\". This page is made from the code
(`VIRTBENCH_UPDATE_REFERENCE=1 cargo test -p virtbench --test repository fence_keys::`), and a test holds it to that.

Devices are `file:PATH` (direct I/O), `buffered:PATH` (through the page cache), `hdd:PATH?rpm=7200` and `ssd:PATH` (a model's
behaviour over a file) or `null:SIZE`. A fence has one slow and one fast device. A file with several has pools: `[pool.NAME.slow]`,
`[pool.NAME.fast]`, `[pool.NAME.nbd]` are as the tables without a pool, which such a file has not. `[cache]`, `[scheduler]` and what stands below
them give what a pool's own leave out, key by key; `[limits]` is every pool's. Devices that are to be one are put together below the fence, by
LVM or MD.
";

/// Values as they are without the file saying anything, by table and key.
fn defaults() -> BTreeMap<(String, String), String> {
    let mut config = Config::new(vec![DiskTable::new("NAME".to_owned(), 4096)]);
    config.slow = Some(DeviceTable::new("null:4096".parse().unwrap()));
    config.nbd = Some(NbdTable::new(vec!["unix:/PATH".parse().unwrap()]));
    let (mut table, mut values) = (String::new(), BTreeMap::new());
    for line in config.text().unwrap().lines() {
        if let Some(name) = line.strip_prefix('[') {
            table = name.trim_matches(['[', ']']).to_owned();
        } else if let Some((key, value)) = line.split_once(" = ") {
            values.insert((table.clone(), key.to_owned()), value.to_owned());
        }
    }
    values
}

/// The fields of a struct of the configuration: name and documentation.
fn fields(file: &str, name: &str) -> Vec<(String, String)> {
    let path = root().join("crates/edge/fence-daemon/src/config").join(file);
    let text = fs::read_to_string(path).unwrap();
    let (_, body) = text.split_once(&format!("pub struct {name} {{\n")).unwrap();
    let (body, _) = body.split_once("\n}\n").unwrap();
    let (mut doc, mut found, mut renamed) = (String::new(), Vec::new(), None);
    for line in body.lines().map(str::trim) {
        if let Some(more) = line.strip_prefix("///") {
            doc.push_str(more);
        } else if let Some(name) = line.strip_prefix("#[serde(rename = \"") {
            renamed = name.split('"').next().map(str::to_owned);
        } else if let Some(field) = line.strip_prefix("pub ") {
            let name = field.split(':').next().unwrap().to_owned();
            found.push((renamed.take().unwrap_or(name), std::mem::take(&mut doc).trim().to_owned()));
        }
    }
    found
}

fn page() -> (String, Vec<String>) {
    let (defaults, mut text, mut keys) = (defaults(), HEAD.to_owned(), Vec::new());
    let given = ["name", "size", "device", "listen"];
    let tables =
        ["cache", "scheduler", "scheduler.predict", "limits", "nbd", "nbd.tls", "disk", "slow", "pool"];
    for (name, file, place) in TABLES {
        text.push_str(&format!("\n## {place}\n\n| key | without it | what it is |\n|---|---|---|\n"));
        let table = if place.starts_with("[slow]") { "slow" } else { place.trim_matches(['[', ']']) };
        for (key, doc) in fields(file, name) {
            // A table of its own.
            if ["Config", "PoolTable"].contains(&name) && (tables.contains(&key.as_str()) || key == "fast")
                || ["predict", "tls"].contains(&key.as_str())
            {
                continue;
            }
            let needed = given.contains(&key.as_str()) && ["slow", "nbd", "disk"].contains(&table);
            let default = defaults.get(&(table.to_owned(), key.clone())).map(|value| format!("`{value}`"));
            let default = if needed { "needed".to_owned() } else { default.unwrap_or_default() };
            let default =
                if (table, key.as_str()) == ("nbd.tls", "required") { "`true`".into() } else { default };
            text.push_str(&format!("| `{key}` | {default} | {} |\n", doc.replace('|', "\\|")));
            keys.push(key);
        }
    }
    (text, keys)
}

#[test]
fn every_key_of_a_fence_stands_in_the_reference() {
    let (text, keys) = page();
    // What was read from the source is not nothing.
    assert!(keys.len() > 45, "{keys:?}");
    for key in ["write_through", "stall_s", "slow_knots", "client_authority", "memory", "depth", "control"] {
        assert!(keys.iter().any(|known| known == key), "{key}");
    }
    let path = root().join(PAGE);
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&path, &text).unwrap();
    }
    let is = fs::read_to_string(&path).unwrap_or_default();
    assert!(is == text, "{PAGE} is not what the code says: {UPDATE}=1 writes it anew");
}
