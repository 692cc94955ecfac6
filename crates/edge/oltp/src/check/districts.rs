//! What each district has, and the conditions that sums over districts decide ([TPC-C 5.11], clause 3.3.2, numbers 1 to 4). Each table is
//! read once.

use std::collections::BTreeMap;

use virtbench_record::OltpViolation;

use crate::draws::DISTRICTS;
use crate::statement::{DECIMAL, Row, Value, decimal_text};

/// What the server is asked, in the order of [`Districts::read`].
pub const QUERIES: [&str; 5] = [
    "SELECT w_id, w_ytd FROM @warehouse",
    "SELECT d_w_id, d_id, d_ytd, d_next_o_id FROM @district",
    "SELECT o_w_id, o_d_id, COUNT(*), MIN(o_id), MAX(o_id), \
     CASE WHEN COUNT(o_ol_cnt) = COUNT(*) THEN SUM(o_ol_cnt) END, COUNT(*) - COUNT(o_carrier_id) \
     FROM @orders GROUP BY o_w_id, o_d_id",
    "SELECT no_w_id, no_d_id, COUNT(*), MIN(no_o_id), MAX(no_o_id) FROM @new_order GROUP BY no_w_id, no_d_id",
    "SELECT ol_w_id, ol_d_id, COUNT(*) FROM @order_line GROUP BY ol_w_id, ol_d_id",
];

/// The tables of these.
const TABLES: [&str; 5] = ["warehouse", "district", "orders", "new_order", "order_line"];

/// A key of one or two numbers; a NULL is none.
type Key = (i64, i64);

/// What was read.
#[derive(Debug, Default, Clone)]
pub struct Districts {
    /// For each of the queries, what stands behind the key, in parts of [`DECIMAL`].
    read: [BTreeMap<Key, Vec<Option<i64>>>; 5],
    /// Rows whose key is none, or was there before.
    strange: Vec<(usize, String)>,
}

impl Districts {
    /// Takes the rows of query number `place`.
    pub fn read(&mut self, place: usize, rows: &[Row]) {
        let keys = if place == 0 { 1 } else { 2 };
        for row in rows {
            let key: Option<Vec<i64>> =
                row.iter().take(keys).map(|value| value.number().map(|number| number / DECIMAL)).collect();
            let rest = row.iter().skip(keys).map(Value::number).collect();
            let key = key.and_then(|key| Some((*key.first()?, key.get(1).copied().unwrap_or(0))));
            let is_new = key.map(|key| self.read[place].insert(key, rest).is_none());
            if is_new != Some(true) {
                let words = row.iter().take(keys).map(Value::words).collect::<Vec<_>>().join(" ");
                self.strange.push((place, words));
            }
        }
    }

    /// The conditions that a population of so many warehouses breaks.
    pub fn broken(&self, warehouses: u32) -> Vec<OltpViolation> {
        let all = [
            self.incomplete(warehouses),
            self.of_warehouses(warehouses),
            self.order_numbers(warehouses),
            self.new_orders(warehouses),
            self.lines(warehouses),
        ];
        all.into_iter().filter_map(Violations::found).collect()
    }

    /// The value number `column` behind the key of a district.
    fn of(&self, place: usize, key: Key, column: usize) -> Option<i64> {
        self.read[place].get(&key)?.get(column).copied().flatten()
    }

    /// Every warehouse and district has its rows, and nothing is of another one.
    fn incomplete(&self, warehouses: u32) -> Violations {
        let words = "each warehouse and district has its row and its orders, and no other has any";
        let mut violations = Violations::of(COMPLETE, words);
        for (place, key) in &self.strange {
            violations.add(|| format!("{} has a key {key} that is none, or is there twice", TABLES[*place]));
        }
        for (place, table) in TABLES.iter().enumerate() {
            let expected = |(warehouse, district): Key| {
                let districts = if place == 0 { 0..=0 } else { 1..=i64::from(DISTRICTS) };
                (1..=i64::from(warehouses)).contains(&warehouse) && districts.contains(&district)
            };
            for (warehouse, district) in self.read[place].keys().filter(|key| !expected(**key)) {
                violations.add(|| format!("{table} has rows of w_id={warehouse} d_id={district}"));
            }
            // All new orders of a district may be delivered.
            if place == 3 {
                continue;
            }
            let districts = if place == 0 { 0..=0 } else { 1..=i64::from(DISTRICTS) };
            for warehouse in 1..=i64::from(warehouses) {
                for district in districts.clone() {
                    if !self.read[place].contains_key(&(warehouse, district)) {
                        violations.add(|| format!("{table} has no row of w_id={warehouse} d_id={district}"));
                    }
                }
            }
        }
        violations
    }

