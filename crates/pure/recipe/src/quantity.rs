//! Sizes and durations in a recipe: a number in the base unit, or text with a unit.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

#[derive(Deserialize)]
#[serde(untagged)]
enum Quantity {
    Number(u64),
    Text(String),
}

/// Bytes: `1048576` or `1MiB`.
pub(crate) mod bytes {
    use serde::{Deserializer, Serializer};

    pub fn serialize<S: Serializer>(bytes: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(*bytes)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        super::read(deserializer, |text| {
            virtbench_units::parse_bytes(text).map_err(|error| error.to_string())
        })
    }
}

/// Nanoseconds: `30000000000` or `30s`.
pub(crate) mod duration_ns {
    use serde::{Deserializer, Serializer};

    pub fn serialize<S: Serializer>(ns: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(*ns)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        super::read(deserializer, |text| {
            virtbench_units::parse_duration_ns(text).map_err(|error| error.to_string())
        })
    }
}

fn read<'de, D: Deserializer<'de>>(
    deserializer: D,
    parse: impl Fn(&str) -> Result<u64, String>,
) -> Result<u64, D::Error> {
    match Quantity::deserialize(deserializer)? {
        Quantity::Number(number) => Ok(number),
        Quantity::Text(text) => parse(&text).map_err(D::Error::custom),
    }
}
