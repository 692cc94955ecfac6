//! The rows of a population, as text that both databases load: columns between tabs, `\N` for null ([TPC-C 5.11], clause 4.3.3).
//!
//! Rows of each table come in the order of its key, from a stream of each table and warehouse: a seed gives the same bytes,
//! whatever is loaded beside it.

use crate::draws::{CUSTOMERS, Constants, DISTRICTS, Draws, ITEMS, last_name};
use crate::tables::Table;

/// Every moment of a population: that of its making would make its bytes differ.
const MOMENT: &str = "2024-01-01 00:00:00";
/// Orders of a district.
const ORDERS: u32 = 3_000;
/// The first order of a district that is not delivered.
const FIRST_NEW_ORDER: u32 = 2_101;

/// How much, and drawn how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Population {
    /// Warehouses, at least one.
    pub warehouses: u32,
    /// Of every random choice.
    pub seed: u64,
}

/// The order lines of an order, and whose it is.
#[derive(Debug, Clone, Copy)]
struct Order {
    customer: u32,
    lines: u32,
}

/// The rows of one table, one after the other.
#[derive(Debug)]
pub struct Rows {
    table: Table,
    population: Population,
    constants: Constants,
    draws: Draws,
    orders: Vec<Order>,
    /// Warehouse, district and number of the next row; the last of each that is too large ends the table.
    warehouse: u32,
    district: u32,
    number: u32,
}

impl Rows {
    /// All rows of a table.
    pub fn new(table: Table, population: Population) -> Self {
        let constants = Constants::of_population(population.seed);
        let draws = Draws::new(population.seed, 0);
        let mut rows = Self {
            table,
            population,
            constants,
            draws,
            orders: Vec::new(),
            warehouse: 1,
            district: 1,
            number: 1,
        };
        rows.enter_warehouse();
        rows
    }

    /// Adds rows to `out` until it has `enough` bytes or there are no more; returns how many.
    pub fn fill(&mut self, out: &mut Vec<u8>, enough: usize) -> u64 {
        let mut rows = 0;
        while out.len() < enough && !self.is_at_end() {
            rows += self.write(out);
            self.advance();
        }
        rows
    }

    fn is_at_end(&self) -> bool {
        let warehouses = if self.table == Table::Item { 1 } else { self.population.warehouses };
        self.warehouse > warehouses
    }

    /// Districts of a warehouse and numbers of a district in this table.
    fn extent(&self) -> (u32, u32) {
        match self.table {
            Table::Warehouse => (1, 1),
            Table::Item | Table::Stock => (1, ITEMS),
            Table::District => (DISTRICTS, 1),
            Table::Customer | Table::History => (DISTRICTS, CUSTOMERS),
            Table::Orders | Table::OrderLine | Table::NewOrder => (DISTRICTS, ORDERS),
        }
    }

    fn advance(&mut self) {
        let (districts, numbers) = self.extent();
        self.number += 1;
        if self.number > numbers {
            (self.number, self.district) = (1, self.district + 1);
            if self.district > districts {
                (self.district, self.warehouse) = (1, self.warehouse + 1);
                if self.is_at_end() {
                    return;
                }
                self.enter_warehouse();
            }
            self.enter_district();
        }
    }

    fn enter_warehouse(&mut self) {
        let stream = u64::from(self.warehouse) * 32 + self.table as u64;
        self.draws = Draws::new(self.population.seed, stream);
        if self.number == 1 && self.district == 1 {
            self.enter_district();
        }
    }

    /// Draws the orders of the district, which several tables have in common.
    fn enter_district(&mut self) {
        if !matches!(self.table, Table::Orders | Table::OrderLine) {
            return;
        }
        let place = u64::from(self.warehouse) * u64::from(DISTRICTS) + u64::from(self.district);
        let mut draws = Draws::new(self.population.seed, u64::MAX - place);
        let mut customers: Vec<u32> = (1..=CUSTOMERS).collect();
        draws.shuffle(&mut customers);
        self.orders =
            customers.into_iter().map(|customer| Order { customer, lines: draws.between(5, 15) }).collect();
    }