    fn of_warehouses(&self, warehouses: u32) -> Violations {
        let mut violations = Violations::of(1, "W_YTD = sum(D_YTD)");
        for warehouse in 1..=i64::from(warehouses) {
            let of_district = |district| self.of(1, (warehouse, i64::from(district)), 0);
            let total: Option<i64> = (1..=DISTRICTS).map(of_district).sum();
            let year = self.of(0, (warehouse, 0), 0);
            if year.is_none() || year != total {
                violations.add(|| {
                    let [year, total] = [year, total].map(|sum| sum.map_or_else(null, decimal_text));
                    format!("w_id={warehouse} w_ytd={year} sum(d_ytd)={total}")
                });
            }
        }
        violations
    }

    fn order_numbers(&self, warehouses: u32) -> Violations {
        let mut violations = Violations::of(2, "D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)");
        for key in keys(warehouses) {
            let newest = self.of(1, key, 1).map(|next| next - DECIMAL);
            let [count, least, most] = [0, 1, 2].map(|column| self.of(2, key, column));
            let undelivered = self.of(3, key, 2);
            // From the first on, without a hole.
            let is_whole = newest.is_some() && newest == most && newest == count && least == Some(DECIMAL);
            if !is_whole || undelivered.is_some_and(|undelivered| Some(undelivered) != most) {
                violations.add(|| {
                    let (warehouse, district) = key;
                    let [next, most, count, undelivered] =
                        [self.of(1, key, 1), most, count, undelivered].map(shown);
                    format!(
                        "d_w_id={warehouse} d_id={district} d_next_o_id={next} max(o_id)={most} orders={count} \
                         max(no_o_id)={undelivered}"
                    )
                });
            }
        }
        violations
    }

    fn new_orders(&self, warehouses: u32) -> Violations {
        let mut violations = Violations::of(3, "max(NO_O_ID) - min(NO_O_ID) + 1 = rows of NEW-ORDER");
        for key in keys(warehouses) {
            let [count, least, most] = [0, 1, 2].map(|column| self.of(3, key, column));
            let rows = count.unwrap_or(0);
            let span = least.zip(most).map_or(0, |(least, most)| most - least + DECIMAL);
            // As many as there are orders that nobody has carried.
            if rows != span || Some(rows) != self.of(2, key, 4) {
                violations.add(|| {
                    let (warehouse, district) = key;
                    let [least, most, rows, undelivered] =
                        [least, most, Some(rows), self.of(2, key, 4)].map(shown);
                    format!(
                        "no_w_id={warehouse} no_d_id={district} min(no_o_id)={least} max(no_o_id)={most} rows={rows} \
                         undelivered orders={undelivered}"
                    )
                });
            }
        }
        violations
    }

    fn lines(&self, warehouses: u32) -> Violations {
        let mut violations = Violations::of(4, "sum(O_OL_CNT) = rows of ORDER-LINE");
        for key in keys(warehouses) {
            let (expected, rows) = (self.of(2, key, 3), self.of(4, key, 0));
            if expected.is_none() || expected != rows {
                violations.add(|| {
                    let (warehouse, district) = key;
                    let [expected, rows] = [expected, rows].map(shown);
                    format!("o_w_id={warehouse} o_d_id={district} sum(o_ol_cnt)={expected} rows={rows}")
                });
            }
        }
        violations
    }
}

fn keys(warehouses: u32) -> impl Iterator<Item = Key> {
    (1..=i64::from(warehouses))
        .flat_map(|warehouse| (1..=i64::from(DISTRICTS)).map(move |district| (warehouse, district)))
}

fn shown(count: Option<i64>) -> String {
    count.map_or_else(null, |count| (count / DECIMAL).to_string())
}

fn null() -> String {
    "null".to_owned()
}

/// Rows that are named of each condition.
const MOST_ROWS: usize = 5;

/// The condition that every row of the population is there, which is none of clause 3.3.2: all of those hold of empty tables.
pub const COMPLETE: u32 = 0;

/// A condition, and the rows found so far that break it.
pub struct Violations(OltpViolation);

impl Violations {
    /// None yet.
    pub fn of(condition: u32, words: &str) -> Self {
        Self(OltpViolation { condition, words: words.to_owned(), rows: Vec::new() })
    }

