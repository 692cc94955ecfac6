//! What the shell is told: exit codes, and errors with options in place of fields.

use std::error::Error;
use std::process::ExitCode;

use virtbench_lab::{LabError, MachineError};
use virtbench_study::GuestsError;

use crate::say::tell;

/// Why a command ended without doing its job, as an exit code. Listed in the manual page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Something failed that has no code of its own.
    Other = 1,
    /// The command line asks for something impossible.
    Usage = 2,
    /// The target cannot be used.
    Target = 3,
    /// Something that is needed is missing; `virtbench doctor` says what.
    Environment = 4,
    /// Results exist, but some operations failed.
    Measured = 5,
    /// A guest or a machine crashed, hung, could not be reached or never answered.
    Guest = 6,
    /// The run folder is in use, damaged or of another run.
    Folder = 7,
    /// A fence's cache, or a database after its load, says what cannot be.
    Inconsistent = 8,
    /// Of two runs the later is worse, and that was asked for.
    Regression = 9,
    /// What was asked could not be judged: nothing was measured, or nothing is comparable.
    Undecided = 10,
    /// This build leaves the command out.
    NotBuilt = 11,
    /// Runs have left something on a platform, and it was not removed.
    LeftOver = 12,
    /// Stopped by SIGINT, SIGTERM or SIGHUP; what was measured is kept.
    Interrupted = 130,
}

impl Kind {
    /// The kind that another virtbench ended with.
    pub fn of_code(code: i32) -> Self {
        let known = [
            Self::Usage,
            Self::Target,
            Self::Environment,
            Self::Measured,
            Self::Guest,
            Self::Folder,
            Self::Inconsistent,
            Self::Regression,
            Self::Undecided,
            Self::NotBuilt,
            Self::LeftOver,
            Self::Interrupted,
        ];
        known.into_iter().find(|kind| i32::from(*kind as u8) == code).unwrap_or(Self::Other)
    }
}

/// The table for the manual page: every code with its meaning.
pub const MEANINGS: [(u8, &str); 14] = [
    (0, "It worked."),
    (Kind::Other as u8, "Something failed that has no code of its own."),
    (Kind::Usage as u8, "The command line asks for something impossible."),
    (Kind::Target as u8, "The target cannot be used."),
    (Kind::Environment as u8, "Something that is needed is missing; virtbench doctor says what."),
    (Kind::Measured as u8, "There are results, but operations failed."),
    (Kind::Guest as u8, "A guest or a machine crashed, hung, could not be reached or never answered."),
    (Kind::Folder as u8, "The run folder is in use, damaged or of another run."),
    (Kind::Inconsistent as u8, "The cache of a fence is inconsistent, or a database after its load."),
    (Kind::Regression as u8, "Of two runs that were compared the later is worse (--fail-on regression)."),
    (
        Kind::Undecided as u8,
        "What was asked could not be judged: nothing was measured, or nothing is comparable.",
    ),
    (
        Kind::NotBuilt as u8,
        "This build, of make study, leaves the command out; make install builds all of virtbench.",
    ),
    (
        Kind::LeftOver as u8,
        "Runs that were killed have left something on a hypervisor or a vCenter, and it was not removed (virtbench sweep).",
    ),
    (Kind::Interrupted as u8, "Interrupted; what was measured is kept."),
];

/// An error with its exit code.
#[derive(Debug)]
pub struct Failure {
    kind: Kind,
    error: anyhow::Error,
}

impl Failure {
    /// A failure of this kind.
    pub fn new(kind: Kind, error: impl Into<anyhow::Error>) -> Self {
        Self { kind, error: error.into() }
    }

    /// A failure that needs no more than a sentence.
    pub fn message(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, error: anyhow::Error::msg(message.into()) }
    }

    /// As the user reads it, with options in place of fields.
    pub fn sentence(&self) -> String {
        sentence(&self.error)
    }

    /// The same, where it happened put before it.
    pub fn within(self, place: String) -> Self {
        Self { kind: self.kind, error: self.error.context(place) }
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#}", self.error)
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(Kind::Other, error)
    }
}

/// What every command returns.
pub type Outcome = Result<(), Failure>;

/// Prints the error, if there is one, and gives its code.
pub fn report(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of our output has closed it, which is an answer and not an error.
        Err(failure) if is_broken_pipe(&failure.error) => ExitCode::SUCCESS,
        Err(Failure { kind, error }) => {
            let sentence = sentence(&error);
            tracing::error!(code = kind as u8, "{sentence}");
            tell!("virtbench: {sentence}");
            ExitCode::from(kind as u8)
        }
    }
}

