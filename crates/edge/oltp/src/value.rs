//! Values of statements: what is put in and what comes out, the same for both databases.

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
    use super::*;
    use proptest::prelude::*;

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
