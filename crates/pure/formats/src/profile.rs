//! Profiles and results of model loads, as a user brings them (docs/formats.md).

use serde::Deserialize;
use thiserror::Error;
use virtbench_record::{
    Band, Capacity, ModelLoadError, ModelRuns, PROFILE_FORMAT, Profile, ProfileError, SizeShare, Source,
    Sourced,
};
use virtbench_units::parse_bytes;

/// The largest such file, in bytes.
pub const MAX_PROFILE_BYTES: usize = 1 << 20;

/// A file that is no profile, or no result of a model load.
#[derive(Debug, Error)]
pub enum ProfileFileError {
    /// It is too large.
    #[error("larger than {MAX_PROFILE_BYTES} bytes")]
    TooLarge,
    /// It is not written as one.
    #[error("{why}")]
    Syntax {
        /// What the reader said, with the line.
        why: String,
    },
    /// A later version wrote it.
    #[error("written in format {found}, this version reads up to {PROFILE_FORMAT}: update virtbench")]
    TooNew {
        /// The format found.
        found: u64,
    },
    /// No application can be so.
    #[error("impossible figures: {0}")]
    Impossible(#[from] ProfileError),
    /// No model load can be so.
    #[error("impossible figures: {0}")]
    ImpossibleRuns(#[from] ModelLoadError),
}

/// Reads a profile: the JSON that `virtbench profile` writes, or a user's figures in TOML.
///
/// # Errors
/// It is neither, or no application can be so.
pub fn read_profile(bytes: &[u8]) -> Result<Profile, ProfileFileError> {
    let text = text(bytes)?;
    let profile = if text.trim_start().starts_with('{') { from_json(&text)? } else { from_toml(&text)? };
    profile.check()?;
    Ok(profile)
}

/// Reads what a model load did on two machines, in TOML.
///
/// # Errors
/// It is not such a file, or no load can be so.
pub fn read_model_runs(bytes: &[u8]) -> Result<ModelRuns, ProfileFileError> {
    let runs: ModelRuns = toml::from_str(&text(bytes)?).map_err(|error| syntax(&error))?;
    runs.check()?;
    Ok(runs)
}

fn text(bytes: &[u8]) -> Result<String, ProfileFileError> {
    if bytes.len() > MAX_PROFILE_BYTES {
        return Err(ProfileFileError::TooLarge);
    }
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

fn syntax(error: &impl ToString) -> ProfileFileError {
    ProfileFileError::Syntax { why: error.to_string().trim_end().to_owned() }
}

fn from_json(text: &str) -> Result<Profile, ProfileFileError> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(|error| syntax(&error))?;
    match value.get("profile_format").and_then(serde_json::Value::as_u64) {
        Some(found) if found > u64::from(PROFILE_FORMAT) => return Err(ProfileFileError::TooNew { found }),
        Some(_) => {}
        None => {
            let why = "no field profile_format: write one with `virtbench profile`".into();
            return Err(ProfileFileError::Syntax { why });
        }
    }
    serde_json::from_value(value).map_err(|error| syntax(&error))
}

/// A share, or its bounds.
#[derive(Deserialize)]
#[serde(untagged)]
enum Share {
    Exact(f64),
    Between([f64; 2]),
}

/// A size as people write it, or in bytes.
#[derive(Deserialize)]
#[serde(untagged)]
enum Size {
    Bytes(f64),
    Text(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SizeEntry {
    size: Size,
    share: f64,
}

/// The keys of a user's file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UserProfile {
    name: String,
    io_per_second: f64,
    reads_per_second: Option<f64>,
    writes_per_second: Option<f64>,
    bytes_per_second: Option<f64>,
    sizes: Option<Vec<SizeEntry>>,
    random_percent: Option<Share>,
    workers: Option<u32>,
    outstanding: Option<f64>,
    outstanding_per_worker: Option<u32>,
    latency_ms: Option<f64>,
    think_ms: Option<f64>,
    cpu_user_percent: Option<f64>,
    cpu_system_percent: Option<f64>,
    cpu_kernel_threads_percent: Option<f64>,
    copied_bytes_per_second: Option<f64>,
    processors: Option<u32>,
    capacity: Option<f64>,
    capacity_name: Option<String>,
}

fn from_toml(text: &str) -> Result<Profile, ProfileFileError> {
    let user: UserProfile = toml::from_str(text).map_err(|error| syntax(&error))?;
    let sizes = user.sizes.map(|entries| entries.into_iter().map(size_share).collect::<Result<Vec<_>, _>>());
    let milliseconds = |value: Option<f64>| value.map(|ms| ms * 1e6);
    let capacity_name = user.capacity_name;
    Ok(Profile {
        profile_format: PROFILE_FORMAT,
        name: user.name,
        host: None,
        host_use: None,
        elapsed_ns: None,
        devices: Vec::new(),
        capacity: user
            .capacity
            .map(|value| Capacity { name: capacity_name.unwrap_or_else(|| "capacity".into()), value }),
        io_per_second: given(Some(user.io_per_second)),
        reads_per_second: given(user.reads_per_second),
        writes_per_second: given(user.writes_per_second),
        bytes_per_second: given(user.bytes_per_second),
        sizes: given(sizes.transpose()?),
        random: given(user.random_percent.map(|share| match share {
            Share::Exact(percent) => Band::exactly(percent),
            Share::Between([low_percent, high_percent]) => Band { low_percent, high_percent },
        })),
        workers: given(user.workers),
        outstanding_mean: given(user.outstanding),
        outstanding_peak_per_worker: given(user.outstanding_per_worker),
        latency_ns: given(milliseconds(user.latency_ms)),
        think_ns: given(milliseconds(user.think_ms)),
        cpu_user_percent: given(user.cpu_user_percent),
        cpu_system_percent: given(user.cpu_system_percent),
        cpu_kernel_threads_percent: given(user.cpu_kernel_threads_percent),
        footprint: Sourced::unavailable("the user does not say"),
        copied_bytes_per_second: given(user.copied_bytes_per_second),
        processors: given(user.processors),
        command: Vec::new(),
        metric: None,
        notes: Vec::new(),
    })
}

fn given<T>(value: Option<T>) -> Sourced<T> {
    value.map_or_else(|| Sourced::unavailable("not given"), |value| Sourced::known(value, Source::User))
}

fn size_share(entry: SizeEntry) -> Result<SizeShare, ProfileFileError> {
    let size_bytes = match entry.size {
        Size::Bytes(bytes) => bytes,
        Size::Text(text) => parse_bytes(&text).map_err(|error| syntax(&format!("sizes: {error}")))? as f64,
    };
    Ok(SizeShare { size_bytes, share_percent: entry.share })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAIL: &str = include_str!("../../../../docs/data/paper1-mailserver.toml");

    #[test]
    fn the_paper_s_table_3_is_a_profile() {
        let profile = read_profile(MAIL.as_bytes()).unwrap();
        assert_eq!((profile.rate(), profile.concurrency()), (792.0, Some(50)));
        assert_eq!(profile.latency_ns.value(), Some(&12e6));
        let json = serde_json::to_vec(&profile).unwrap();
        assert_eq!(read_profile(&json).unwrap(), profile);
    }

    #[test]
    fn the_paper_s_tables_4_and_5_are_model_runs() {
        for (text, capacity) in [
            (include_str!("../../../../docs/data/paper1-thar-vm.toml"), 6123.0),
            (include_str!("../../../../docs/data/paper1-atacama-vm.toml"), 4921.0),
        ] {
            assert_eq!(read_model_runs(text.as_bytes()).unwrap().actual_capacity, Some(capacity));
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let with = |line: &str| format!("{MAIL}\n{line}\n");
        for (text, said) in [
            (MAIL.replace("= 512", "= 700"), "700 reads and 280 writes"),
            (MAIL.replace("= 792", "= 0"), "512 reads and 280 writes per second are 792, not 0"),
            (MAIL.replace("workers = 50", "workers = 10"), "Little's law"),
            (with("nonsense = 1"), "unknown field `nonsense`"),
            (with("sizes = [{size = '16 parsecs', share = 100}]"), "16 parsecs"),
            (with("sizes = [{size = '64k', share = 100}]"), "bytes_per_second"),
            (MAIL.replace("name =", "nam ="), "nam"),
            (r#"{"profile_format": 99}"#.into(), "format 99"),
            (r#"{"io": 1}"#.into(), "profile_format"),
            ("{".into(), "EOF"),
        ] {
            let error = read_profile(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(said), "{said}: {error}");
        }
        let runs = include_str!("../../../../docs/data/paper1-thar-vm.toml");
        for (text, said) in [
            (runs.replace("= 690", "= 0"), "subject.io_per_second"),
            (runs.replace("response_ms = 13", "response_ms = 40"), "Little's law"),
            (runs.replace("= 1.0", "= -1.0"), "compute.time_factor"),
        ] {
            let error = read_model_runs(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(said), "{said}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic_the_reader_of_profiles(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read_profile(&bytes);
            let _ = read_model_runs(&bytes);
        }
    }
}
