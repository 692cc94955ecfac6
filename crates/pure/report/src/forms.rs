//! A run in other forms than the page: for an issue, for a terminal, for slides and papers.

mod markdown;
mod svg;
mod text;

pub use svg::SvgFile;

/// What stands before cautions in every form.
const CAUTIONS: &str = "Before you use these figures:";
/// What stands before the command line.
const REPEAT: &str = "Measured by this command, which measures it again:";

use crate::outline::Outline;

/// Who wrote it, in a line.
fn foot(outline: &Outline) -> String {
    format!("{}; virtbench {}", outline.place, outline.version)
}
