//! The statements of the five transactions. They mean the same to both databases, with `?` for a parameter and `@` before the name of
//! a table.

/// A statement, by which a session knows what it has prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statement {
    /// One that is always the same.
    One(One),
    /// One that concerns so many lines of an order.
    Lines(OfLines, u8),
}

/// Lines of an order, and districts of a warehouse, at most.
const MOST: usize = 15;

macro_rules! statements {
    ($($name:ident $text:literal)*) => {
        /// Statements that are always the same.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum One { $($name),* }

        const TEXTS: &[&str] = &[$($text),*];
    };
}

statements! {
    Begin "BEGIN"
    Commit "COMMIT"
    Rollback "ROLLBACK"
    CustomerAndTax "SELECT c_discount, c_last, c_credit, w_tax FROM @customer, @warehouse \
        WHERE w_id = ? AND c_w_id = w_id AND c_d_id = ? AND c_id = ?"
    DistrictForOrder "SELECT d_next_o_id, d_tax FROM @district WHERE d_id = ? AND d_w_id = ? FOR UPDATE"
    TakeOrderNumber "UPDATE @district SET d_next_o_id = ? WHERE d_id = ? AND d_w_id = ?"
    InsertOrder "INSERT INTO @orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
        VALUES (?, ?, ?, ?, CURRENT_TIMESTAMP, ?, ?)"
    InsertNewOrder "INSERT INTO @new_order (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)"
    UpdateStock "UPDATE @stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, \
        s_remote_cnt = s_remote_cnt + ? WHERE s_i_id = ? AND s_w_id = ?"
    PayDistrict "UPDATE @district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?"
    District "SELECT d_street_1, d_street_2, d_city, d_state, d_zip, d_name FROM @district WHERE d_w_id = ? AND d_id = ?"
    PayWarehouse "UPDATE @warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?"
    Warehouse "SELECT w_street_1, w_street_2, w_city, w_state, w_zip, w_name FROM @warehouse WHERE w_id = ?"
    CustomersOfName "SELECT c_id FROM @customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first"
    CustomerForPayment "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, \
        c_credit, c_credit_lim, c_discount, c_balance, c_since FROM @customer \
        WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE"
    CustomerData "SELECT c_data FROM @customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
    PayCustomer "UPDATE @customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
        c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
    PayCustomerWithData "UPDATE @customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
        c_payment_cnt = c_payment_cnt + 1, c_data = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
    InsertHistory "INSERT INTO @history (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
        VALUES (?, ?, ?, ?, ?, CURRENT_TIMESTAMP, ?, ?)"
    CustomerStatus "SELECT c_balance, c_first, c_middle, c_last FROM @customer \
        WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
    LastOrder "SELECT o_id, o_carrier_id, o_entry_d FROM @orders \
        WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC LIMIT 1"
    LinesOfOrder "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM @order_line \
        WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?"
    OldestNewOrder "SELECT no_o_id FROM @new_order WHERE no_w_id = ? AND no_d_id = ? \
        ORDER BY no_o_id ASC LIMIT 1 FOR UPDATE"
    DeleteNewOrder "DELETE FROM @new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?"
    CustomerOfOrder "SELECT o_c_id FROM @orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?"
    CarryOrder "UPDATE @orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?"
    DeliverLines "UPDATE @order_line SET ol_delivery_d = CURRENT_TIMESTAMP \
        WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?"
    SumOfLines "SELECT SUM(ol_amount) FROM @order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?"
    DeliverCustomer "UPDATE @customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 \
        WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
    NextOrder "SELECT d_next_o_id FROM @district WHERE d_w_id = ? AND d_id = ?"
    ShortItems "SELECT COUNT(DISTINCT s_i_id) FROM @order_line, @stock WHERE ol_w_id = ? AND ol_d_id = ? \
        AND ol_o_id < ? AND ol_o_id >= ? AND s_w_id = ? AND s_i_id = ol_i_id AND s_quantity < ?"
}

