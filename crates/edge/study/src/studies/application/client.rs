//! A client's command, run on this host within an appliance's network.

use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use virtbench_lab::{CommandError, Reach, run_command_followed};

/// How much of what it prints is kept, in bytes: the end.
const MOST_OUTPUT: usize = 64 << 10;

/// A command that is to be run.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    /// Program and arguments.
    pub(crate) words: Vec<String>,
    /// Where it has to be.
    pub(crate) reach: Reach,
    /// How long it may take.
    pub(crate) limit: Duration,
}

/// What became of it.
#[derive(Debug)]
pub(crate) struct ClientEnd {
    /// Whether it did what it was to do.
    pub(crate) result: Result<(), CommandError>,
    /// The end of what it printed.
    pub(crate) output: String,
    /// How long it took.
    pub(crate) elapsed: Duration,
}

impl Client {
    /// Runs it to its end, or until `stop` is set. Nothing of it is left.
    pub(crate) fn run(&self, stop: &AtomicBool) -> ClientEnd {
        let (name, arguments) = self.words.split_first().map_or(("", &[][..]), |(name, rest)| (name, rest));
        let mut command = Command::new(name);
        command.args(arguments);
        self.reach.run_there(&mut command);
        let (begun, mut output) = (Instant::now(), String::new());
        let what = format!("the client {name}");
        let result = run_command_followed(command, &what, self.limit, stop, &mut |line| {
            output.push_str(line);
            output.push('\n');
            if output.len() > 2 * MOST_OUTPUT {
                output = end(&output).to_owned();
            }
        });
        ClientEnd { result, output: end(&output).to_owned(), elapsed: begun.elapsed() }
    }
}

/// The end of a text.
fn end(text: &str) -> &str {
    let mut from = text.len().saturating_sub(MOST_OUTPUT);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

/// Why it did not do what it was to do, and what helps.
pub(crate) fn explained(error: &CommandError) -> String {
    match error {
        CommandError::Start { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            format!("{error}: install it, or name it with its folder")
        }
        CommandError::TooLong { .. } => {
            format!("{error} and was ended: give it less to do, or raise limit in the study's file")
        }
        error => error.to_string(),
    }
}