/// The error with its causes, each said once: many messages contain that of their cause already.
fn sentence(error: &anyhow::Error) -> String {
    error.chain().map(named).fold(String::new(), |said, cause| {
        if said.contains(&cause) {
            said
        } else if said.is_empty() {
            cause
        } else {
            format!("{said}: {cause}")
        }
    })
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Fields, as errors quote them, with their options.
const FLAGS: [(&str, &str); 33] = [
    ("`outstanding`", "--outstanding"),
    ("`workers`", "--workers"),
    ("`ramp_ns`", "--ramp (ns)"),
    ("`time_ns`", "--time (ns)"),
    ("`interval_ns`", "--interval (ns)"),
    ("`timeout_ns`", "--timeout (ns)"),
    ("`flush_every`", "--flush-every"),
    ("`compressible_percent`", "--compressible"),
    ("`duplicate_percent`", "--duplicate"),
    ("`rate`", "--rate"),
    ("`delay_ns`", "--think"),
    ("`region_bytes`", "--size"),
    ("`size_bytes`", "--bs"),
    ("`align_bytes`", "--align"),
    ("`trim_percent`", "--trim"),
    ("`engine`", "--engine"),
    ("`submission_polling`", "--sqpoll"),
    ("`completion_polling`", "--iopoll"),
    ("`direct` = false", "--buffered"),
    ("`verify`", "--verify"),
    ("`trace`", "--trace"),
    ("`format`", "--format"),
    ("`lenient`", "--lenient"),
    ("`rpm`", "--rpm"),
    ("`measure_s`", "--duration"),
    ("`replications`", "--replications"),
    ("`loads`", "--load"),
    ("`deviation_percent`", "--deviation"),
    ("`response_ms`", "--response"),
    ("`surface`", "--surface"),
    ("`method`", "--method"),
    ("`model`", "--model"),
    ("`costs`", "--costs"),
];

/// What serde says of a field that is in a file: there the field is what is wrong, and no option.
const OF_FILES: [&str; 5] =
    ["unknown field `", "missing field `", "duplicate field `", "unknown variant `", "invalid type: "];

/// The error in words, with options in place of fields. What a reader of files says of a field of theirs stays as it is.
pub fn named(error: &(dyn Error + 'static)) -> String {
    let words = error.to_string();
    if OF_FILES.iter().any(|begins| words.contains(begins)) { words } else { with_options(words) }
}

fn with_options(words: String) -> String {
    FLAGS.iter().fold(words, |words, (field, flag)| words.replace(field, flag))
}

/// The kind of a failed machine: it is well where its agent only refuses the target, and never began where this host lacks something.
pub fn lab_kind(error: &LabError) -> Kind {
    match error {
        LabError::Stopped => Kind::Interrupted,
        error if error.is_of_target() => Kind::Target,
        LabError::Uml(_) | LabError::Machine { source: MachineError::Lacking { .. }, .. } => {
            Kind::Environment
        }
        _ => Kind::Guest,
    }
}

/// The kind of failure of a command that can have no guests.
pub fn guests_kind(error: &GuestsError) -> Kind {
    if matches!(error, GuestsError::NoImage(_)) { Kind::Other } else { Kind::Environment }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Arguments;

    #[test]
    fn causes_are_said_once() {
        let cause = || std::io::Error::other("no such luck");
        let bare = anyhow::Error::new(cause()).context("cannot open x");
        assert_eq!(sentence(&bare), "cannot open x: no such luck");
        let telling = anyhow::Error::new(cause()).context("cannot open x: no such luck; try y");
        assert_eq!(sentence(&telling), "cannot open x: no such luck; try y");
    }

    #[test]
    fn each_names_an_option_that_exists() {
        let mut options = Vec::new();
        let mut commands = vec![Arguments::command()];
        while let Some(command) = commands.pop() {
            options.extend(command.get_arguments().filter_map(|option| option.get_long().map(str::to_owned)));
            commands.extend(command.get_subcommands().cloned());
        }
        for (field, flag) in FLAGS {
            let option = flag.trim_start_matches("--").trim_end_matches(" (ns)");
            assert!(options.iter().any(|known| known == option), "{field}: {flag}");
        }
        assert_eq!(with_options("`direct` = false, `rate` 3/s".into()), "--buffered, --rate 3/s");
    }
}
