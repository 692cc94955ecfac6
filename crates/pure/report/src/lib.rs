//! Results to text: one self-contained HTML page, the sentences it opens with, and CSV.
//!
//! Data in, text out: nothing here reads a file or a clock, and the page it writes asks nothing of
//! the network (its content security policy forbids it). Figures are drawn here, as SVG, and every one has a table that holds
//! the same numbers: a page without scripts, on paper or read aloud loses nothing.

mod analysed;
mod application;
mod application_study_rows;
mod before_after;
mod card;
mod desktops_rows;
mod documents;
mod environments;
mod fence;
mod fence_figure;
mod figures;
mod format;
mod forms;
mod history;
mod history_words;
mod matrix;
mod oltp_rows;
mod operations_metrics;
mod operations_rows;
mod outline;
mod page;
mod path_cost;
mod platforms_compared;
mod prediction;
mod provenance;
mod rows;
mod run;
mod samples_rows;
mod set_rows;
mod systems;
mod tables;
mod takeaway;
mod tiles;
mod tiles_rows;
mod trials;

pub use analysed::Analysed;
pub use application::ApplicationPage;
pub use before_after::BeforeAfterPage;
pub use documents::{Documents, documents, html, outline, takeaway};
pub use fence::{FencePage, FenceTable, fence_html};
pub use fence_figure::{FenceFigure, FenceValue};
pub use format::{set_marks, with_unit};
pub use forms::SvgFile;
pub use history::HistoryPage;
pub use outline::Outline;
pub use platforms_compared::PlatformsPage;
pub use prediction::{PredictionPage, prediction_html};
pub use provenance::moment;
pub use rows::{CsvError, csv};
pub use set_rows::sets_csv;
pub use systems::{DEVIATION_LEGEND, fate_in_words, ranged_percent, systems_csv, systems_markdown};
pub use takeaway::{Takeaway, growth_takeaway};
pub use tiles::TilesPage;
pub use trials::{trials_csv, trials_markdown};