/// Statements that concern all lines of an order, or several orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfLines {
    /// What the items cost.
    Items,
    /// What is in stock of them.
    Stock,
    /// The lines themselves.
    Insert,
    /// What is left in stock of them, in one statement: a server that answers one before it gets the next is not asked for each.
    Take,
    /// Of the oldest orders of several districts, in one statement for the same reason: rows of NEW-ORDER to delete,
    DeleteNewOrders,
    /// whose they are,
    CustomersOfOrders,
    /// who carries them,
    CarryOrders,
    /// their lines' date,
    DeliverOrders,
    /// and what their lines cost.
    SumsOfOrders,
}

/// How many different statements there are.
pub const STATEMENTS: usize = TEXTS.len() + 9 * (MOST + 1);

impl Statement {
    /// Its number, less than [`STATEMENTS`].
    pub fn number(self) -> usize {
        match self {
            Self::One(one) => one as usize,
            Self::Lines(what, lines) => {
                TEXTS.len() + what as usize * (MOST + 1) + usize::from(lines).min(MOST)
            }
        }
    }

    /// Whether it begins or ends a transaction, and is not prepared.
    pub fn is_bracket(self) -> bool {
        matches!(self, Self::One(One::Begin | One::Commit | One::Rollback))
    }

    /// What is sent, with `?` for each parameter.
    pub fn text(self) -> String {
        let list = |lines: u8, one: &str| vec![one; usize::from(lines)].join(", ");
        match self {
            Self::One(one) => TEXTS[one as usize].to_owned(),
            Self::Lines(OfLines::Items, lines) => {
                format!(
                    "SELECT i_price, i_name, i_data, i_id FROM @item WHERE i_id IN ({})",
                    list(lines, "?")
                )
            }
            Self::Lines(OfLines::Stock, lines) => format!(
                "SELECT s_i_id, s_w_id, s_quantity, s_data, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, \
                 s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10 FROM @stock \
                 WHERE (s_w_id, s_i_id) IN ({}) FOR UPDATE",
                list(lines, "(?, ?)")
            ),
            Self::Lines(OfLines::Take, lines) => {
                let by_item = vec!["WHEN ? THEN ?"; usize::from(lines)].join(" ");
                format!(
                    "UPDATE @stock SET s_quantity = CASE s_i_id {by_item} END, s_ytd = s_ytd + CASE s_i_id {by_item} END, \
                     s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + CASE s_i_id {by_item} END \
                     WHERE (s_w_id, s_i_id) IN ({})",
                    list(lines, "(?, ?)")
                )
            }
            Self::Lines(OfLines::DeleteNewOrders, orders) => format!(
                "DELETE FROM @new_order WHERE (no_w_id, no_d_id, no_o_id) IN ({})",
                list(orders, "(?, ?, ?)")
            ),
            Self::Lines(OfLines::CustomersOfOrders, orders) => format!(
                "SELECT o_d_id, o_c_id FROM @orders WHERE (o_w_id, o_d_id, o_id) IN ({})",
                list(orders, "(?, ?, ?)")
            ),
            Self::Lines(OfLines::CarryOrders, orders) => format!(
                "UPDATE @orders SET o_carrier_id = ? WHERE (o_w_id, o_d_id, o_id) IN ({})",
                list(orders, "(?, ?, ?)")
            ),
            Self::Lines(OfLines::DeliverOrders, orders) => format!(
                "UPDATE @order_line SET ol_delivery_d = CURRENT_TIMESTAMP WHERE (ol_w_id, ol_d_id, ol_o_id) IN ({})",
                list(orders, "(?, ?, ?)")
            ),
            Self::Lines(OfLines::SumsOfOrders, orders) => format!(
                "SELECT ol_d_id, SUM(ol_amount) FROM @order_line WHERE (ol_w_id, ol_d_id, ol_o_id) IN ({}) \
                 GROUP BY ol_d_id",
                list(orders, "(?, ?, ?)")
            ),
            Self::Lines(OfLines::Insert, lines) => format!(
                "INSERT INTO @order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, \
                 ol_amount, ol_dist_info) VALUES {}",
                list(lines, "(?, ?, ?, ?, ?, ?, ?, ?, ?)")
            ),
        }
    }
}

/// The text with `$1`, `$2`, ... in place of `?`, as PostgreSQL has it.
pub fn numbered(text: &str) -> String {
    let mut pieces = text.split('?');
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.enumerate().fold(first, |text, (before, piece)| format!("{text}${}{piece}", before + 1))
}

