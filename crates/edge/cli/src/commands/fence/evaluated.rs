//! Everything that came of an evaluation.

use virtbench_fence_evaluation::{Finding, Row, Settings};
use virtbench_fence_sim::calibrate::Calibration;

use super::best_effort::GuardRow;
use super::reasons::Miss;
use super::tally::Tally;

/// What pages, tables and JSON are made of.
pub struct Evaluated {
    pub settings: Settings,
    pub calibration: Calibration,
    pub rows: Vec<Row>,
    pub findings: Vec<Finding>,
    pub tally: Tally,
    pub misses: Vec<Miss>,
    pub guards: Vec<GuardRow>,
}
