//! Why nothing came of a number of tiles.

use thiserror::Error;
use virtbench_record::{Status, TilesFailureDetail, TilesMeasured};

use crate::study_error::StudyError;

/// Why nothing came of a number of tiles.
#[derive(Debug, Error)]
pub(super) enum TilesFailure {
    /// A member did not get ready or did not run to the end: so many do not fit.
    #[error("{why}")]
    Member {
        /// Which tile, from 1; nothing where no member is to blame.
        tile: Option<u32>,
        /// Which of its members.
        member: Option<String>,
        /// What happened.
        why: String,
    },
    /// The study cannot go on.
    #[error(transparent)]
    Study(#[from] StudyError),
}

impl TilesFailure {
    pub(super) fn member(tile: u32, member: &str, why: impl Into<String>) -> Self {
        Self::Member { tile: Some(tile), member: Some(member.to_owned()), why: why.into() }
    }

    /// As it is recorded.
    ///
    /// # Errors
    /// The study cannot go on.
    pub(super) fn status(self) -> Result<Status<TilesMeasured, TilesFailureDetail>, StudyError> {
        match self {
            Self::Member { tile, member, why } => {
                Ok(Status::Failed { why, detail: TilesFailureDetail { tile, member } })
            }
            Self::Study(error) => Err(error),
        }
    }
}
