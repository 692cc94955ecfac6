//! `--export`: results in other tools' formats.

use std::fs::{self, OpenOptions};
use std::io;

use virtbench_formats::results::{
    ExportError, JobResult, diskspd_xml, fio_json, hlog, iometer_csv, openmetrics,
};

use super::perform::Done;
use crate::args::{ExportArg, ExportFormat};
use crate::exit::{Failure, Kind};

/// Makes sure that every file can be written, before anything is measured. What is there stays.
pub fn check(exports: &[ExportArg]) -> Result<(), Failure> {
    exports.iter().try_for_each(|ExportArg { path, .. }| {
        let made = OpenOptions::new().write(true).create_new(true).open(path);
        let checked = match made {
            Ok(_) => fs::remove_file(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                OpenOptions::new().write(true).open(path).map(drop)
            }
            Err(error) => Err(error),
        };
        checked.map_err(|error| {
            let what = format!("--export: cannot write {}: {error}", path.display());
            Failure::message(Kind::Usage, what)
        })
    })
}

/// Writes every file that was asked for.
pub fn write(exports: &[ExportArg], done: &[Done]) -> Result<(), Failure> {
    let results: Vec<JobResult<'_>> = done.iter().map(Done::result).collect();
    for ExportArg { format, path } in exports {
        let text = text(*format, &results)?;
        fs::write(path, text).map_err(|error| {
            Failure::message(Kind::Other, format!("cannot write {}: {error}", path.display()))
        })?;
    }
    Ok(())
}

fn text(format: ExportFormat, results: &[JobResult<'_>]) -> Result<String, ExportError> {
    let version = env!("CARGO_PKG_VERSION");
    match format {
        ExportFormat::Diskspd => diskspd_xml(version, results),
        ExportFormat::FioJson => fio_json(version, results),
        ExportFormat::IometerCsv => iometer_csv(version, results),
        ExportFormat::Hlog => hlog(results),
        ExportFormat::Openmetrics => openmetrics(results),
    }
}
