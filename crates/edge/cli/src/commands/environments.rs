//! Environments as they are named on the command line.

use std::path::{Path, PathBuf};

use virtbench_study::{EnvironmentNames, NamedEnvironment, split_machines};

use crate::exit::{Failure, Kind};

/// The environments that are named.
///
/// # Errors
/// One is none, or the file of names cannot be read.
pub fn named(texts: &[String]) -> Result<Vec<NamedEnvironment>, Failure> {
    let usage = |error| Failure::new(Kind::Usage, error);
    let names = EnvironmentNames::find(Path::new("."), configuration_folder().as_deref()).map_err(usage)?;
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

/// Where the user's configurations are.
fn configuration_folder() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    named("XDG_CONFIG_HOME").or_else(|| named("HOME").map(|home| home.join(".config")))
}
