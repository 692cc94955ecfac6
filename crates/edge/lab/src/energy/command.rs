//! Power out of what a command prints: a PDU, a baseboard controller, anything that a tool can ask.

use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use virtbench_record::PowerSample;

use super::source::{EnergySource, NoEnergy, since};
use crate::command::run_command_followed;

/// How long a command may take; the next sample then comes later.
const LIMIT: Duration = Duration::from_secs(5);

/// A command by a shell. The last number that it prints is the power, in watts.
#[derive(Debug)]
pub(super) struct CommandEnergy {
    command: String,
    /// Moments in nanoseconds since 1970, and watts.
    read: Vec<(u64, f64)>,
    trouble: Option<NoEnergy>,
}

impl CommandEnergy {
    pub(super) fn new(command: &str) -> Self {
        Self { command: command.to_owned(), read: Vec::new(), trouble: None }
    }

    /// Nothing of it is left afterwards, nor when this process is killed.
    fn run(&self) -> Result<f64, NoEnergy> {
        let mut command = Command::new("sh");
        command.args(["-c", &self.command]);
        let what = format!("the command {:?} for the power", self.command);
        let mut last = None;
        let told = &mut |line: &str| last = last_number(line).or(last);
        run_command_followed(command, &what, LIMIT, &AtomicBool::new(false), told)
            .map_err(|error| NoEnergy(error.to_string()))?;
        last.ok_or_else(|| NoEnergy(format!("{what} printed no number")))
    }
}

fn last_number(printed: &str) -> Option<f64> {
    let words = printed.split(|c: char| !(c.is_ascii_digit() || ".eE+-".contains(c)));
    let mut numbers = words.filter_map(|word| word.parse::<f64>().ok());
    numbers.rfind(|watts| watts.is_finite() && *watts >= 0.0)
}

impl EnergySource for CommandEnergy {
    fn name(&self) -> String {
        format!("command:{}", self.command)
    }

    fn ask(&mut self, unix_ns: u64) -> Result<(), NoEnergy> {
        match self.run() {
            Ok(watts) => {
                self.read.push((unix_ns, watts));
                Ok(())
            }
            Err(why) => {
                self.trouble = Some(why.clone());
                Err(why)
            }
        }
    }

    fn samples(&mut self, begin_unix_ns: u64) -> Result<Vec<PowerSample>, NoEnergy> {
        if self.read.is_empty() {
            return Err(self.trouble.clone().unwrap_or_else(|| NoEnergy("the command was not run".into())));
        }
        let sample = |(unix_ns, watts): &(u64, f64)| PowerSample {
            at_ns: since(*unix_ns, begin_unix_ns),
            watts: *watts,
        };
        Ok(self.read.iter().map(sample).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_of_a_command_is_its_power() {
        let mut source = CommandEnergy::new("echo 'Instantaneous power reading: 214.5 Watts'");
        source.ask(5_000_000_000).unwrap();
        assert_eq!(
            source.samples(4_000_000_000).unwrap(),
            [PowerSample { at_ns: 1_000_000_000, watts: 214.5 }]
        );
    }

    #[test]
    fn a_command_that_fails_says_why() {
        for (command, said) in [("exit 3", "ended with"), ("echo none", "printed no number")] {
            let mut source = CommandEnergy::new(command);
            assert!(source.ask(0).unwrap_err().to_string().contains(said));
            assert!(source.samples(0).unwrap_err().to_string().contains(said));
        }
    }
}
