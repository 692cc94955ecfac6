use proptest::prelude::*;
use virtbench_workload::files::{Action, Draw, FileModel, Personality, Quit};

use super::*;

const EXAMPLE: &str = include_str!("../../tests/examples/small.f");

fn read(text: &str) -> Result<FilebenchFile, FilebenchError> {
    read_filebench("test", text.as_bytes(), &[])
}

#[test]
fn our_own_example_is_read_whole() {
    let file = read(EXAMPLE).unwrap();
    let model = &file.model;
    assert_eq!(
        (file.run_ns, model.event_rate, model.quit),
        (Some(3_000_000_000), Some(500.0), Quit::AllDone)
    );
    assert_eq!((model.threads(), model.filesets.len()), (3, 2));
    let pages = &model.filesets[0];
    assert_eq!((pages.entries, pages.dir_width, pages.prealloc_percent), (200, 20, 90));
    assert_eq!(pages.size, Draw::Gamma { mean: 8192.0, shape: 1.5 });
    let notes = &model.filesets[1];
    assert_eq!((notes.entries, notes.prealloc_percent, &notes.size), (1, 100, &Draw::Fixed(4096)));
    let writer = &model.processes[0].threads[1].flow;
    assert!(matches!(writer[5].action, Action::AppendFile { random: true, .. }) && writer[5].iters == 2);
    assert!(matches!(&writer[6].action, Action::Write { io, .. } if io.dsync && !io.random));
    assert!(file.notes.iter().any(|note| note.contains("memsize")), "{:?}", file.notes);
}

#[test]
fn variables_can_be_given_and_unknown_ones_are_named() {
    let given = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
    let file = read_filebench("x", EXAMPLE.as_bytes(), &given("readers", "7")).unwrap();
    assert_eq!(file.model.threads(), 8);
    let error = read_filebench("x", EXAMPLE.as_bytes(), &given("redaers", "7")).unwrap_err();
    assert_eq!(error, FilebenchError::Variable("redaers".into()));
}

/// A personality in the language, from its model: what the reader makes of it must be the model again.
fn written(model: &FileModel) -> String {
    let mut text = String::new();
    for set in &model.filesets {
        let Draw::Gamma { mean, shape } = set.size else { panic!("{set:?}") };
        text += &format!(
            "set ${0}size=cvar(type=cvar-gamma,parameters=mean:{mean};gamma:{shape})\n\
             define fileset name={0},path=/x,size=${0}size,entries={1},dirwidth={2},prealloc={3}\n",
            set.name, set.entries, set.dir_width, set.prealloc_percent
        );
    }
    let process = &model.processes[0];
    let thread = &process.threads[0];
    text += &format!("define process name={},instances={} {{\n", process.name, process.instances);
    text += &format!(" thread name={},memsize=10m,instances={} {{\n", thread.name, thread.instances);
    for step in &thread.flow {
        let set = |index: u16| format!(",filesetname={}", model.filesets[usize::from(index)].name);
        let place = |place: &virtbench_workload::files::FileChoice| {
            format!(",fd={}{}", place.fd, place.set.map_or_else(String::new, set))
        };
        let size = |draw: &Draw| match draw {
            Draw::Fixed(size) => format!(",iosize={size}"),
            other => panic!("{other:?}"),
        };
        let rest = match &step.action {
            Action::CreateFile { set: index, fd } | Action::OpenFile { set: index, fd } => {
                format!("{},fd={fd}", set(*index))
            }
            Action::CloseFile { fd } | Action::Fsync { fd } => format!(",fd={fd}"),
            Action::DeleteFile { set: index } | Action::StatFile { set: index } => set(*index),
            Action::ReadWholeFile { place: at, io } => place(at) + &size(io),
            Action::WriteWholeFile { place: at, io, source } => {
                place(at) + &size(io) + &source.map_or_else(String::new, |fd| format!(",srcfd={fd}"))
            }
            Action::AppendFile { place: at, size: bytes, .. } => place(at) + &size(bytes),
            other => panic!("{other:?}"),
        };
        text += &format!("  flowop {} name={}{rest}\n", step.action.name(), step.name);
    }
    text + " }\n}\nrun 60\n"
}