    /// Adds a row, as long as there are few.
    pub fn add(&mut self, row: impl FnOnce() -> String) {
        if self.0.rows.len() < MOST_ROWS {
            self.0.rows.push(row());
        }
    }

    /// The condition with the rows that break it; nothing where it holds.
    pub fn found(self) -> Option<OltpViolation> {
        Some(self.0).filter(|violation| !violation.rows.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of a population of one warehouse with so many orders in each district, three of which are not delivered.
    fn rows(orders: i64) -> [Vec<Row>; 5] {
        let int = |values: &[i64]| values.iter().map(|value| Value::Int(*value)).collect::<Row>();
        let of_district = |of: &dyn Fn(i64) -> Row| (1..=i64::from(DISTRICTS)).map(of).collect::<Vec<Row>>();
        [
            vec![vec![Value::Int(1), Value::Decimal(30_000 * DECIMAL)]],
            of_district(&|d| {
                [int(&[1, d]), vec![Value::Decimal(3_000 * DECIMAL), Value::Int(orders + 1)]].concat()
            }),
            of_district(&|d| int(&[1, d, orders, 1, orders, orders * 10, 3])),
            of_district(&|d| int(&[1, d, 3, orders - 2, orders])),
            of_district(&|d| int(&[1, d, orders * 10])),
        ]
    }

    fn broken(rows: &[Vec<Row>; 5], warehouses: u32) -> Vec<u32> {
        let mut districts = Districts::default();
        rows.iter().enumerate().for_each(|(place, rows)| districts.read(place, rows));
        districts.broken(warehouses).iter().map(|violation| violation.condition).collect()
    }

    #[test]
    fn a_whole_population_breaks_nothing_and_an_empty_one_everything() {
        assert_eq!(broken(&rows(3_000), 1), [0; 0]);
        assert_eq!(broken(&std::array::from_fn(|_| Vec::new()), 1), [0, 1, 2, 3, 4]);
        assert_eq!(broken(&rows(3_000), 2), [0, 1, 2, 3, 4], "a warehouse is missing");
        let mut delivered = rows(3_000);
        delivered[2].iter_mut().for_each(|row| row[6] = Value::Int(0));
        delivered[3].clear();
        assert_eq!(broken(&delivered, 1), [0; 0], "all may be delivered");
    }

    /// Each value that a condition reads, in each way in which it can be wrong.
    #[test]
    fn a_row_that_is_missing_a_null_another_value_and_a_further_row_are_found() {
        let whole = rows(3_000);
        for place in 0..5 {
            let keys = if place == 0 { 1 } else { 2 };
            let mut missing = whole.clone();
            missing[place].remove(0);
            assert_ne!(broken(&missing, 1), [0; 0], "a row of {} is missing", TABLES[place]);
            for warehouse in [Value::Int(2), Value::Int(0), Value::Null] {
                let mut further = whole.clone();
                let mut row = further[place][0].clone();
                row[0] = warehouse;
                further[place].push(row);
                assert_eq!(broken(&further, 1).first(), Some(&COMPLETE), "{}", TABLES[place]);
            }
            let mut twice = whole.clone();
            twice[place].push(whole[place][0].clone());
            assert_ne!(broken(&twice, 1), [0; 0], "a row of {} is there twice", TABLES[place]);
            for column in keys..whole[place][0].len() {
                for value in [Value::Null, Value::Int(7)] {
                    let mut wrong = whole.clone();
                    wrong[place][0][column] = value.clone();
                    assert_ne!(broken(&wrong, 1), [0; 0], "{} {column} is {value:?}", TABLES[place]);
                }
            }
        }
    }

    #[test]
    fn rows_that_break_a_condition_are_named_with_their_values() {
        let mut rows = rows(3_000);
        rows[0][0][1] = Value::Null;
        rows[1][2][3] = Value::Int(3_002);
        let mut districts = Districts::default();
        rows.iter().enumerate().for_each(|(place, rows)| districts.read(place, rows));
        let broken = districts.broken(1);
        assert_eq!(broken[0].rows, ["w_id=1 w_ytd=null sum(d_ytd)=30000.00"]);
        let expected = "d_w_id=1 d_id=3 d_next_o_id=3002 max(o_id)=3000 orders=3000 max(no_o_id)=3000";
        assert_eq!(broken[1].rows, [expected]);
    }
}
