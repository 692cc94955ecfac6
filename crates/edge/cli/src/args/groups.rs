//! `virtbench help`: commands by the question that they answer.

use std::fmt::Write as _;

use clap::{Command, CommandFactory};

use super::Arguments;
use super::left_out::with_left_out;

/// Longer lines are broken.
const WIDTH: usize = 100;

/// Questions, each with its commands.
const GROUPS: [(&str, &[&str]); 5] = [
    (
        "Measure: how fast is storage, and what does a VM cost?",
        &["load", "workload", "oltp", "users", "saturate", "surface", "study", "run"],
    ),
    ("Predict: how will my application do in a VM?", &["profile", "costs", "predict"]),
    ("Fence: how do VMs keep the performance that they have alone?", &["fence"]),
    ("Look at results: what came of it?", &["compare", "history", "analyse", "papers", "report"]),
    ("Set up: what does this machine lack?", &["doctor", "appliance", "sweep", "completions", "help"]),
];

/// The command line, whose help is grouped.
pub fn command() -> Command {
    let command = with_left_out(Arguments::command());
    let groups = groups(&command);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{groups}\nOptions:\n{{options}}{{after-help}}"
    ))
}

/// The command line of the study `name`, if there is one.
pub fn study(name: &str) -> Option<Command> {
    Arguments::command().find_subcommand("study")?.find_subcommand(name).cloned()
}

fn groups(command: &Command) -> String {
    let longest = GROUPS.iter().flat_map(|(_, names)| *names).map(|name| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (question, names) in GROUPS {
        let _ = writeln!(text, "\n{question}");
        for name in names {
            let about = about(command, name);
            let mut lines = broken(&about, WIDTH.saturating_sub(longest + 4)).into_iter();
            let _ = writeln!(text, "  {name:<longest$}  {}", lines.next().unwrap_or_default());
            lines.for_each(|line| {
                let _ = writeln!(text, "{:indent$}{line}", "", indent = longest + 4);
            });
        }
    }
    text
}

/// What a command does. `help` is clap's own, and not there before the command line is built.
fn about(command: &Command, name: &str) -> String {
    let about = command.find_subcommand(name).and_then(Command::get_about);
    about.map_or_else(|| "Print this, or the help of a command".to_owned(), ToString::to_string)
}

/// Words in lines of at most so many characters.
fn broken(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_stands_under_one_question() {
        let mut built = command();
        built.build();
        let mut shown: Vec<&str> =
            built.get_subcommands().filter(|one| !one.is_hide_set()).map(Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        shown.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(shown, grouped);
    }

    #[test]
    fn help_names_the_questions_in_order_and_breaks_long_lines() {
        let help = command().render_help().to_string();
        let places: Vec<Option<usize>> = GROUPS.iter().map(|(question, _)| help.find(question)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{help}");
        let place =
            |name: &str| help.find(&format!("\n  {name} ")).unwrap_or_else(|| panic!("{name}: {help}"));
        assert!(
            place("predict") > help.find("Predict:").unwrap() && place("predict") < place("fence"),
            "{help}"
        );
        assert!(help.lines().all(|line| line.chars().count() <= WIDTH), "{help}");
        assert!(help.contains("Usage: virtbench") && help.contains("--version"), "{help}");
    }
}