    /// Writes what belongs to the current number; returns how many rows that is.
    fn write(&mut self, out: &mut Vec<u8>) -> u64 {
        let mut line = Line { out, draws: &mut self.draws, begun: false };
        let (warehouse, district, number) = (self.warehouse, self.district, self.number);
        let delivered = number < FIRST_NEW_ORDER;
        match self.table {
            Table::Item => item(&mut line, number),
            Table::Warehouse => warehouse_row(&mut line, warehouse),
            Table::Stock => stock(&mut line, number, warehouse),
            Table::District => district_row(&mut line, district, warehouse),
            Table::Customer => customer(&mut line, [number, district, warehouse], self.constants),
            Table::History => history(&mut line, [number, district, warehouse]),
            Table::NewOrder if delivered => return 0,
            Table::NewOrder => {
                [number, district, warehouse].into_iter().for_each(|key| line.number(key));
                line.end();
            }
            Table::Orders => {
                let order = self.orders[number as usize - 1];
                orders(&mut line, [number, district, warehouse], order, delivered);
            }
            Table::OrderLine => {
                let lines = self.orders[number as usize - 1].lines;
                for place in 1..=lines {
                    order_line(&mut line, [number, district, warehouse, place], delivered);
                }
                return u64::from(lines);
            }
        }
        1
    }
}

/// A row that is written column by column.
struct Line<'a> {
    out: &'a mut Vec<u8>,
    draws: &'a mut Draws,
    begun: bool,
}

impl Line<'_> {
    fn column(&mut self) -> &mut Vec<u8> {
        if self.begun {
            self.out.push(b'\t');
        }
        self.begun = true;
        self.out
    }

    fn end(&mut self) {
        self.out.push(b'\n');
        self.begun = false;
    }

    fn text(&mut self, text: &str) {
        self.column().extend_from_slice(text.as_bytes());
    }

    fn null(&mut self) {
        self.text("\\N");
    }

    fn number(&mut self, value: u32) {
        let mut digits = [0_u8; 10];
        let (mut at, mut rest) = (digits.len(), value);
        loop {
            at -= 1;
            digits[at] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.column().extend_from_slice(&digits[at..]);
    }

    fn between(&mut self, low: u32, high: u32) {
        let drawn = self.draws.between(low, high);
        self.number(drawn);
    }

    /// A number with so many decimal places, drawn from `low` to `high` of its last place.
    fn decimal(&mut self, low: u32, high: u32, places: u32) {
        let (drawn, unit) = (self.draws.between(low, high), 10_u32.pow(places));
        self.number(drawn / unit);
        let width = places as usize;
        self.out.extend_from_slice(format!(".{:0width$}", drawn % unit).as_bytes());
    }

    fn letters(&mut self, low: u32, high: u32) {
        self.column();
        self.draws.letters(self.out, low, high);
    }

    fn digits(&mut self, count: u32) {
        self.column();
        self.draws.digits(self.out, count, count);
    }

    fn data(&mut self) {
        self.column();
        self.draws.data(self.out);
    }

    /// Two streets, city, state and zip code.
    fn address(&mut self) {
        self.letters(10, 20);
        self.letters(10, 20);
        self.letters(10, 20);
        self.letters(2, 2);
        self.digits(4);
        self.out.extend_from_slice(b"11111");
    }
}

fn item(line: &mut Line<'_>, number: u32) {
    line.number(number);
    line.between(1, 10_000);
    line.letters(14, 24);
    line.decimal(100, 10_000, 2);
    line.data();
    line.end();
}

fn warehouse_row(line: &mut Line<'_>, number: u32) {
    line.number(number);
    line.letters(6, 10);
    line.address();
    line.decimal(0, 2_000, 4);
    line.text("300000.00");
    line.end();
}

fn stock(line: &mut Line<'_>, number: u32, warehouse: u32) {
    line.number(number);
    line.number(warehouse);
    line.between(10, 100);
    (0..DISTRICTS).for_each(|_| line.letters(24, 24));
    (0..3).for_each(|_| line.text("0"));
    line.data();
    line.end();
}

fn district_row(line: &mut Line<'_>, number: u32, warehouse: u32) {
    line.number(number);
    line.number(warehouse);
    line.letters(6, 10);
    line.address();
    line.decimal(0, 2_000, 4);
    line.text("30000.00");
    line.number(ORDERS + 1);
    line.end();
}

fn customer(line: &mut Line<'_>, key: [u32; 3], constants: Constants) {
    let name = if key[0] <= 1000 { key[0] - 1 } else { line.draws.last_name(constants) };
    key.into_iter().for_each(|part| line.number(part));
    line.letters(8, 16);
    line.text("OE");
    line.text(&last_name(name));
    line.address();
    line.digits(16);
    line.text(MOMENT);
    let credit = if line.draws.percent(10) { "BC" } else { "GC" };
    line.text(credit);
    line.text("50000.00");
    line.decimal(0, 5_000, 4);
    ["-10.00", "10.00", "1", "0"].into_iter().for_each(|text| line.text(text));
    line.letters(300, 500);
    line.end();
}