/// A statement with its parameters.
#[derive(Debug, Clone)]
pub struct Call<'a> {
    /// What is asked.
    pub statement: Statement,
    /// With what.
    pub params: Vec<Param<'a>>,
}

/// A statement that is always the same, with parameters.
pub fn call<'a>(one: One, params: impl IntoIterator<Item = Param<'a>>) -> Call<'a> {
    Call { statement: Statement::One(one), params: params.into_iter().collect() }
}

/// A statement without parameters.
pub fn bare<'a>(one: One) -> Call<'a> {
    Call { statement: Statement::One(one), params: Vec::new() }
}

/// A statement with keys alone.
pub fn keyed<'a, const N: usize>(one: One, keys: [u32; N]) -> Call<'a> {
    call(one, keys.map(Param::from))
}

/// A statement that concerns so many lines of an order.
pub fn of_lines(what: OfLines, lines: usize, params: Vec<Param<'_>>) -> Call<'_> {
    Call { statement: Statement::Lines(what, u8::try_from(lines).unwrap_or(u8::MAX)), params }
}

/// Decimals are whole numbers of this part: all have at most four places.
pub const DECIMAL: i64 = 10_000;

/// A cent as a decimal.
pub const CENT: i64 = DECIMAL / 100;

/// A parameter of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Param<'a> {
    /// A whole number.
    Int(i64),
    /// A decimal number, in parts of [`DECIMAL`].
    Decimal(i64),
    /// A text.
    Text(&'a str),
}

impl From<u32> for Param<'_> {
    fn from(value: u32) -> Self {
        Self::Int(i64::from(value))
    }
}

/// A value of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Null.
    Null,
    /// A whole number; of a moment, what nobody looks at.
    Int(i64),
    /// A decimal number, in parts of [`DECIMAL`].
    Decimal(i64),
    /// A text.
    Text(String),
}

impl Value {
    /// The whole number, or zero where it is none.
    pub fn int(&self) -> i64 {
        match self {
            Self::Int(value) => *value,
            Self::Decimal(value) => value / DECIMAL,
            Self::Null | Self::Text(_) => 0,
        }
    }

    /// The whole number where it is one that a key can be.
    pub fn key(&self) -> u32 {
        u32::try_from(self.int()).unwrap_or(0)
    }

    /// The number as a decimal, or zero where it is none.
    pub fn decimal(&self) -> i64 {
        match self {
            Self::Int(value) => value * DECIMAL,
            Self::Decimal(value) => *value,
            Self::Null | Self::Text(_) => 0,
        }
    }

    /// The number in parts of [`DECIMAL`]; nothing of what is none.
    pub fn number(&self) -> Option<i64> {
        match self {
            Self::Int(value) => value.checked_mul(DECIMAL),
            Self::Decimal(value) => Some(*value),
            Self::Null | Self::Text(_) => None,
        }
    }

    /// The text, or nothing where it is none.
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            _ => "",
        }
    }

    /// For people.
    pub fn words(&self) -> String {
        match self {
            Self::Null => "null".into(),
            Self::Int(value) => value.to_string(),
            Self::Decimal(value) => decimal_text(*value),
            Self::Text(text) => text.trim_end().to_owned(),
        }
    }
}

/// A row.
pub type Row = Vec<Value>;

/// A decimal as both databases read it.
pub fn decimal_text(value: i64) -> String {
    let (whole, rest) =
        (value.unsigned_abs() / DECIMAL.unsigned_abs(), value.unsigned_abs() % DECIMAL.unsigned_abs());
    let sign = if value < 0 { "-" } else { "" };
    if rest % 100 == 0 {
        format!("{sign}{whole}.{:02}", rest / 100)
    } else {
        format!("{sign}{whole}.{rest:04}")
    }
}

/// Reads a decimal as MariaDB sends it. Places beyond the fourth are left out.
pub fn decimal_of_text(text: &str) -> Option<i64> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let (whole, rest) = digits.split_once('.').unwrap_or((digits, ""));
    let rest: String = rest.chars().chain("0000".chars()).take(4).collect();
    let whole: i64 = whole.parse().ok()?;
    Some(sign * (whole.checked_mul(DECIMAL)?.checked_add(rest.parse().ok()?)?))
}

