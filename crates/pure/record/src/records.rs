//! What was measured in a run of whatever study: records follow the plan.

use crate::application::ApplicationRecord;
use crate::colocation::SetRecord;
use crate::desktops::DesktopsRecord;
use crate::oltp_study::OltpRecord;
use crate::operations_study::OperationsRecord;
use crate::plan::Plan;
use crate::point::{PointRecord, RecordError, parse_records};
use crate::predictions::Trial;
use crate::samples::SamplesRecord;
use crate::tiles_study::TilesRecord;

/// The lines of `results.jsonl`, as the study's plan has them.
#[derive(Debug, Clone, PartialEq)]
pub enum Records {
    /// Points of a grid.
    Points(Vec<PointRecord>),
    /// Sets of machines.
    Sets(Vec<SetRecord>),
    /// Trials of applications.
    Trials(Vec<Trial>),
    /// A database's measurements.
    Oltp(Vec<OltpRecord>),
    /// Pieces of a run of management operations.
    Operations(Vec<OperationsRecord>),
    /// An application's measurements.
    Application(Vec<ApplicationRecord>),
    /// Numbers of desktops.
    Desktops(Vec<DesktopsRecord>),
    /// Numbers of tiles.
    Tiles(Vec<TilesRecord>),
    /// Samples of sides.
    Samples(Vec<SamplesRecord>),
}

impl Records {
    /// Reads the results of a run with this plan, as [`parse_records`] does.
    ///
    /// # Errors
    /// As [`parse_records`].
    pub fn parse(plan: &Plan, text: &str) -> Result<(Self, usize), RecordError> {
        match plan {
            Plan::NativeVsVm(_) | Plan::Adapters(_) | Plan::Compare(_) => {
                parse_records(text).map(|(records, whole)| (Self::Points(records), whole))
            }
            Plan::Neighbours(_) | Plan::Deviation(_) => {
                parse_records(text).map(|(records, whole)| (Self::Sets(records), whole))
            }
            Plan::Predictions(_) => {
                parse_records(text).map(|(records, whole)| (Self::Trials(records), whole))
            }
            Plan::Oltp(_) => parse_records(text).map(|(records, whole)| (Self::Oltp(records), whole)),
            Plan::Operations(_) => {
                parse_records(text).map(|(records, whole)| (Self::Operations(records), whole))
            }
            Plan::Application(_) => {
                parse_records(text).map(|(records, whole)| (Self::Application(records), whole))
            }
            Plan::Desktops(_) => parse_records(text).map(|(records, whole)| (Self::Desktops(records), whole)),
            Plan::Tiles(_) => parse_records(text).map(|(records, whole)| (Self::Tiles(records), whole)),
            Plan::Network(_) | Plan::Platform(_) => {
                parse_records(text).map(|(records, whole)| (Self::Samples(records), whole))
            }
        }
    }

    /// Points; none where something else was measured.
    #[must_use]
    pub fn points(&self) -> &[PointRecord] {
        if let Self::Points(records) = self { records } else { &[] }
    }

    /// Sets of machines; none where something else was measured.
    #[must_use]
    pub fn sets(&self) -> &[SetRecord] {
        if let Self::Sets(records) = self { records } else { &[] }
    }

    /// Trials; none where something else was measured.
    #[must_use]
    pub fn trials(&self) -> &[Trial] {
        if let Self::Trials(records) = self { records } else { &[] }
    }

    /// A database's measurements; none where something else was measured.
    #[must_use]
    pub fn oltp(&self) -> &[OltpRecord] {
        if let Self::Oltp(records) = self { records } else { &[] }
    }

    /// Pieces of a run of management operations; none where something else was measured.
    #[must_use]
    pub fn operations(&self) -> &[OperationsRecord] {
        if let Self::Operations(records) = self { records } else { &[] }
    }

    /// An application's measurements; none where something else was measured.
    #[must_use]
    pub fn application(&self) -> &[ApplicationRecord] {
        if let Self::Application(records) = self { records } else { &[] }
    }

    /// Numbers of desktops; none where something else was measured.
    #[must_use]
    pub fn desktops(&self) -> &[DesktopsRecord] {
        if let Self::Desktops(records) = self { records } else { &[] }
    }

    /// Numbers of tiles; none where something else was measured.
    #[must_use]
    pub fn tiles(&self) -> &[TilesRecord] {
        if let Self::Tiles(records) = self { records } else { &[] }
    }

    /// Samples of sides; none where something else was measured.
    #[must_use]
    pub fn samples(&self) -> &[SamplesRecord] {
        if let Self::Samples(records) = self { records } else { &[] }
    }
}
