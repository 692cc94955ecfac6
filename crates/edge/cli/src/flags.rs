//! Which option sets a field: errors of loads, plans and models name the field, the command its option.

use std::error::Error;

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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Arguments;

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
