//! Why a number of tiles has no result.

use virtbench_record::TilesFailureDetail;

use crate::runner::steps::NoResult;

/// Why a number of tiles has no result: a member did not get ready or did not run to the end.
pub(super) type TilesFailure = NoResult<TilesFailureDetail>;

impl TilesFailure {
    /// A member of a tile, from 1, failed.
    pub(super) fn member(tile: u32, member: &str, why: impl Into<String>) -> Self {
        let detail = TilesFailureDetail { tile: Some(tile), member: Some(member.to_owned()) };
        Self::Failed { why: why.into(), detail }
    }
}
