//! One number with its name, unit and direction.

use serde::{Deserialize, Serialize};

use crate::workload::Better;

/// One number that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sample {
    /// What was measured.
    pub name: String,
    /// Its unit: `B/s`, `1/s`, `ns`, `%`, or another one.
    pub unit: String,
    /// Which direction is better.
    pub better: Better,
    /// How much it was; without end (`null` in JSON) where nothing was completed and less is better. It is a number.
    #[serde(with = "endless")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub value: f64,
}

/// JSON has no number without end. What is no number at all is not written, for nothing could be told from it.
mod endless {
    use serde::ser::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        if value.is_nan() || *value == f64::NEG_INFINITY {
            return Err(S::Error::custom(format!("a sample is {value}, which is no number")));
        }
        value.is_finite().then_some(*value).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        Ok(Option::deserialize(from)?.unwrap_or(f64::INFINITY))
    }
}

impl Sample {
    /// A number in a unit.
    #[must_use]
    pub fn new(name: impl Into<String>, unit: &str, better: Better, value: f64) -> Self {
        Self { name: name.into(), unit: unit.to_owned(), better, value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_without_end_is_written_and_read_and_what_is_no_number_is_not_written() {
        let sample = Sample::new("latency", "ns", Better::Lower, f64::INFINITY);
        let text = serde_json::to_string(&sample).unwrap();
        assert!(text.contains("\"value\":null"), "{text}");
        assert_eq!(serde_json::from_str::<Sample>(&text).unwrap(), sample);
        for value in [f64::NAN, f64::NEG_INFINITY] {
            assert!(serde_json::to_string(&Sample { value, ..sample.clone() }).is_err());
        }
    }
}
