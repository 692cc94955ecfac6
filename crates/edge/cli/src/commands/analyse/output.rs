//! What an analysis comes to, and the files that it is written to.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use virtbench_record::Conclusion;
use virtbench_report::Takeaway;

use crate::args::analyse::AnalyseArgs;
use crate::commands::study_runs::conclusion;
use crate::progress;

/// Computes the intervals, of which a large table has many.
pub fn comparing<T>(work: impl FnOnce() -> T) -> T {
    progress::during("comparing", work)
}

pub fn save(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

pub fn concluded(args: &AnalyseArgs, takeaway: &Takeaway) -> Conclusion {
    let path = |path: &Option<PathBuf>| path.as_deref().unwrap_or(Path::new("")).to_owned();
    conclusion(&args.source, &[path(&args.html), path(&args.csv)], takeaway)
}

pub fn sentences(out: &mut impl Write, takeaway: &Takeaway) -> io::Result<()> {
    let Takeaway { headline, details, cautions } = takeaway;
    std::iter::once(headline)
        .chain(details)
        .chain(cautions)
        .try_for_each(|sentence| writeln!(out, "{sentence}"))
}
