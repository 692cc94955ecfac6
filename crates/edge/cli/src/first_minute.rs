//! `virtbench` alone: what it answers, and what people start with.

use std::fmt::Write as _;

use crate::args;
use crate::exit::{Failure, Kind};

/// Questions, each with the command that answers it.
const ANSWERS: [(&str, &str); 8] = [
    ("What does virtualization cost my storage?", "study native-vs-vm"),
    ("Which of my machines is faster?", "study compare"),
    ("Which virtual adapter, over which backing?", "study adapters"),
    ("Who slows down whom?", "study neighbours"),
    ("How will my application do in a VM?", "predict"),
    ("How many different VMs fit on this host?", "study tiles"),
    ("How do VMs keep their performance beside others?", "fence"),
    ("Did it get worse?", "compare"),
];

/// What people start with, and what it does.
const STARTS: [(&str, &str); 3] = [
    ("virtbench doctor", "what this machine has and lacks; --fix installs it"),
    ("virtbench load --target test.img --size 256MiB --time 10s", "what a disk does"),
    ("virtbench study native-vs-vm", "what a VM costs: five minutes, and a page"),
];

/// Said where no command was given. As where clap misses one, that is an error of the command line: a script whose words have
/// become empty does not take it for success.
pub fn told() -> Failure {
    Failure::message(Kind::Usage, text())
}

fn text() -> String {
    let mut text = String::from("which command?\n\nIt answers:\n");
    let command = args::command();
    let is_here =
        |words: &str| words.split(' ').try_fold(&command, |at, word| at.find_subcommand(word)).is_some();
    // Writing into a string cannot fail.
    for (question, words) in ANSWERS.iter().filter(|(_, words)| is_here(words)) {
        let _ = writeln!(text, "  {question:<48} virtbench {words}");
    }
    text += "\nStart with:\n";
    for (line, what) in STARTS {
        let _ = writeln!(text, "  {line}\n      {what}");
    }
    text + "\nvirtbench help lists every command, virtbench help COMMAND says all of one."
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_answer_is_a_command_and_every_start_can_be_typed() {
        let command = args::Arguments::command();
        for (_, words) in ANSWERS {
            let found = words.split(' ').try_fold(&command, |at, word| at.find_subcommand(word));
            assert!(found.is_some(), "{words}");
        }
        for (line, _) in STARTS {
            let parsed = args::Arguments::command().try_get_matches_from(line.split(' '));
            assert!(parsed.is_ok(), "{line}: {parsed:?}");
        }
        assert!(text().lines().all(|line| line.chars().count() <= 80), "{}", text());
    }
}
