//! The nine tables ([TPC-C 5.11], clause 1.3).

use sha2::{Digest, Sha256};
use virtbench_record::DatabaseKind;

use crate::draws::{CUSTOMERS, DISTRICTS, ITEMS};
use crate::statement::{Row, Value};

/// A table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Table {
    Warehouse,
    District,
    Customer,
    History,
    NewOrder,
    Orders,
    OrderLine,
    Item,
    Stock,
}

/// A column with its type, as PostgreSQL names it.
type Column = (&'static str, &'static str);

impl Table {
    /// All nine.
    pub const ALL: [Self; 9] = [
        Self::Warehouse,
        Self::District,
        Self::Customer,
        Self::History,
        Self::NewOrder,
        Self::Orders,
        Self::OrderLine,
        Self::Item,
        Self::Stock,
    ];

    /// Its name in the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::Warehouse => "warehouse",
            Self::District => "district",
            Self::Customer => "customer",
            Self::History => "history",
            Self::NewOrder => "new_order",
            Self::Orders => "orders",
            Self::OrderLine => "order_line",
            Self::Item => "item",
            Self::Stock => "stock",
        }
    }

    /// Rows of so many warehouses; unknown of order lines, whose number is drawn.
    pub fn rows_of(self, warehouses: u32) -> Option<u64> {
        let (districts, customers) = (u64::from(DISTRICTS), u64::from(CUSTOMERS));
        let each = match self {
            Self::Item => return Some(u64::from(ITEMS)),
            Self::Warehouse => 1,
            Self::District => districts,
            Self::Customer | Self::History | Self::Orders => districts * customers,
            Self::NewOrder => districts * 900,
            Self::Stock => u64::from(ITEMS),
            Self::OrderLine => return None,
        };
        Some(each * u64::from(warehouses))
    }

    /// Its key; the history has none.
    pub fn key(self) -> Option<&'static str> {
        match self {
            Self::Warehouse => Some("w_id"),
            Self::District => Some("d_w_id, d_id"),
            Self::Customer => Some("c_w_id, c_d_id, c_id"),
            Self::History => None,
            Self::NewOrder => Some("no_w_id, no_d_id, no_o_id"),
            Self::Orders => Some("o_w_id, o_d_id, o_id"),
            Self::OrderLine => Some("ol_w_id, ol_d_id, ol_o_id, ol_number"),
            Self::Item => Some("i_id"),
            Self::Stock => Some("s_w_id, s_i_id"),
        }
    }

    /// A further index: its name and columns.
    pub fn index(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Customer => Some(("idx_customer", "c_w_id, c_d_id, c_last, c_first")),
            Self::Orders => Some(("idx_order", "o_w_id, o_d_id, o_c_id, o_id")),
            _ => None,
        }
    }

    /// The columns, in the order of the specification, in which rows are loaded.
    pub fn columns(self) -> Vec<Column> {
        match self {
            Self::Warehouse => {
                [vec![("w_id", "int"), ("w_name", "varchar(10)")], address("w"), tax("w")].concat()
            }
            Self::District => [
                vec![("d_id", "int"), ("d_w_id", "int"), ("d_name", "varchar(10)")],
                address("d"),
                tax("d"),
                vec![("d_next_o_id", "int")],
            ]
            .concat(),
            Self::Customer => customer(),
            Self::History => HISTORY.to_vec(),
            Self::NewOrder => vec![("no_o_id", "int"), ("no_d_id", "int"), ("no_w_id", "int")],
            Self::Orders => ORDERS.to_vec(),
            Self::OrderLine => ORDER_LINE.to_vec(),
            Self::Item => ITEM.to_vec(),
            Self::Stock => stock(),
        }
    }

    /// The statements that make it and write `mark` on it. In MariaDB the key is how rows lie, so that it is there from the beginning.
    pub fn create(self, database: DatabaseKind, mark: &str) -> Vec<String> {
        let columns = self.columns().into_iter().map(|(name, kind)| match (database, kind) {
            (DatabaseKind::MariaDb, "timestamp") => format!("{name} datetime"),
            _ => format!("{name} {kind}"),
        });
        let (name, mut parts): (_, Vec<String>) = (self.name(), columns.collect());
        match database {
            DatabaseKind::PostgreSql => vec![
                format!("CREATE TABLE @{name} ({})", parts.join(", ")),
                format!("COMMENT ON TABLE @{name} IS '{mark}'"),
            ],
            DatabaseKind::MariaDb => {
                parts.extend(self.key().map(|key| format!("PRIMARY KEY ({key})")));
                let options = "ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_bin";
                vec![format!("CREATE TABLE @{name} ({}) {options} COMMENT='{mark}'", parts.join(", "))]
            }
        }
    }

    /// The statements that follow once it is loaded.
    pub fn finish(self, database: DatabaseKind) -> Vec<String> {
        let name = self.name();
        let key = self.key().filter(|_| database == DatabaseKind::PostgreSql);
        let key = key.map(|key| format!("ALTER TABLE @{name} ADD PRIMARY KEY ({key})"));
        let index =
            self.index().map(|(index, columns)| format!("CREATE INDEX {index} ON @{name} ({columns})"));
        let settle = match database {
            DatabaseKind::PostgreSql => format!("VACUUM (ANALYZE) @{name}"),
            DatabaseKind::MariaDb => format!("ANALYZE TABLE @{name}"),
        };
        key.into_iter().chain(index).chain([settle]).collect()
    }
}

