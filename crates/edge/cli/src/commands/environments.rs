//! Environments as they are named on the command line.

use std::path::Path;

use virtbench_study::{EnvironmentNames, NamedEnvironment, split_machines};

use crate::exit::{Failure, Kind};
use crate::xdg;

/// The environments that are named.
///
/// # Errors
/// One is none, or the file of names cannot be read.
pub fn named(texts: &[String]) -> Result<Vec<NamedEnvironment>, Failure> {
    let usage = |error| Failure::new(Kind::Usage, error);
    let configuration = xdg::folder("XDG_CONFIG_HOME", ".config");
    let names = EnvironmentNames::find(Path::new("."), configuration.as_deref()).map_err(usage)?;
    texts.iter().map(|text| names.resolve(text)).collect::<Result<_, _>>().map_err(usage)
}

/// The environments that machines live in, each as often as it takes machines in a row.
///
/// # Errors
/// One is none, or the file of names cannot be read.
pub fn spread(texts: &[String]) -> Result<Vec<NamedEnvironment>, Failure> {
    let usage = |error| Failure::new(Kind::Usage, error);
    let parted: Vec<(&str, usize)> =
        texts.iter().map(|text| split_machines(text)).collect::<Result<_, _>>().map_err(usage)?;
    let environments = named(&parted.iter().map(|(text, _)| (*text).to_owned()).collect::<Vec<_>>())?;
    let each = environments.into_iter().zip(&parted);
    Ok(each.flat_map(|(environment, (_, machines))| vec![environment; *machines]).collect())
}
