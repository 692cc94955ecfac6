//! Results to text: one self-contained HTML page, the sentences it opens with, and CSV.
//!
//! Data in, text out: nothing here reads a file or a clock, and the page it writes asks nothing of
//! the network (its content security policy forbids it). Every figure has a table that holds the
//! same numbers, so a page without JavaScript, on paper or read aloud loses nothing but the picture.

mod analysed;
mod fence;
mod fence_figure;
mod figures;
mod format;
mod matrix;
mod page;
mod prediction;
mod provenance;
mod rows;
mod run;
mod scene;
mod scripts;
mod set_rows;
mod systems;
mod tables;
mod takeaway;
mod trials;

use std::collections::BTreeMap;

use virtbench_model::Margin;
use virtbench_record::{PointRecord, Provenance, RunKind, SetRecord};

pub use analysed::Analysed;
pub use fence::{FencePage, FenceTable, fence_html};
pub use fence_figure::{FenceFigure, FenceValue};
pub use prediction::{PredictionPage, prediction_html};
pub use rows::{CsvError, csv};
pub use set_rows::sets_csv;
pub use systems::{DEVIATION_LEGEND, fate_in_words, ranged_percent, systems_csv, systems_markdown};
pub use takeaway::{Takeaway, predictions_takeaway, sets_takeaway, takeaway};
pub use trials::{predictions_html, trials_csv, trials_markdown};

/// The report of a run of points as one HTML file; `histograms` as for [`native_vs_vm_html`].
#[must_use]
pub fn html(
    provenance: &Provenance,
    records: &[PointRecord],
    histograms: &BTreeMap<String, String>,
) -> String {
    match provenance.kind {
        RunKind::NativeVsVm => native_vs_vm_html(provenance, records, histograms),
        RunKind::Neighbours | RunKind::Deviation => sets_html(provenance, &[]),
        RunKind::Adapters => Analysed::run(provenance, records, Margin::default()).html(),
        RunKind::Predictions => predictions_html(provenance, &[]),
    }
}

/// The report of a run of sets of VMs, of neighbours or of deviation, as one HTML file.
#[must_use]
pub fn sets_html(provenance: &Provenance, records: &[SetRecord]) -> String {
    if provenance.kind == RunKind::Neighbours {
        page::neighbours(provenance, records)
    } else {
        page::deviation(provenance, records)
    }
}

/// The report of a native-against-VM run as one HTML file.
///
/// `histograms` holds latencies in nanoseconds, encoded as HdrHistogram logs hold them, under
/// [`PointRecord::histogram_tag`] followed by `/read` or `/write`. Where a tag is missing, the histogram inside the record is used; where that
/// is missing too, the point has no latency curve. Any records will do, from none at all to an
/// incomplete run: the page says what is missing.
#[must_use]
pub fn native_vs_vm_html(
    provenance: &Provenance,
    records: &[PointRecord],
    histograms: &BTreeMap<String, String>,
) -> String {
    page::native_vs_vm(&run::Run::new(provenance, records), histograms)
}
