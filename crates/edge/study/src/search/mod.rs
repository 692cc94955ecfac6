//! Searches that measure one target again and again: the highest rate that it keeps up with, and its whole surface.

pub(crate) mod apply;
pub(crate) mod saturate;
pub(crate) mod surface;
