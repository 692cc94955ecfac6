//! What studies of sides have in common.

/// What a study of sides is about, of any plan of one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SidesPlan {
    /// The heading of its page.
    pub title: &'static str,
    /// Names of the sides, that one first which others are compared with.
    pub sides: Vec<String>,
    /// How often each is measured.
    pub repetitions: u32,
    /// About how long measuring one of them once takes, in nanoseconds.
    pub takes_ns: u64,
    /// Seed of every random choice.
    pub seed: u64,
    /// Names of samples that sum up a side.
    pub headlines: &'static [&'static str],
}
