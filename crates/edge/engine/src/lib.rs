//! Applies a load to a target.
