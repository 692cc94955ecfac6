//! Appliances of a study: found or built, prepared, placed, joined, and told apart by side.

pub(crate) mod built;
pub(crate) mod joined;
pub(crate) mod place;
pub(crate) mod sides;
