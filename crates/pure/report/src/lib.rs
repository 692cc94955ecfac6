//! Results to text: one self-contained HTML page, the sentences it opens with, and CSV.
//!
//! Data in, text out: nothing here reads a file or a clock, and the page it writes asks nothing of
//! the network (its content security policy forbids it). Figures are drawn here, as SVG, and every one has a table that holds
//! the same numbers: a page without scripts, on paper or read aloud loses nothing.

mod application;
mod before_after;
mod configurations;
mod desktops;
mod documents;
mod fence;
mod figures;
mod format;
mod forms;
mod history;
mod oltp;
mod operations;
mod operations_rows;
mod page;
mod papers;
mod platform;
mod platforms_compared;
mod prediction;
mod provenance;
mod rows;
mod run;
mod samples;
mod set_rows;
mod sets;
mod tables;
mod takeaway;
mod tiles;
mod tiles_predicted;
mod tiles_study;
mod trials;

pub use crate::operations::growth_takeaway;
pub use application::ApplicationPage;
pub use before_after::BeforeAfterPage;
pub use configurations::Analysed;
pub use documents::{Documents, documents, html, outline, takeaway};
pub use fence::{FenceFigure, FencePage, FenceTable, FenceValue, fence_html};
pub use format::{set_marks, with_unit};
pub use forms::SvgFile;
pub use history::HistoryPage;
pub use page::Outline;
pub use papers::papers_markdown;
pub use platforms_compared::PlatformsPage;
pub use prediction::{PredictionPage, prediction_html};
pub use provenance::moment;
pub use rows::{CsvError, csv};
pub use set_rows::{
    DEVIATION_LEGEND, fate_in_words, ranged_percent, sets_csv, systems_csv, systems_markdown,
};
pub use takeaway::Takeaway;
pub use tiles::TilesPage;
pub use trials::{trials_csv, trials_markdown};