/// Reads a decimal as PostgreSQL sends it: digits to the base 10,000, the first of weight `weight`.
pub fn decimal_of_binary(bytes: &[u8]) -> Option<i64> {
    let word = |at: usize| Some(i16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
    let (count, weight, sign) = (word(0)?, i32::from(word(2)?), word(4)?);
    let mut sum = 0_i64;
    for place in 0..count {
        let digit = i64::from(word(8 + 2 * usize::try_from(place).ok()?)?);
        // In parts of DECIMAL, which is the base: a digit of weight -1 counts once.
        let power = weight - i32::from(place) + 1;
        match u32::try_from(power) {
            Ok(power) => sum = sum.checked_add(digit.checked_mul(DECIMAL.checked_pow(power)?)?)?,
            Err(_) => break,
        }
    }
    match sign {
        0 => Some(sum),
        0x4000 => Some(-sum),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL_OF_LINES: [OfLines; 9] = [
        OfLines::Items,
        OfLines::Stock,
        OfLines::Insert,
        OfLines::Take,
        OfLines::DeleteNewOrders,
        OfLines::CustomersOfOrders,
        OfLines::CarryOrders,
        OfLines::DeliverOrders,
        OfLines::SumsOfOrders,
    ];

    #[test]
    fn every_statement_has_a_number_of_its_own() {
        let lines = ALL_OF_LINES;
        let several =
            lines.into_iter().flat_map(|what| (1..=15).map(move |lines| Statement::Lines(what, lines)));
        let mut numbers: Vec<usize> = several.map(Statement::number).collect();
        numbers.push(Statement::One(One::ShortItems).number());
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert!(numbers.len() == count && numbers.iter().all(|number| *number < STATEMENTS));
        assert_eq!(Statement::One(One::ShortItems).number(), TEXTS.len() - 1);
    }

    /// A name without its schema is looked for where the server likes.
    #[test]
    fn every_table_is_named_with_its_schema() {
        let lines = ALL_OF_LINES.map(|what| Statement::Lines(what, 2).text());
        for text in TEXTS.iter().map(|text| (*text).to_owned()).chain(lines) {
            let mut words = text.split([' ', ',', '(', ')']).filter(|word| !word.is_empty());
            let names: Vec<&str> = crate::tables::Table::ALL.iter().map(|table| table.name()).collect();
            assert!(!words.any(|word| names.contains(&word)), "{text}");
        }
    }

    #[test]
    fn parameters_are_numbered() {
        assert_eq!(numbered("a = ? AND b IN (?, ?)"), "a = $1 AND b IN ($2, $3)");
        let text = Statement::Lines(OfLines::Insert, 15).text();
        assert_eq!(text.matches('?').count(), 135);
    }

    /// As PostgreSQL's `numeric_send` writes it.
    fn binary(value: i64) -> Vec<u8> {
        let (mut digits, mut rest) = (Vec::new(), value.unsigned_abs());
        while rest > 0 {
            digits.insert(0, u16::try_from(rest % 10_000).unwrap());
            rest /= 10_000;
        }
        let weight = i16::try_from(digits.len()).unwrap() - 2;
        let sign: u16 = if value < 0 { 0x4000 } else { 0 };
        let head = [u16::try_from(digits.len()).unwrap(), weight.cast_unsigned(), sign, 4];
        head.into_iter().chain(digits).flat_map(u16::to_be_bytes).collect()
    }

    #[test]
    fn decimals_are_written_as_people_do() {
        assert_eq!(
            [0, 100, -1_230_000, 1_234, 500_000_000].map(decimal_text),
            ["0.00", "0.01", "-123.00", "0.1234", "50000.00"]
        );
        assert_eq!(decimal_of_text("x"), None);
        assert_eq!(decimal_of_binary(&[0, 0, 0, 0, 0xc0, 0, 0, 0]), None, "not a number");
    }

    proptest! {
        #[test]
        fn decimals_survive_both_ways(value in -1_000_000_000_000_000_i64..1_000_000_000_000_000) {
            prop_assert_eq!(decimal_of_text(&decimal_text(value)), Some(value));
            prop_assert_eq!(decimal_of_binary(&binary(value)), Some(value));
        }

        #[test]
        fn no_bytes_panic(bytes: Vec<u8>, text: String) {
            let _ = (decimal_of_binary(&bytes), decimal_of_text(&text));
        }
    }
}
