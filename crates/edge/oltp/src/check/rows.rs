//! Whether each table has all its rows, and values where there must be some.

use virtbench_record::OltpViolation;

use super::districts::{COMPLETE, Violations};
use crate::draws::{CUSTOMERS, DISTRICTS, ITEMS};
use crate::statement::{DECIMAL, Row};
use crate::tables::Table;

/// Columns that may be null: of what is not delivered.
const MAY_BE_NULL: [&str; 2] = ["o_carrier_id", "ol_delivery_d"];

/// How many rows a table has, how many of those have a key of a population of so many warehouses, and how many lack a value.
pub fn query(table: Table, warehouses: u32) -> String {
    let within = |column: &str, most: u32| format!("{column} BETWEEN 1 AND {most}");
    let mut keys: Vec<String> = Vec::new();
    for (column, _) in table.columns() {
        let most = match column {
            "w_id" | "d_w_id" | "c_w_id" | "h_w_id" | "h_c_w_id" | "no_w_id" | "o_w_id" | "ol_w_id"
            | "s_w_id" => warehouses,
            "d_id" | "c_d_id" | "h_d_id" | "h_c_d_id" | "no_d_id" | "o_d_id" | "ol_d_id" => DISTRICTS,
            "c_id" | "h_c_id" => CUSTOMERS,
            "i_id" | "s_i_id" => ITEMS,
            _ => continue,
        };
        keys.push(within(column, most));
    }
    let columns = table.columns();
    let needed = columns.iter().map(|(name, _)| *name).filter(|name| !MAY_BE_NULL.contains(name));
    let null: Vec<String> = needed.map(|name| format!("{name} IS NULL")).collect();
    format!(
        "SELECT COUNT(*), COUNT(CASE WHEN {} THEN 1 END), COUNT(CASE WHEN {} THEN 1 END) FROM @{}",
        keys.join(" AND "),
        null.join(" OR "),
        table.name()
    )
}

/// What is wrong with a table, by the answer; its name among others.
pub fn broken(counts: &[(Table, Vec<Row>)], warehouses: u32) -> Option<OltpViolation> {
    let mut violations =
        Violations::of(COMPLETE, "each table has all its rows, and values in all their columns");
    for (table, rows) in counts {
        let name = table.name();
        let of = |place: usize| {
            rows.first().and_then(|row| row.get(place)?.number()).map(|number| number / DECIMAL)
        };
        let (Some(found), Some(within), Some(null)) = (of(0), of(1), of(2)) else {
            violations.add(|| format!("{name} cannot be counted"));
            continue;
        };
        // Loads add rows to some, and take them from NEW-ORDER alone.
        let least = table.rows_of(warehouses).and_then(|rows| i64::try_from(rows).ok());
        match (table, least) {
            (Table::NewOrder | Table::OrderLine, _) | (_, None) => {}
            (Table::Orders | Table::History, Some(least)) if found < least => {
                violations.add(|| format!("{name} has {found} rows, not {least} at least"));
            }
            (Table::Orders | Table::History, _) => {}
            (_, Some(expected)) if found != expected => {
                violations.add(|| format!("{name} has {found} rows, not {expected}"));
            }
            _ => {}
        }
        if within != found {
            violations.add(|| {
                format!("{name} has {} rows of no warehouse, district, customer or item", found - within)
            });
        }
        if null > 0 {
            violations.add(|| format!("{name} has {null} rows with a null where there must be a value"));
        }
    }
    violations.found()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::Value;

    #[test]
    fn keys_and_values_of_every_table_are_looked_at() {
        for table in Table::ALL {
            let text = query(table, 7);
            let key = table.key().map_or("h_c_w_id", |key| key.split(',').next().unwrap());
            assert!(text.contains(&format!("{key} BETWEEN 1 AND ")), "{text}");
        }
        let orders = query(Table::Orders, 7);
        assert!(orders.contains("o_ol_cnt IS NULL") && !orders.contains("o_carrier_id IS NULL"), "{orders}");
    }

    #[test]
    fn a_table_of_too_few_rows_too_many_or_rows_without_values_is_named() {
        let count = |found: i64, within: i64, null: i64| {
            let row = [found, within, null].map(Value::Int).to_vec();
            broken(&[(Table::Customer, vec![row])], 2).map(|violation| violation.rows.join("; "))
        };
        assert_eq!(count(60_000, 60_000, 0), None);
        for (counts, words) in [
            ((59_999, 59_999, 0), "59999 rows, not 60000"),
            ((60_000, 59_999, 0), "1 rows of no warehouse"),
            ((60_000, 60_000, 1), "1 rows with a null"),
            ((0, 0, 0), "0 rows"),
        ] {
            let said = count(counts.0, counts.1, counts.2).unwrap();
            assert!(said.contains(words), "{said}");
        }
        assert!(broken(&[(Table::Item, Vec::new())], 1).is_some(), "no answer is no good answer");
        let history = |rows: i64| {
            broken(&[(Table::History, vec![vec![Value::Int(rows), Value::Int(rows), Value::Int(0)]])], 1)
        };
        assert_eq!((history(30_000), history(31_000)), (None, None));
        assert!(history(29_999).is_some_and(|broken| broken.rows[0].contains("not 30000 at least")));
    }
}
