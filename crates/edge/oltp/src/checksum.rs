//! Whether the server has loaded what it was given.

use sha2::{Digest, Sha256};
use virtbench_record::DatabaseKind;

use crate::tables::Table;
use crate::value::{Row, Value};

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