fn history(line: &mut Line<'_>, [customer, district, warehouse]: [u32; 3]) {
    [customer, district, warehouse, district, warehouse].into_iter().for_each(|key| line.number(key));
    line.text(MOMENT);
    line.text("10.00");
    line.letters(12, 24);
    line.end();
}

fn orders(line: &mut Line<'_>, key: [u32; 3], order: Order, delivered: bool) {
    key.into_iter().for_each(|part| line.number(part));
    line.number(order.customer);
    line.text(MOMENT);
    if delivered {
        line.between(1, 10)
    } else {
        line.null()
    }
    line.number(order.lines);
    line.text("1");
    line.end();
}

fn order_line(line: &mut Line<'_>, key: [u32; 4], delivered: bool) {
    key.into_iter().for_each(|part| line.number(part));
    line.between(1, ITEMS);
    line.number(key[2]);
    if delivered {
        line.text(MOMENT)
    } else {
        line.null()
    }
    line.text("5");
    if delivered {
        line.text("0.00")
    } else {
        line.decimal(1, 999_999, 2)
    }
    line.letters(24, 24);
    line.end();
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};
    use std::collections::BTreeSet;

    fn text(table: Table, population: Population) -> (u64, String) {
        let (mut rows, mut out, mut count) = (Rows::new(table, population), Vec::new(), 0);
        loop {
            let filled = rows.fill(&mut out, usize::MAX);
            count += filled;
            if filled == 0 {
                return (count, String::from_utf8(out).unwrap());
            }
        }
    }

    const SMALL: Population = Population { warehouses: 2, seed: 7 };

    #[test]
    fn tables_have_the_rows_and_columns_of_the_specification() {
        let (mut lines, mut shape) = (0, 0);
        for table in Table::ALL {
            let (count, text) = text(table, SMALL);
            let columns: BTreeSet<usize> = text.lines().map(|line| line.split('\t').count()).collect();
            assert_eq!(columns, BTreeSet::from([table.columns().len()]), "{}", table.name());
            assert_eq!(count, text.lines().count() as u64);
            if let Some(rows) = table.rows_of(SMALL.warehouses) {
                assert_eq!(count, rows, "{}", table.name());
            }
            match table {
                Table::Orders => {
                    shape = text
                        .lines()
                        .map(|line| line.split('\t').nth(6).unwrap().parse::<u64>().unwrap())
                        .sum();
                }
                Table::OrderLine => lines = count,
                _ => {}
            }
        }
        assert_eq!(lines, shape, "orders say how many lines they have");
    }

    #[test]
    fn a_seed_gives_the_same_bytes_in_pieces_of_any_size() {
        let whole = text(Table::Customer, SMALL).1;
        let (mut rows, mut pieces, mut out) = (Rows::new(Table::Customer, SMALL), String::new(), Vec::new());
        while rows.fill(&mut out, 10_000) > 0 {
            pieces.push_str(std::str::from_utf8(&out).unwrap());
            out.clear();
        }
        assert!(pieces == whole, "pieces differ from the whole");
        assert_ne!(whole, text(Table::Customer, Population { seed: 8, ..SMALL }).1);
        let digest: String = Table::ALL
            .iter()
            .flat_map(|table| Sha256::digest(text(*table, Population { warehouses: 1, seed: 1 }).1).to_vec())
            .collect::<Vec<u8>>()
            .chunks(32)
            .map(|sum| format!("{:02x}{:02x}", sum[0], sum[1]))
            .collect();
        assert_eq!(
            digest, "0e87e3214408e6ea2d08ccb58b2e87432622",
            "a population of this seed has changed: raise FORMAT of its mark"
        );
    }

    #[test]
    fn every_customer_has_an_order_and_every_last_name_a_customer() {
        let one = Population { warehouses: 1, seed: 3 };
        let of = |table, column: usize| -> BTreeSet<String> {
            let (_, text) = text(table, one);
            text.lines().take(3_000).map(|line| line.split('\t').nth(column).unwrap().to_owned()).collect()
        };
        assert_eq!(of(Table::Orders, 3).len(), 3_000);
        assert_eq!(of(Table::Customer, 5).len(), 1_000);
        let (_, stock) = text(Table::Stock, one);
        let original = stock.lines().filter(|line| line.contains("ORIGINAL")).count();
        assert!((9_500..10_500).contains(&original), "{original}");
    }
}
