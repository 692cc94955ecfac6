//! Customers by their last names.

use crate::fault::{Fault, FaultKind};
use crate::value::Row;

/// The one in the middle of customers of one last name, who are ordered by their first names.
pub fn middle(customers: &[Row]) -> Result<u32, Fault> {
    let place = customers.len().div_ceil(2).saturating_sub(1);
    let found = customers.get(place).and_then(|row| row.first());
    found.map(|number| number.key()).ok_or_else(|| missing("a customer of that last name"))
}

/// A fault for what must be there.
pub fn missing(what: &str) -> Fault {
    Fault::new(FaultKind::Other, format!("the database lacks {what}: populate it again"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    #[test]
    fn the_middle_is_rounded_up() {
        let rows = |count: i64| (1..=count).map(|number| vec![Value::Int(number)]).collect::<Vec<Row>>();
        assert_eq!([1, 2, 3, 4].map(|count| middle(&rows(count)).unwrap()), [1, 1, 2, 2]);
        assert!(middle(&[]).is_err());
    }
}
