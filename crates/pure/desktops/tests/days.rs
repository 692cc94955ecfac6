//! Days: those that come with the project, invalid ones, and what users make of them.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use virtbench_desktops::{Day, Group, Itinerary, Until, supplied};

fn small() -> Day {
    supplied::find("small").unwrap().day().unwrap()
}

#[test]
fn the_days_that_come_with_the_project_are_valid() {
    for supplied in supplied::ALL {
        let day = supplied.day().unwrap_or_else(|error| panic!("{}: {error}", supplied.name));
        assert_eq!(day.name, supplied.name);
        assert!(day.operations().any(|(_, operation)| operation.group == Group::A), "{}", day.name);
        let has_slow = day.operations().any(|(_, operation)| operation.group == Group::B);
        assert_eq!(has_slow, day.needs_help().is_some(), "{}: keys alone open and save nothing", day.name);
        assert_eq!((day.limits.a, day.limits.b), (1_000_000_000, 6_000_000_000), "those of the paper");
    }
}

#[test]
fn an_invalid_day_names_the_field() {
    let text = supplied::find("small").unwrap().text;
    for (from, to, field) in [
        ("least = \"200ms\"", "least = \"2h\"", "think"),
        ("name = \"archiver\"", "name = \"editor\"", "applications.editor"),
        ("\"/bin/tar\"", "\"tar\"", "applications.archiver.program"),
        ("act = \"activate\", until = \"drawn\"", "act = \"activate\", until = \"exit\"", "restore.until"),
        ("[\"ctrl+x\"]", "[]", "close.act.keys"),
        ("window = \"Editor\"", "window = \" \"", "applications.editor.window"),
        ("name = \"modify\"", "name = \"Modify\"", "operations.Modify"),
        ("file = \"/home", "file = \"home", "save.until.file"),
        ("until = \"gone\"", "until = \"never\"", "until"),
        ("until = \"gone\"", "until = { title = \"\" }", "close.until.title"),
        ("until = \"gone\"", "until = \"gone\", still = true", "close.still"),
        ("until = \"gone\"", "until = { video = { frames = 9, rate = 9 } }", "close.until.video"),
        ("until = \"exit\"", "until = { video = { frames = 1, rate = 9 } }", "compress.until.video.frames"),
        ("until = \"exit\"", "until = { video = { frames = 9, rate = 61 } }", "compress.until.video.rate"),
    ] {
        assert!(text.contains(from), "{from}");
        let told = Day::parse(&text.replace(from, to)).unwrap_err().to_string();
        assert!(told.contains(field), "{field}: {told}");
    }
}

#[test]
fn users_do_the_same_operations_in_an_order_of_their_own() {
    let day = small();
    let count = day.operations().count();
    let steps = |user| Itinerary::new(&day, 7, user).take(count).collect::<Vec<_>>();
    assert_eq!(steps(3), steps(3));
    let numbers = |user| steps(user).iter().map(|step| step.number).collect::<Vec<_>>();
    for user in 0..20 {
        assert_eq!(numbers(user).iter().collect::<BTreeSet<_>>().len(), count, "each once in a round");
        let in_order = steps(user).windows(2).all(|pair| {
            pair[0].application != pair[1].application || pair[0].operation + 1 == pair[1].operation
        });
        assert!(in_order, "within an application as in the file");
        let within = |ns: u64| (day.think.least..=day.think.most).contains(&ns);
        assert!(steps(user).iter().all(|step| within(step.think_ns)));
    }
    assert!((1..20).any(|user| numbers(user) != numbers(0)), "applications in another order");
    let (application, operation) = day.operations().nth(2).unwrap();
    assert_eq!((application.name.as_str(), operation.name.as_str()), ("editor", "save"));
    assert!(matches!(operation.until, Until::File(_)));
}
