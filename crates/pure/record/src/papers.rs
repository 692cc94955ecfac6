//! Conclusions of papers, and what runs say to them.

use serde::{Deserialize, Serialize};

/// Whether a paper's conclusion holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ClaimVerdict {
    /// It does.
    Holds,
    /// It does not.
    Fails,
    /// What was measured does not decide it.
    Open,
}

impl ClaimVerdict {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "does not hold",
            Self::Open => "open",
        }
    }

    /// The verdict of a rule that is decided.
    #[must_use]
    pub fn of(holds: bool) -> Self {
        if holds { Self::Holds } else { Self::Fails }
    }
}

/// What one platform says to a conclusion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClaimFinding {
    /// `native`, `UML`, `TCG`, `KVM`, or another environment's name.
    pub platform: String,
    /// What was measured, in words.
    pub figures: String,
    /// What follows.
    pub verdict: ClaimVerdict,
}

/// A conclusion with what runs say to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JudgedClaim {
    /// A short name.
    pub id: String,
    /// The paper's key in the bibliography.
    pub paper: String,
    /// Where in the paper.
    pub place: String,
    /// The conclusion, in other words than the paper's.
    pub words: String,
    /// The paper's own figures.
    pub published: String,
    /// When it is said to hold.
    pub rule: String,
    /// What differs between the paper's machines and others, where it may not hold.
    pub differs: String,
    /// The study that measures it.
    pub study: String,
    /// Each platform once, in the order of the runs; nothing where no run measured it.
    pub findings: Vec<ClaimFinding>,
}

/// A figure of a run in a row of a paper's table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PaperTableCell {
    /// `native`, `UML`, `TCG`, `KVM`, or another environment's name.
    pub platform: String,
    /// What was measured, in words.
    pub figure: String,
}

/// A row of a paper's table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PaperTableRow {
    /// What it is of.
    pub what: String,
    /// The paper's figure.
    pub published: String,
    /// Each platform once, in the order of the runs; nothing where no run measured it.
    pub found: Vec<PaperTableCell>,
}

/// A table of a paper, or the figures that it says of a drawing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PaperTable {
    /// The paper's key in the bibliography.
    pub paper: String,
    /// Where in the paper.
    pub place: String,
    /// What it shows, with its unit.
    pub title: String,
    /// The study that measures it.
    pub study: String,
    /// Its rows.
    pub rows: Vec<PaperTableRow>,
}

/// Runs beside the papers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PapersSummary {
    /// The run folders that were read.
    pub runs: Vec<String>,
    /// Findings of conclusions that hold, over all platforms.
    pub hold: usize,
    /// Of those that do not.
    pub fail: usize,
    /// Of those that are open.
    pub open: usize,
    /// Every conclusion.
    pub claims: Vec<JudgedClaim>,
    /// Every table.
    pub tables: Vec<PaperTable>,
}