const HISTORY: [Column; 8] = [
    ("h_c_id", "int"),
    ("h_c_d_id", "int"),
    ("h_c_w_id", "int"),
    ("h_d_id", "int"),
    ("h_w_id", "int"),
    ("h_date", "timestamp"),
    ("h_amount", "decimal(6,2)"),
    ("h_data", "varchar(24)"),
];

const ORDERS: [Column; 8] = [
    ("o_id", "int"),
    ("o_d_id", "int"),
    ("o_w_id", "int"),
    ("o_c_id", "int"),
    ("o_entry_d", "timestamp"),
    ("o_carrier_id", "int"),
    ("o_ol_cnt", "int"),
    ("o_all_local", "int"),
];

const ORDER_LINE: [Column; 10] = [
    ("ol_o_id", "int"),
    ("ol_d_id", "int"),
    ("ol_w_id", "int"),
    ("ol_number", "int"),
    ("ol_i_id", "int"),
    ("ol_supply_w_id", "int"),
    ("ol_delivery_d", "timestamp"),
    ("ol_quantity", "int"),
    ("ol_amount", "decimal(6,2)"),
    ("ol_dist_info", "char(24)"),
];

const ITEM: [Column; 5] = [
    ("i_id", "int"),
    ("i_im_id", "int"),
    ("i_name", "varchar(24)"),
    ("i_price", "decimal(5,2)"),
    ("i_data", "varchar(50)"),
];

fn address(prefix: &str) -> Vec<Column> {
    let names = match prefix {
        "w" => ["w_street_1", "w_street_2", "w_city", "w_state", "w_zip"],
        "d" => ["d_street_1", "d_street_2", "d_city", "d_state", "d_zip"],
        _ => ["c_street_1", "c_street_2", "c_city", "c_state", "c_zip"],
    };
    names.into_iter().zip(["varchar(20)", "varchar(20)", "varchar(20)", "char(2)", "char(9)"]).collect()
}

fn tax(prefix: &str) -> Vec<Column> {
    let names = if prefix == "w" { ["w_tax", "w_ytd"] } else { ["d_tax", "d_ytd"] };
    names.into_iter().zip(["decimal(4,4)", "decimal(12,2)"]).collect()
}

fn customer() -> Vec<Column> {
    let names = [("c_first", "varchar(16)"), ("c_middle", "char(2)"), ("c_last", "varchar(16)")];
    let account = [
        ("c_phone", "char(16)"),
        ("c_since", "timestamp"),
        ("c_credit", "char(2)"),
        ("c_credit_lim", "decimal(12,2)"),
        ("c_discount", "decimal(4,4)"),
        ("c_balance", "decimal(12,2)"),
        ("c_ytd_payment", "decimal(12,2)"),
        ("c_payment_cnt", "int"),
        ("c_delivery_cnt", "int"),
        ("c_data", "varchar(500)"),
    ];
    let key = [("c_id", "int"), ("c_d_id", "int"), ("c_w_id", "int")];
    [&key[..], &names, &address("c"), &account].concat()
}

