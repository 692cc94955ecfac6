//! How much a catalogue takes.

/// The most tags of a run.
pub const MAX_TAGS: usize = 100;
