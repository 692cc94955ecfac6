//! Durations in a day: nanoseconds, or text with a unit.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

#[derive(Deserialize)]
#[serde(untagged)]
enum Quantity {
    Number(u64),
    Text(String),
}

pub(crate) fn serialize<S: Serializer>(ns: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(*ns)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    match Quantity::deserialize(deserializer)? {
        Quantity::Number(ns) => Ok(ns),
        Quantity::Text(text) => virtbench_units::parse_duration_ns(&text).map_err(D::Error::custom),
    }
}