fn stock() -> Vec<Column> {
    let districts = [
        "s_dist_01",
        "s_dist_02",
        "s_dist_03",
        "s_dist_04",
        "s_dist_05",
        "s_dist_06",
        "s_dist_07",
        "s_dist_08",
        "s_dist_09",
        "s_dist_10",
    ];
    let counts =
        [("s_ytd", "int"), ("s_order_cnt", "int"), ("s_remote_cnt", "int"), ("s_data", "varchar(50)")];
    let key = [("s_i_id", "int"), ("s_w_id", "int"), ("s_quantity", "int")];
    [&key[..], &districts.map(|name| (name, "char(24)")), &counts].concat()
}

/// Sums are kept below this, so that both sides count alike.
const MODULUS: u64 = 1 << 32;

/// How many rows a table has, and a sum over their contents that does not depend on their order: of each row the first four bytes of
/// the SHA-256 of its text, added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Checksum {
    /// Rows.
    pub rows: u64,
    /// The sum.
    pub sum: u64,
}

impl Checksum {
    /// Adds rows as they are loaded: each a line, columns between tabs, `\N` for null.
    pub fn add(&mut self, lines: &[u8]) {
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let digest = Sha256::digest(line);
            let first = digest.iter().take(4).fold(0, |sum, byte| (sum << 8) | u64::from(*byte));
            self.rows += 1;
            self.sum = (self.sum + first) % MODULUS;
        }
    }

    /// The question that has the server do the same.
    pub fn query(table: Table, database: DatabaseKind) -> String {
        let columns = table.columns().into_iter().map(|(name, kind)| match (database, kind) {
            (DatabaseKind::MariaDb, _) => format!("COALESCE({name}, '\\\\N')"),
            (DatabaseKind::PostgreSql, "timestamp") => {
                format!("COALESCE(TO_CHAR({name}, 'YYYY-MM-DD HH24:MI:SS'), E'\\\\N')")
            }
            (DatabaseKind::PostgreSql, _) => format!("COALESCE(CAST({name} AS text), E'\\\\N')"),
        });
        let columns = columns.collect::<Vec<_>>().join(", ");
        let (sum, whole) = match database {
            DatabaseKind::PostgreSql => {
                let digest = format!("SHA256(CONVERT_TO(CONCAT_WS(E'\\t', {columns}), 'UTF8'))");
                let first = format!("CAST('x' || LEFT(ENCODE({digest}, 'hex'), 8) AS bit(32))");
                (format!("CAST({first} AS bigint)"), "bigint")
            }
            DatabaseKind::MariaDb => {
                let digest = format!("SHA2(CONCAT_WS('\\t', {columns}), 256)");
                (format!("CAST(CONV(LEFT({digest}, 8), 16, 10) AS UNSIGNED)"), "SIGNED")
            }
        };
        let name = table.name();
        format!("SELECT COUNT(*), CAST(COALESCE(SUM({sum}), 0) % {MODULUS} AS {whole}) FROM @{name}")
    }

    /// The answer.
    pub fn of(rows: &[Row]) -> Option<Self> {
        let of = |place: usize| rows.first().and_then(|row| row.get(place)).map(Value::int);
        Some(Self { rows: u64::try_from(of(0)?).ok()?, sum: u64::try_from(of(1)?).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_count_in_any_order_and_each_byte_does() {
        let of = |text: &str| {
            let mut sum = Checksum::default();
            sum.add(text.as_bytes());
            sum
        };
        assert_eq!(of("1\ta\n2\t\\N\n"), of("2\t\\N\n1\ta\n"));
        assert_eq!(of("1\ta\n").rows, 1);
        assert_eq!(of(""), Checksum::default());
        for other in ["1\ta\n2\t0\n", "1\ta\n", "1\ta\n2\t\\N\n2\t\\N\n", "1\tA\n2\t\\N\n"] {
            assert_ne!(of("1\ta\n2\t\\N\n"), of(other), "{other}");
        }
        let mut pieces = of("1\ta\n");
        pieces.add(b"2\t\\N\n");
        assert_eq!(pieces, of("1\ta\n2\t\\N\n"));
    }
}
