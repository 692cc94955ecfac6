//! Statements with their parameters.

use crate::statement::{OfLines, One, Statement};
use crate::value::Param;

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