#[test]
fn the_personalities_can_be_said_in_the_language() {
    for personality in Personality::ALL {
        let model = personality.model();
        let file = read_filebench(&model.name, written(&model).as_bytes(), &[]).unwrap();
        assert_eq!(file.model, model);
        assert_eq!(file.run_ns, Some(60_000_000_000));
    }
}

#[test]
fn what_is_not_understood_is_named_with_its_line() {
    let thread = |flowop: &str| {
        format!(
            "define fileset name=a,entries=1\ndefine process name=p\n{{\nthread name=t\n{{\n{flowop}\n}}\n}}\n"
        )
    };
    for (text, line, word) in [
        ("set $a=\n".to_owned(), 1, "value"),
        ("\nset $a=$b\n".to_owned(), 2, "$b"),
        ("define fileset name=a,entries=1,\n  leafdirs=5\n".to_owned(), 2, "leafdirs"),
        ("define fileset name=a,entries=many\n".to_owned(), 1, "many"),
        ("define fileset entries=5\n".to_owned(), 1, "needs name"),
        ("define fileset name=a,entries=1,prealloc=101\n".to_owned(), 1, "101"),
        ("define flowop name=x\n".to_owned(), 1, "flowop"),
        ("set $a=cvar(type=cvar-weibull,parameters=a:1)\n".to_owned(), 1, "weibull"),
        ("set $a=cvar(type=cvar-gamma,parameters=mean:1)\n".to_owned(), 1, "gamma"),
        ("set $a=cvar(type=cvar-gamma,parameters=mean:1;gamma:1,min=5)\n".to_owned(), 1, "min"),
        ("system \"rm -rf /\"\n".to_owned(), 1, "system"),
        ("echo \"x\n".to_owned(), 1, "quotes"),
        ("set mode quit now\n".to_owned(), 1, "now"),
        ("run soon\n".to_owned(), 1, "soon"),
        (thread("flowop aiowrite name=w,filesetname=a"), 6, "aiowrite"),
        (thread("flowop openfile name=o,filesetname=b,fd=1"), 6, "\"b\""),
        (thread("flowop openfile name=o,fd=1"), 6, "filesetname"),
        (thread("flowop read name=r,filesetname=a,iosize=4k,directio"), 6, "directio"),
        (thread("flowop statfile name=s,filesetname=a,indexed=4"), 6, "indexed"),
        (thread("flowop statfile name=s,name=s,filesetname=a"), 6, "twice"),
    ] {
        match read(&text) {
            Err(FilebenchError::Line { line: found, why }) => {
                assert_eq!(found, line, "{text}: {why}");
                assert!(why.contains(word), "{text}: {why}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn a_model_that_makes_no_sense_is_refused() {
    assert!(matches!(read("define fileset name=a,entries=1\n"), Err(FilebenchError::Model(_))));
    let error = read(&EXAMPLE.replace("name=pages,path", "name=../up,path").replace("=pages", "=../up"));
    assert!(matches!(error, Err(FilebenchError::Model(_))), "{error:?}");
    assert!(matches!(read(&EXAMPLE.replace("=$readers", "=4000000000")), Err(FilebenchError::Model(_))));
    let bytes = vec![b' '; MAX_FILE_BYTES + 1];
    assert!(matches!(read_filebench("x", &bytes, &[]), Err(FilebenchError::TooLarge { .. })));
    assert_eq!(read_filebench("x", &[0xff], &[]), Err(FilebenchError::NotText));
}

proptest! {
    #[test]
    fn no_text_panics_and_what_is_read_is_valid(
        cuts in prop::collection::vec((any::<prop::sample::Index>(), "[a-z0-9=,{}$() \n\"#]{0,6}"), 0..4),
        tail in "[ -~\n]{0,60}",
    ) {
        let mut text = EXAMPLE.to_owned();
        for (place, piece) in cuts {
            let at = place.index(text.len());
            text.replace_range(at..at, &piece);
        }
        text += &tail;
        if let Ok(file) = read(&text) {
            prop_assert!(file.model.validate().is_ok());
        }
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_filebench("x", &bytes, &[]);
    }
}
