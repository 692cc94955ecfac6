//! Commands that the build of `make study` leaves out: they are shown, and say which build has them.

use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::exit::{Failure, Kind};

/// Each by its words, with what help says of it.
const LEFT_OUT: [(&str, &str); 17] = [
    ("oltp", "Load a database with TPC-C's transactions: populate it, run users, check its consistency"),
    ("users", "Let users ask a service for what it has: pages of a web server, keys and values, mail"),
    ("history", "Did it get worse over time? Every run in a catalogue, and where its figures changed"),
    ("papers", "Do the papers' conclusions hold here? Runs beside what five papers conclude"),
    ("profile", "Characterise what an application does to its storage"),
    ("costs", "Measure what user code, kernel code, copying and waiting cost in a VM, against natively"),
    ("predict", "Predict how an application will do in a VM, from its profile"),
    ("fence", "Give each virtual machine the same storage performance, alone or in company"),
    ("appliance", "Make guests with real software: root file systems of the distribution's own packages"),
    ("sweep", "Show what runs have left on a hypervisor or a vCenter, and remove it with consent"),
    (
        "study deviation",
        "Do my VMs disturb each other? Each alone and all together, and how far they deviate",
    ),
    ("study predictions", "Are predictions right? Applications profiled, predicted, and then run in a VM"),
    (
        "study oltp",
        "What does my database do in a VM? TPC-C's transactions on one appliance, natively and in VMs",
    ),
    (
        "study operations",
        "How fast is the control plane? Management operations on a hypervisor's VMs, and where their time goes",
    ),
    (
        "study application",
        "What does my application do in a VM? Any appliance under any client, natively and in VMs, alone and beside neighbours",
    ),
    (
        "study desktops",
        "How many desktops fit? Users of more and more of them at once, and how long each operation takes them",
    ),
    (
        "study tiles",
        "How many different VMs fit? More and more tiles of them at once, until a service level breaks",
    ),
];

/// What stands behind the words of a command that is left out.
const REST: &str = "rest";

/// Each command that this build leaves out.
fn rows() -> &'static [(&'static str, &'static str)] {
    if cfg!(feature = "full") { &[] } else { &LEFT_OUT }
}

/// The words of each command that this build leaves out.
pub fn left_out() -> impl Iterator<Item = &'static str> {
    rows().iter().map(|(words, _)| *words)
}

/// The command line with what this build leaves out.
pub fn with_left_out(command: Command) -> Command {
    rows().iter().fold(command, |command, (words, about)| match words.split_once(' ') {
        Some((group, name)) => command.mut_subcommand(group, |group| group.subcommand(stub(name, about))),
        None => command.subcommand(stub(words, about)),
    })
}

/// Takes whatever is said to it.
fn stub(name: &'static str, about: &'static str) -> Command {
    let rest = Arg::new(REST).num_args(0..).action(ArgAction::Append);
    Command::new(name)
        .about(format!("{about} (make install)"))
        .disable_help_flag(true)
        .arg(rest.trailing_var_arg(true).allow_hyphen_values(true).hide(true))
}

/// Refuses a command that this build leaves out.
///
/// # Errors
/// It is one.
pub fn refuse_left_out(matches: &ArgMatches) -> Result<(), Failure> {
    refuse_any_of(left_out(), matches)
}

fn refuse_any_of<'a>(
    mut left_out: impl Iterator<Item = &'a str>,
    matches: &ArgMatches,
) -> Result<(), Failure> {
    let mut words = Vec::new();
    let mut at = matches.subcommand();
    while let Some((name, inner)) = at {
        words.push(name);
        at = inner.subcommand();
    }
    let asked = words.join(" ");
    match left_out.find(|left_out| *left_out == asked) {
        Some(_) => Err(Failure::message(
            Kind::NotBuilt,
            format!(
                "`virtbench {asked}` is not in this build, which `make study` made: \
                 `make install` builds and installs all of virtbench"
            ),
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Arguments;

    #[test]
    fn what_is_left_out_is_what_a_full_build_has() {
        let full = Arguments::command();
        for (words, about) in LEFT_OUT {
            let found = words.split(' ').try_fold(&full, |command, word| command.find_subcommand(word));
            let found = found.unwrap_or_else(|| panic!("there is no command {words}"));
            assert_eq!(found.get_about().map(ToString::to_string).as_deref(), Some(about), "{words}");
        }
    }

    #[test]
    fn a_command_that_is_left_out_has_an_exit_code_of_its_own_and_names_the_build() {
        let study = Command::new("study").subcommand(stub("oltp", "")).subcommand(Command::new("compare"));
        let command = Command::new("virtbench").subcommand(study);
        let refused = |words: &str| {
            let matches = command.clone().try_get_matches_from(words.split(' ')).unwrap();
            refuse_any_of(["study oltp"].into_iter(), &matches)
        };
        let failure = refused("virtbench study oltp --help").unwrap_err();
        assert_eq!(failure.kind() as u8, 11);
        assert!(failure.to_string().contains("make install"), "{failure}");
        assert!(refused("virtbench study compare").is_ok());
    }

    #[test]
    fn a_stub_takes_whatever_is_said_to_it() {
        let command = Command::new("virtbench").subcommand(stub("fence", "Gives"));
        for words in ["virtbench fence", "virtbench fence serve --help -x=1 -- y"] {
            let matches = command.clone().try_get_matches_from(words.split(' ')).unwrap();
            assert_eq!(matches.subcommand_name(), Some("fence"));
        }
    }
}
