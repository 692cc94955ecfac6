//! The outside of a running load: who ends it, and who is told what it does.

/// What a running load knows of the outside.
#[derive(Clone, Copy)]
pub struct Outside<'a> {
    /// Whether it shall end now.
    pub is_over: &'a (dyn Fn() -> bool + Sync),
    /// Takes the operations completed since the last call and the bytes they moved.
    pub count: &'a (dyn Fn(u64, u64) + Sync),
}
