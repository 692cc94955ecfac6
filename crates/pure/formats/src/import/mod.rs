//! Loads out of other tools' files.

mod detect;
mod diskspd;
mod error;
mod fio;
mod icf;
mod json;
mod schedule;
mod vdbench;
mod words;

pub use detect::detect;
use error::{ASSUMED_REGION_BYTES, Findings};
pub use error::{Format, ImportError, Location, MAX_FILE_BYTES, MAX_JOBS, Remark};
use fio::processors;
pub(crate) use json::{FORMAT_VERSION, JsonJob, JsonLoad};
use schedule::common_alignment;
pub use schedule::{
    Ends, FlowPart, ImportedJob, ImportedLoad, Schedule, SteadyEnd, SteadyMetric, Surroundings,
};

/// Reads a load of this format, or of the one its content shows.
///
/// # Errors
/// The file is too large, no text or damaged; it has no job or an impossible one; or, unless
/// `lenient`, it says something that was not understood.
pub fn import(bytes: &[u8], format: Option<Format>, lenient: bool) -> Result<ImportedLoad, ImportError> {
    import_within(bytes, format, lenient, &Surroundings::default())
}

/// As [`import`], of a file that may refer to its surroundings.
///
/// # Errors
/// As [`import`].
pub fn import_within(
    bytes: &[u8],
    format: Option<Format>,
    lenient: bool,
    surroundings: &Surroundings<'_>,
) -> Result<ImportedLoad, ImportError> {
    if bytes.len() > MAX_FILE_BYTES {
        return Err(ImportError::TooLarge { bytes: bytes.len() });
    }
    if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
        let line = 1 + bytes[..at].iter().filter(|byte| **byte == b'\n').count();
        return Err(ImportError::NotText { line });
    }
    // Older tools wrote names in the code page of their day; those characters cost nothing here.
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let format = format.or_else(|| detect(text)).ok_or(ImportError::UnknownFormat)?;
    let mut findings = Findings::default();
    let jobs = match format {
        Format::Icf => icf::read(text, surroundings, &mut findings)?,
        Format::Fio => fio::read(text, surroundings, &mut findings)?,
        Format::FioCommand => fio::read_commands(text, surroundings, &mut findings)?,
        Format::Diskspd => diskspd::read(text, &mut findings)?,
        Format::Vdbench => vdbench::read(text, surroundings, &mut findings)?,
        Format::Json => json::read(text)?,
    };
    let (notes, ignored, hopeless) = findings.into_parts();
    if hopeless > 0 || (!lenient && !ignored.is_empty()) {
        return Err(ImportError::NotUnderstood { remarks: ignored, hopeless });
    }
    if jobs.is_empty() {
        return Err(ImportError::Empty(format));
    }
    for job in &jobs {
        job.load.validate().map_err(|source| ImportError::Load { job: job.name.clone(), source })?;
    }
    Ok(ImportedLoad { jobs, notes, ignored })
}

#[cfg(test)]
#[path = "import_tests.rs"]
mod tests;
