//! What commands show while they last: on a terminal what they do, on a pipe nothing; and what Ctrl-C leaves.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;

use crate::support::fence::{CACHED, Fence};
use crate::support::terminal::Terminal;
use crate::support::{finish, folder, run, signal, two_environments, virtbench, wait_for};

#[test]
fn what_lasts_is_shown_on_a_terminal_and_a_pipe_sees_nothing_of_it() {
    let folder = folder();
    let before = two_environments(folder.path(), "before", 1).display().to_string();
    let after = two_environments(folder.path(), "after", 1).display().to_string();
    let catalogue = folder.path().join("history.sqlite").display().to_string();
    let fence = Fence::formatted(CACHED);
    let config = fence.path("fence.toml").display().to_string();
    let load = ["--read", "0", "--time", "200ms"];
    let daemon = fence.serve();
    assert_eq!(fence.load("A", &load).code(), 0);
    daemon.stop();
    let simulate = "fence simulate --figure 1 --workload webserver --duration 2s --replications 1";
    let short: Vec<[Vec<&str>; 2]> = vec![
        [vec!["report", &before], vec!["reading the run", "writing the report"]],
        [vec!["report", &before, "--format", "text"], vec!["reading the run", "writing the report"]],
        [vec!["analyse", &before], vec!["reading", "comparing"]],
        [vec!["compare", &before, &after], vec!["reading runs", "looking for past runs", "comparing"]],
        [vec!["history", "list", &before, "--catalogue", &catalogue], vec!["reading runs"]],
        [vec!["history", "page", "--catalogue", &catalogue], vec!["looking for changes"]],
        [vec!["history", "rebuild", "--catalogue", &catalogue], vec!["reading runs"]],
        [
            vec!["fence", "inspect", "--data", &config],
            vec!["reading the cache's metadata", "comparing blocks with their checksums"],
        ],
        [vec!["fence", "drain", &config], vec!["writing what the cache alone has"]],
        [simulate.split(' ').collect(), vec!["calibrations", "experiments"]],
    ];
    for [words, shown] in short {
        let terminal = Terminal::new();
        let child = terminal.start(&words);
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success(), "{words:?}: {}", terminal.text());
        for what in &shown {
            wait_for(what, || terminal.said().contains(what).then_some(()));
        }
        wait_for("the end of it", || {
            let text = terminal.text();
            shown.iter().all(|what| !text.contains(&format!("{what}  "))).then_some(())
        });
        let piped = run(&words);
        assert_eq!(piped.code(), 0, "{words:?}: {piped:?}");
        let said = |what: &&str| piped.stderr.contains(&format!("{what}  "));
        assert!(!shown.iter().any(said) && !piped.stderr.contains(" left"), "{words:?}: {}", piped.stderr);
        assert!(!piped.stderr.contains(['\r', '\u{1b}']), "{words:?}: {:?}", piped.stderr);
    }
}

#[test]
fn what_only_reads_ends_at_the_first_signal_and_says_what_is_kept() {
    let folder = folder();
    let path = folder.path().join("table.csv");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let analysing = virtbench().arg("analyse").arg(&path).spawn().unwrap();
    // There is somebody to write to once the command reads.
    let writer =
        wait_for("a reader", || File::options().write(true).custom_flags(libc::O_NONBLOCK).open(&path).ok());
    signal(&analysing, "INT");
    let done = finish(analysing);
    drop(writer);
    assert_eq!(done.code(), 130, "{done:?}");
    assert!(done.stderr.contains("interrupted: the run or the table is as it was"), "{}", done.stderr);
    assert!(done.stdout.is_empty(), "{}", done.stdout);
}
