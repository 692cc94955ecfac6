//! What users keep on this machine: files that they write, the folders where those are looked for, and workloads by name or out
//! of the files of Filebench and dbench.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use virtbench_formats::{MAX_FILE_BYTES, MAX_LOADFILE_BYTES, read_filebench, read_loadfile};
use virtbench_workload::files::{FileLoad, FileSpec};
use virtbench_workload::{Workload, WorkloadSpec, names_command, parse_workload, with_options};

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The text of a file that somebody wrote.
///
/// # Errors
/// It cannot be read, or is too large for that; in words.
pub fn read_user_file(path: &Path) -> Result<String, String> {
    let size = fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > MAX_BYTES {
        return Err(format!("it is larger than {MAX_BYTES} bytes"));
    }
    fs::read_to_string(path).map_err(|error| error.to_string())
}

/// The folder of the user's that `variable` of the XDG Base Directory Specification names, else the one at `below_home`; nothing
/// where neither is known.
#[must_use]
pub fn user_folder(variable: &str, below_home: &str) -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set(variable).or_else(|| set("HOME").map(|home| home.join(below_home)))
}

/// Where Debian's dbench has its loadfile.
const DEBIAN_LOADFILE: &str = "/usr/share/dbench/client.txt";

/// Reads `NAME[:KEY=VALUE,...]`, `MODEL.f[:KEY=VALUE,...]`, `dbench[:KEY=VALUE,...]` or `command[:KEY=VALUE,...] -- PROGRAM WORDS`.
///
/// `remark` is told what of a model is understood otherwise than Filebench does.
///
/// # Errors
/// What cannot be read, in words.
pub fn read_workload(text: &str, remark: &mut dyn FnMut(&str)) -> Result<WorkloadSpec, String> {
    if names_command(text) {
        return parse_workload(text).map_err(|error| error.to_string());
    }
    if let Some((path, options)) = model_file(text) {
        return model(path, options, remark);
    }
    match text.split_once(':').unwrap_or((text, "")) {
        ("dbench", options) => dbench(options),
        _ => parse_workload(text).map_err(|error| {
            format!(
                "{error}; a Filebench model is named by its file, MODEL.f, a loadfile by dbench:file=FILE"
            )
        }),
    }
}

/// The path of a model and its options; nothing where the text names no such file.
fn model_file(text: &str) -> Option<(&str, &str)> {
    if let Some(path) = text.strip_suffix(".f") {
        return Some((&text[..path.len() + 2], ""));
    }
    text.find(".f:").map(|at| (&text[..at + 2], &text[at + 3..]))
}

/// Takes the options out that only a file has, such as `file=`; what is left is for all.
fn split<'a>(options: &'a str, key: &str) -> (Vec<&'a str>, String) {
    let (own, rest): (Vec<&str>, Vec<&str>) =
        options.split(',').map(str::trim).partition(|option| option.split('=').next() == Some(key));
    let values = own.iter().filter_map(|option| option.split_once('=')).map(|(_, value)| value.trim());
    (values.collect(), rest.join(","))
}

fn model(path: &str, options: &str, remark: &mut dyn FnMut(&str)) -> Result<WorkloadSpec, String> {
    let (set, rest) = split(options, "set");
    let variables = set.into_iter().map(|text| {
        let (name, value) =
            text.split_once(':').ok_or_else(|| format!("set={text}: write set=NAME:VALUE"))?;
        Ok((name.to_owned(), value.to_owned()))
    });
    let variables: Vec<(String, String)> = variables.collect::<Result<_, String>>()?;
    let bytes = read(Path::new(path), MAX_FILE_BYTES)?;
    let name =
        Path::new(path).file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let file = read_filebench(&name, &bytes, &variables).map_err(|error| format!("{path}: {error}"))?;
    for note in &file.notes {
        remark(&format!("note: {path}: {note}"));
    }
    let mut spec = FileSpec::new(FileLoad::Model(file.model));
    spec.run_ns = file.run_ns.unwrap_or(spec.run_ns);
    finish(spec, &rest)
}

fn dbench(options: &str) -> Result<WorkloadSpec, String> {
    let (files, rest) = split(options, "file");
    let path = files.last().copied().unwrap_or(DEBIAN_LOADFILE);
    let bytes = read(Path::new(path), MAX_LOADFILE_BYTES)
        .map_err(|error| format!("{error}; name another with dbench:file=FILE, or apt install dbench"))?;
    let load = read_loadfile(&bytes).map_err(|error| format!("{path}: {error}"))?;
    finish(FileSpec::new(FileLoad::Dbench(load)), &rest)
}

fn finish(spec: FileSpec, options: &str) -> Result<WorkloadSpec, String> {
    with_options(WorkloadSpec::new(Workload::Files(spec)), options).map_err(|error| error.to_string())
}

/// The bytes of a file, of which no more are read than `most` and one.
fn read(path: &Path, most: usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let file = File::open(path).and_then(|file| file.take(most as u64 + 1).read_to_end(&mut bytes));
    file.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_workload(text: &str) -> Result<WorkloadSpec, String> {
        super::read_workload(text, &mut |_| ())
    }

    const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../pure/formats/tests/examples");

    #[test]
    fn a_model_s_file_gives_its_time_and_takes_options() {
        let spec = read_workload(&format!("{EXAMPLES}/small.f:set=readers:5,runs=2")).unwrap();
        let Workload::Files(files) = &spec.workload else { panic!("{spec:?}") };
        assert_eq!((spec.runs, files.run_ns, files.load.threads()), (2, 3_000_000_000, 6));
        let wrong = read_workload(&format!("{EXAMPLES}/small.f:set=x:5")).unwrap_err();
        assert!(wrong.contains("small.f") && wrong.contains("$x"), "{wrong}");
    }

    #[test]
    fn a_loadfile_is_named_by_its_file() {
        let spec = read_workload(&format!("dbench:file={EXAMPLES}/small.load,threads=4,run=2s")).unwrap();
        assert_eq!(spec.workload.threads(), 4);
        let wrong = read_workload("dbench:file=/nonexistent").unwrap_err();
        assert!(wrong.contains("/nonexistent") && wrong.contains("apt install dbench"), "{wrong}");
    }

    #[test]
    fn the_words_of_a_program_are_taken_for_no_file() {
        let spec = read_workload("command -- filebench -f x.f").unwrap();
        let Workload::Command(command) = &spec.workload else { panic!("{spec:?}") };
        assert_eq!(command.words, ["filebench", "-f", "x.f"]);
    }

    #[test]
    fn an_unknown_name_hears_of_files_too() {
        assert!(read_workload("oltp").unwrap_err().contains("MODEL.f"));
    }
}
