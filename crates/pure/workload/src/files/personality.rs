//! The personalities of [VirtualFence 2013], section 4.3, with the parameters that Filebench publishes for
//! version 1.5 (file-server and mail-server 3.0, web-server 3.1).

use super::draw::Draw;
use super::model::{Action, FileChoice, FileModel, FileSet, Flowop, Process, Quit, ThreadFlow};

/// Reads and writes of whole files go a mebibyte at a time.
const WHOLE_FILE_IO_BYTES: u64 = 1 << 20;
/// Appends have between one byte and this many.
const APPEND_BYTES: u64 = 16 << 10;
/// Shape of the gamma distribution of file sizes.
const SIZE_SHAPE: f64 = 1.5;
/// The set that every thread works on, and the one of log files.
const FILES: u16 = 0;
const LOGS: u16 = 1;

/// A personality.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Personality {
    /// Folders of several users: files are created, written, appended to, read, deleted.
    FileServer,
    /// A folder of mails, as `/var/mail`: each write is followed by an fsync, as many reads as those.
    MailServer,
    /// Pages are read, ten for each line of a common log.
    WebServer,
}

impl Personality {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::FileServer, Self::MailServer, Self::WebServer];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::FileServer => "fileserver",
            Self::MailServer => "mailserver",
            Self::WebServer => "webserver",
        }
    }

    /// The personality of this name; Filebench's `varmail` is the mail server.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        let name = if name == "varmail" { "mailserver" } else { name };
        Self::ALL.into_iter().find(|personality| personality.name() == name)
    }

    /// The model, with the published numbers of files and threads.
    #[must_use]
    pub fn model(self) -> FileModel {
        let files = |entries, mean, dir_width, prealloc_percent| FileSet {
            name: "files".into(),
            entries,
            size: Draw::Gamma { mean, shape: SIZE_SHAPE },
            dir_width,
            prealloc_percent,
        };
        let (filesets, threads, flow) = match self {
            Self::FileServer => (vec![files(10_000, 131_072.0, 20, 80)], 50, file_server()),
            // A million entries wide: all of them in one folder.
            Self::MailServer => (vec![files(1_000, 16_384.0, 1_000_000, 80)], 16, mail_server()),
            Self::WebServer => {
                let logs = FileSet { name: "logs".into(), ..files(1, 16_384.0, 20, 100) };
                (vec![files(1_000, 16_384.0, 20, 100), logs], 100, web_server())
            }
        };
        let thread = ThreadFlow { name: self.name().into(), instances: threads, flow: steps(flow) };
        FileModel {
            name: self.name().into(),
            filesets,
            processes: vec![Process { name: self.name().into(), instances: 1, threads: vec![thread] }],
            event_rate: None,
            quit: Quit::AllDone,
        }
    }
}

const OPENED: FileChoice = FileChoice { fd: 1, set: None };
const WHOLE: Draw = Draw::Fixed(WHOLE_FILE_IO_BYTES);

fn append(place: FileChoice) -> Action {
    Action::AppendFile { place, size: Draw::Fixed(APPEND_BYTES), random: true }
}

fn open() -> Action {
    Action::OpenFile { set: FILES, fd: 1 }
}

fn create() -> Action {
    Action::CreateFile { set: FILES, fd: 1 }
}

fn read() -> Action {
    Action::ReadWholeFile { place: OPENED, io: WHOLE }
}

const CLOSE: Action = Action::CloseFile { fd: 1 };
const SYNC: Action = Action::Fsync { fd: 1 };
const DELETE: Action = Action::DeleteFile { set: FILES };

fn file_server() -> Vec<Action> {
    let write = Action::WriteWholeFile { place: OPENED, io: WHOLE, source: Some(1) };
    let created = [create(), write, CLOSE];
    let appended = [open(), append(OPENED), CLOSE];
    let read = [open(), read(), CLOSE];
    [&created[..], &appended, &read, &[DELETE, Action::StatFile { set: FILES }]].concat()
}

fn mail_server() -> Vec<Action> {
    let received = [DELETE, create(), append(OPENED), SYNC, CLOSE];
    let answered = [open(), read(), append(OPENED), SYNC, CLOSE];
    [&received[..], &answered, &[open(), read(), CLOSE]].concat()
}

fn web_server() -> Vec<Action> {
    let mut flow: Vec<Action> = (0..10).flat_map(|_| [open(), read(), CLOSE]).collect();
    flow.push(append(FileChoice { fd: 2, set: Some(LOGS) }));
    flow
}

/// Names them as Filebench's reports do: the action and its number among its kind.
fn steps(actions: Vec<Action>) -> Vec<Flowop> {
    let mut steps: Vec<Flowop> = Vec::new();
    for action in actions {
        let number = 1 + steps.iter().filter(|step| step.action.name() == action.name()).count();
        steps.push(Flowop { name: format!("{}{number}", action.name()), action, iters: 1 });
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(personality: Personality, name: &str) -> usize {
        personality.model().processes[0].threads[0]
            .flow
            .iter()
            .filter(|step| step.action.name() == name)
            .count()
    }

    #[test]
    fn each_is_valid_and_found_by_its_name() {
        for personality in Personality::ALL {
            personality.model().validate().unwrap();
            assert_eq!(Personality::find(personality.name()), Some(personality));
        }
        assert_eq!(Personality::find("varmail"), Some(Personality::MailServer));
        assert_eq!(Personality::find("oltp"), None);
    }

    #[test]
    fn the_mail_server_reads_as_often_as_it_writes_and_syncs() {
        let of = |name| count(Personality::MailServer, name);
        assert_eq!((of("readwholefile"), of("appendfilerand"), of("fsync")), (2, 2, 2));
    }

    #[test]
    fn the_web_server_reads_ten_pages_for_a_line_of_its_log() {
        let of = |name| count(Personality::WebServer, name);
        assert_eq!((of("openfile"), of("readwholefile"), of("appendfilerand")), (10, 10, 1));
    }

    #[test]
    fn the_file_server_s_published_parameters() {
        let model = Personality::FileServer.model();
        assert_eq!(
            (model.threads(), model.filesets[0].entries, model.filesets[0].dir_width),
            (50, 10_000, 20)
        );
        // 10,000 files of 128 KiB, four fifths of them there at the start.
        assert!((model.initial_bytes() / (8_000.0 * 131_072.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn threads_are_set_and_nonsense_is_named() {
        let mut model = Personality::WebServer.model();
        model.set_threads(7).unwrap();
        assert_eq!(model.threads(), 7);
        model.processes[0].threads[0].flow.remove(0);
        model.validate().unwrap();
        model.processes[0].threads[0].flow.retain(|step| step.action.name() != "openfile");
        assert!(model.validate().unwrap_err().to_string().contains("no flowop of its thread opens fd 1"));
    }
}
