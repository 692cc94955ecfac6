//! Configurations compared with each other, from a run or from a table.

use virtbench_model::{Analysis, Margin, Measurements, analyse};
use virtbench_record::{PointRecord, Provenance, ResultTable};

use crate::rows::{self, CsvError};

/// Where the figures come from.
#[derive(Debug)]
pub(crate) enum Source<'a> {
    /// A run of this program.
    Run { provenance: &'a Provenance, records: &'a [PointRecord] },
    /// Somebody's table.
    Table(&'a ResultTable),
}

/// Configurations compared with each other: what `virtbench analyse` prints and the page of a study of
/// adapters shows.
#[derive(Debug)]
pub struct Analysed<'a> {
    pub(crate) source: Source<'a>,
    /// Everything that follows from the figures.
    pub analysis: Analysis,
}

/// Seed of a table's bootstraps: the same table always comes to the same conclusions.
const TABLE_SEED: u64 = 2_006;

impl<'a> Analysed<'a> {
    /// The environments of a run.
    #[must_use]
    pub fn run(provenance: &'a Provenance, records: &'a [PointRecord], margin: Margin) -> Self {
        let seed = provenance.plan.seed();
        let measurements = Measurements::from_records(records, provenance.plan.environments(), seed);
        Self { source: Source::Run { provenance, records }, analysis: analyse(measurements, margin, seed) }
    }

    /// The configurations of a table.
    #[must_use]
    pub fn table(table: &'a ResultTable, margin: Margin) -> Self {
        let measurements = Measurements::from_rows(&table.rows, TABLE_SEED);
        Self { source: Source::Table(table), analysis: analyse(measurements, margin, TABLE_SEED) }
    }

    /// Every verdict as CSV, a row for each pair, point and quantity; a ratio is that of the first to the
    /// second, and its interval one of 90 %.
    ///
    /// # Errors
    /// The writer failed, which only an exhausted memory can cause.
    pub fn verdicts_csv(&self) -> Result<String, CsvError> {
        rows::verdicts_csv(&self.analysis)
    }
}
