//! Statements and definitions.

use std::collections::BTreeMap;

use virtbench_workload::files::{
    Action, Draw, FileChoice, FileModel, FileSet, Flowop, Io, MAX_FILESETS, MAX_FLOWOPS, Process, Quit,
    ThreadFlow,
};

use super::tokens::{FilebenchError, Placed, Token, Value, distribution, shorten};

/// The most variables, processes, or kinds of threads in a process.
const MAX_PARTS: usize = 1024;

/// Reads words, one after the other.
pub(super) struct Parser<'a> {
    tokens: std::iter::Peekable<std::vec::IntoIter<Placed<'a>>>,
    /// The line of the last word read.
    line: usize,
    given: BTreeMap<&'a str, (&'a str, bool)>,
    variables: BTreeMap<&'a str, Value>,
    notes: Vec<String>,
}

impl<'a> Parser<'a> {
    pub(super) fn new(tokens: Vec<Placed<'a>>, given: &'a [(String, String)]) -> Self {
        let given = given.iter().map(|(name, value)| (name.as_str(), (value.as_str(), false)));
        Self {
            tokens: tokens.into_iter().peekable(),
            line: 1,
            given: given.collect(),
            variables: BTreeMap::new(),
            notes: Vec::new(),
        }
    }

    /// Reads all statements.
    pub(super) fn read(mut self, name: &str) -> Result<FilebenchFile, FilebenchError> {
        let (mut filesets, mut processes) = (Vec::new(), Vec::new());
        let (mut event_rate, mut quit, mut run_ns) = (None, Quit::AllDone, None);
        while let Some((line, token)) = self.next() {
            let Token::Word(word) = token else { return Err(self.unexpected(&token, "a statement")) };
            match word {
                "set" => self.set(&mut quit)?,
                "define" => match self.word("what is defined")? {
                    kind @ ("fileset" | "file") => self.fileset(kind == "file", &mut filesets)?,
                    "process" => self.process(&filesets, &mut processes)?,
                    other => {
                        let why = format!("define {:?} is not supported", shorten(other));
                        return Err(FilebenchError::syntax(self.line, why));
                    }
                },
                "eventgen" => {
                    let mut attributes = self.attributes("eventgen".into())?;
                    let rate = attributes.need("rate", Value::number)?;
                    attributes.end()?;
                    // Filebench knows a rate of 0 as none.
                    event_rate = (rate > 0).then_some(rate as f64);
                }
                "run" => run_ns = self.run(line)?.or(run_ns),
                "echo" | "usage" => drop(self.value("a text")?),
                "debug" => drop(self.value("a level")?),
                other => {
                    let why = format!("statement {:?} is not supported", shorten(other));
                    return Err(FilebenchError::syntax(line, why));
                }
            }
        }
        if let Some((name, _)) = self.given.iter().find(|(_, (_, used))| !used) {
            return Err(FilebenchError::Variable(shorten(name)));
        }
        let model = FileModel { name: name.to_owned(), filesets, processes, event_rate, quit };
        Ok(FilebenchFile { model, run_ns, notes: self.notes })
    }

    fn next(&mut self) -> Option<Placed<'a>> {
        let next = self.tokens.next();
        self.line = next.as_ref().map_or(self.line, |(line, _)| *line);
        next
    }

    /// Takes the next word if it is this sign.
    fn sign(&mut self, sign: char) -> bool {
        let found = matches!(self.tokens.peek(), Some((_, Token::Sign(next))) if *next == sign);
        if found {
            self.next();
        }
        found
    }

    fn need_sign(&mut self, sign: char) -> Result<(), FilebenchError> {
        if self.sign(sign) {
            return Ok(());
        }
        match self.next() {
            Some((_, token)) => Err(self.unexpected(&token, &format!("{sign:?}"))),
            None => Err(FilebenchError::syntax(self.line, format!("the file ends where {sign:?} is needed"))),
        }
    }

    fn unexpected(&self, found: &Token<'_>, wanted: &str) -> FilebenchError {
        FilebenchError::syntax(self.line, format!("{} stands where {wanted} is needed", found.shown()))
    }

    fn word(&mut self, wanted: &str) -> Result<&'a str, FilebenchError> {
        match self.next() {
            Some((_, Token::Word(word))) => Ok(word),
            Some((_, token)) => Err(self.unexpected(&token, wanted)),
            None => Err(FilebenchError::syntax(self.line, format!("the file ends where {wanted} is needed"))),
        }
    }

    /// A word, a text, or what a variable has.
    fn value(&mut self, wanted: &str) -> Result<Value, FilebenchError> {
        match self.next() {
            Some((_, Token::Word(word))) => Ok(Value::Word(word.to_owned())),
            Some((_, Token::Text(text))) => Ok(Value::Word(text.to_owned())),
            Some((line, Token::Variable(name))) => self.variables.get(name).cloned().ok_or_else(|| {
                FilebenchError::syntax(line, format!("variable ${} is used before it is set", shorten(name)))
            }),
            Some((_, token)) => Err(self.unexpected(&token, wanted)),
            None => Err(FilebenchError::syntax(self.line, format!("the file ends where {wanted} is needed"))),
        }
    }

    /// `set $name=value` or `set mode quit ...`.
    fn set(&mut self, quit: &mut Quit) -> Result<(), FilebenchError> {
        match self.next() {
            Some((line, Token::Variable(name))) => {
                self.need_sign('=')?;
                let value = match self.tokens.peek() {
                    Some((_, Token::Word(kind @ ("cvar" | "randvar")))) => {
                        let kind = *kind;
                        self.next();
                        self.distribution(kind)?
                    }
                    _ => self.value("a value")?,
                };
                if self.variables.len() == MAX_PARTS {
                    return Err(FilebenchError::syntax(line, format!("more than {MAX_PARTS} variables")));
                }
                let value = match self.given.get_mut(name) {
                    Some((given, used)) => {
                        *used = true;
                        Value::Word((*given).to_owned())
                    }
                    None => value,
                };
                self.variables.insert(name, value);
                Ok(())
            }
            Some((_, Token::Word("mode"))) => {
                let (what, how) = (self.word("quit")?, self.word("firstdone, alldone or timeout")?);
                *quit = match (what, how) {
                    ("quit", "firstdone") => Quit::FirstDone,
                    ("quit", "alldone" | "timeout") => Quit::AllDone,
                    _ => {
                        let why = format!("mode {:?} {:?} is not supported", shorten(what), shorten(how));
                        return Err(FilebenchError::syntax(self.line, why));
                    }
                };
                Ok(())
            }
            Some((_, token)) => Err(self.unexpected(&token, "a variable")),
            None => Err(FilebenchError::syntax(self.line, "the file ends where a variable is needed")),
        }
    }

    fn distribution(&mut self, kind: &str) -> Result<Value, FilebenchError> {
        let begin = self.line;
        self.need_sign('(')?;
        let mut attributes = BTreeMap::new();
        loop {
            let name = self.word("an attribute of a distribution")?;
            self.need_sign('=')?;
            let value = self.value("a value")?;
            let word = value.word().map_err(|why| FilebenchError::syntax(self.line, why))?.to_owned();
            attributes.insert(name.to_owned(), word);
            if !self.sign(',') {
                break;
            }
        }
        self.need_sign(')')?;
        let draw = distribution(&attributes);
        draw.map(Value::Draw).map_err(|why| FilebenchError::syntax(begin, format!("{kind}: {why}")))
    }

    /// `name=value,name,...` up to something that is neither.
    fn attributes(&mut self, of: String) -> Result<Attributes, FilebenchError> {
        let mut attributes = Attributes::new(of, self.line);
        loop {
            let name = self.word("an attribute")?;
            let line = self.line;
            let value = if self.sign('=') { Some(self.value("a value")?) } else { None };
            attributes.add(line, name, value)?;
            if !self.sign(',') {
                return Ok(attributes);
            }
        }
    }

    fn fileset(&mut self, single: bool, filesets: &mut Vec<FileSet>) -> Result<(), FilebenchError> {
        let mut attributes = self.attributes(if single { "a file" } else { "a fileset" }.into())?;
        let name = attributes.need("name", |value| value.word().map(str::to_owned))?;
        let size = attributes.take("size", Value::draw)?;
        let size = size.or(attributes.take("filesize", Value::draw)?);
        let entries = if single { 1 } else { attributes.need("entries", Value::small)? };
        let dir_width = attributes.take("dirwidth", Value::small)?.unwrap_or(u32::MAX);
        let prealloc = attributes.number_or("prealloc", 100)?.unwrap_or(0);
        attributes
            .leave_out(&["path", "paralloc", "reuse", "trusttree", "readonly", "cached"], &mut self.notes);
        let line = attributes.line();
        attributes.end()?;
        let prealloc_percent =
            u8::try_from(prealloc).ok().filter(|percent| *percent <= 100).ok_or_else(|| {
                FilebenchError::syntax(line, format!("prealloc {prealloc} is more than 100 percent"))
            })?;
        if filesets.len() == MAX_FILESETS {
            return Err(FilebenchError::syntax(line, format!("more than {MAX_FILESETS} filesets")));
        }
        let size = size.unwrap_or(virtbench_workload::files::Draw::Fixed(1024));
        filesets.push(FileSet { name, entries, size, dir_width, prealloc_percent });
        Ok(())
    }

    fn process(&mut self, sets: &[FileSet], processes: &mut Vec<Process>) -> Result<(), FilebenchError> {
        let mut attributes = self.attributes("a process".into())?;
        let name = attributes.need("name", |value| value.word().map(str::to_owned))?;
        let instances = attributes.take("instances", Value::small)?.unwrap_or(1);
        attributes.end()?;
        let mut threads = Vec::new();
        self.need_sign('{')?;
        while !self.sign('}') {
            match self.word("thread or '}'")? {
                "thread" if threads.len() < MAX_PARTS => threads.push(self.thread(sets)?),
                other => {
                    let why = format!("{:?} stands where thread or '}}' is needed", shorten(other));
                    return Err(FilebenchError::syntax(self.line, why));
                }
            }
        }
        if processes.len() == MAX_PARTS {
            return Err(FilebenchError::syntax(self.line, format!("more than {MAX_PARTS} processes")));
        }
        processes.push(Process { name, instances, threads });
        Ok(())
    }

    fn thread(&mut self, sets: &[FileSet]) -> Result<ThreadFlow, FilebenchError> {
        let mut attributes = self.attributes("a thread".into())?;
        let name = attributes.need("name", |value| value.word().map(str::to_owned))?;
        let instances = attributes.take("instances", Value::small)?.unwrap_or(1);
        attributes.leave_out(&["memsize", "useism"], &mut self.notes);
        attributes.end()?;
        let mut flow = Vec::new();
        self.need_sign('{')?;
        while !self.sign('}') {
            match self.word("flowop or '}'")? {
                "flowop" if flow.len() < MAX_FLOWOPS => {
                    let kind = self.word("the kind of a flowop")?;
                    let attributes = self.attributes(format!("flowop {}", shorten(kind)))?;
                    flow.push(step(kind, attributes, sets, &mut self.notes)?);
                }
                other => {
                    let why = format!("{:?} stands where flowop or '}}' is needed", shorten(other));
                    return Err(FilebenchError::syntax(self.line, why));
                }
            }
        }
        Ok(ThreadFlow { name, instances, flow })
    }

    /// `run`, or `run SECONDS` on one line.
    fn run(&mut self, line: usize) -> Result<Option<u64>, FilebenchError> {
        let on_this_line = matches!(self.tokens.peek(), Some((next, _)) if *next == line);
        if !on_this_line {
            return Ok(None);
        }
        let seconds = self.value("a number of seconds")?;
        let seconds = seconds.number().map_err(|why| FilebenchError::syntax(line, format!("run: {why}")))?;
        let nanoseconds = seconds.checked_mul(1_000_000_000).filter(|nanoseconds| *nanoseconds > 0);
        let nanoseconds = nanoseconds.ok_or_else(|| FilebenchError::syntax(line, "run: no such time"))?;
        Ok(Some(nanoseconds))
    }
}

/// Attributes by their names.
#[derive(Debug)]
pub(super) struct Attributes {
    /// What they belong to, for messages.
    of: String,
    line: usize,
    values: BTreeMap<String, (usize, Option<Value>)>,
}

impl Attributes {
    pub(super) fn new(of: String, line: usize) -> Self {
        Self { of, line, values: BTreeMap::new() }
    }

    /// Adds one; an attribute without a value says only that it is so.
    pub(super) fn add(
        &mut self,
        line: usize,
        name: &str,
        value: Option<Value>,
    ) -> Result<(), FilebenchError> {
        match self.values.insert(name.to_owned(), (line, value)) {
            None => Ok(()),
            Some(_) => Err(FilebenchError::syntax(line, format!("{} has {name} twice", self.of))),
        }
    }

    /// Takes one out and reads it.
    pub(super) fn take<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Result<Option<T>, FilebenchError> {
        let Some((line, value)) = self.values.remove(name) else { return Ok(None) };
        let wrong = |why: String| FilebenchError::syntax(line, format!("{name} of {}: {why}", self.of));
        match value {
            Some(value) => read(&value).map(Some).map_err(wrong),
            None => Err(wrong("it needs a value".into())),
        }
    }

    /// The same of one that must be there.
    pub(super) fn need<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Result<T, FilebenchError> {
        self.take(name, read)?
            .ok_or_else(|| FilebenchError::syntax(self.line, format!("{} needs {name}", self.of)))
    }

    /// Takes out one that is true when it stands there alone.
    pub(super) fn flag(&mut self, name: &str) -> Result<bool, FilebenchError> {
        match self.values.get(name) {
            None => Ok(false),
            Some((_, None)) => {
                self.values.remove(name);
                Ok(true)
            }
            Some(_) => Ok(self.take(name, Value::truth)?.unwrap_or(false)),
        }
    }

    /// Takes out one that stands alone, or has a number.
    pub(super) fn number_or(&mut self, name: &str, alone: u64) -> Result<Option<u64>, FilebenchError> {
        if let Some((_, None)) = self.values.get(name) {
            self.values.remove(name);
            return Ok(Some(alone));
        }
        self.take(name, Value::number)
    }

    /// Takes out what changes nothing, and says so.
    pub(super) fn leave_out(&mut self, names: &[&str], notes: &mut Vec<String>) {
        for name in names {
            if self.values.remove(*name).is_some() {
                let note = format!("left out, because it does not change the load: {name}");
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
    }

    /// Whether all were taken.
    pub(super) fn end(self) -> Result<(), FilebenchError> {
        match self.values.into_iter().min_by_key(|(_, (line, _))| *line) {
            None => Ok(()),
            Some((name, (line, _))) => {
                let name = super::tokens::shorten(&name);
                Err(FilebenchError::syntax(
                    line,
                    format!("attribute {name:?} of {} is not supported", self.of),
                ))
            }
        }
    }

    /// Where the definition stands.
    pub(super) fn line(&self) -> usize {
        self.line
    }
}

/// The size of a read or write for which none is given: all at once.
const WHOLE: Draw = Draw::Fixed(1 << 20);

/// Makes a step of its kind and attributes.
pub(super) fn step(
    kind: &str,
    mut attributes: Attributes,
    sets: &[FileSet],
    notes: &mut Vec<String>,
) -> Result<Flowop, FilebenchError> {
    let line = attributes.line();
    let name = attributes.take("name", |value| value.word().map(str::to_owned))?;
    let iters = attributes.take("iters", Value::small)?.unwrap_or(1);
    let set = set(&mut attributes, sets)?;
    let fd = attributes.take("fd", byte)?;
    let place = FileChoice { fd: fd.unwrap_or(0), set };
    let need_set =
        || set.ok_or_else(|| FilebenchError::syntax(line, format!("flowop {kind} needs filesetname")));
    let number = fd.unwrap_or(0);
    let action = match kind {
        "createfile" => Action::CreateFile { set: need_set()?, fd: number },
        "openfile" => Action::OpenFile { set: need_set()?, fd: number },
        "closefile" => Action::CloseFile { fd: number },
        "deletefile" => Action::DeleteFile { set: need_set()? },
        "statfile" => Action::StatFile { set: need_set()? },
        "listdir" => Action::ListDir { set: need_set()? },
        "fsync" => Action::Fsync { fd: number },
        "readwholefile" => Action::ReadWholeFile { place, io: size(&mut attributes)?.unwrap_or(WHOLE) },
        "writewholefile" => {
            let source = attributes.take("srcfd", byte)?;
            Action::WriteWholeFile { place, io: size(&mut attributes)?.unwrap_or(WHOLE), source }
        }
        "appendfile" | "appendfilerand" => {
            let size = attributes.need("iosize", Value::draw)?;
            Action::AppendFile { place, size, random: kind == "appendfilerand" }
        }
        "read" => Action::Read { place, io: part(&mut attributes)? },
        "write" => Action::Write { place, io: part(&mut attributes)? },
        "delay" => Action::Delay { seconds: attributes.need("value", Value::draw)? },
        "eventlimit" => Action::EventLimit,
        "opslimit" | "iopslimit" => Action::OpsLimit,
        "bwlimit" => Action::BandwidthLimit,
        "finishoncount" => Action::FinishOnCount { count: attributes.need("value", Value::number)? },
        "finishonbytes" => Action::FinishOnBytes { bytes: attributes.need("value", Value::number)? },
        other => {
            let other = super::tokens::shorten(other);
            return Err(FilebenchError::syntax(line, format!("flowop {other:?} is not supported")));
        }
    };
    if attributes.flag("directio")? {
        let why = format!("flowop {kind}: directio is not supported, because files have any size");
        return Err(FilebenchError::syntax(line, why));
    }
    // A deleted or closed file needs no number of its own; Filebench takes one all the same.
    attributes.leave_out(&["nousestats"], notes);
    attributes.end()?;
    Ok(Flowop { name: name.unwrap_or_else(|| kind.to_owned()), action, iters })
}

fn set(attributes: &mut Attributes, sets: &[FileSet]) -> Result<Option<u16>, FilebenchError> {
    let find = |value: &Value| {
        let name = value.word()?;
        let place = sets.iter().position(|set| set.name == name);
        let place =
            place.ok_or_else(|| format!("no fileset is called {:?}", super::tokens::shorten(name)))?;
        u16::try_from(place).map_err(|error| error.to_string())
    };
    let first = attributes.take("filesetname", find)?;
    Ok(first.or(attributes.take("filename", find)?))
}

fn size(attributes: &mut Attributes) -> Result<Option<Draw>, FilebenchError> {
    attributes.take("iosize", Value::draw)
}

fn part(attributes: &mut Attributes) -> Result<Io, FilebenchError> {
    Ok(Io {
        size: attributes.need("iosize", Value::draw)?,
        random: attributes.flag("random")?,
        working_set: attributes.take("workingset", Value::number)?.unwrap_or(0),
        dsync: attributes.flag("dsync")?,
    })
}

fn byte(value: &Value) -> Result<u8, String> {
    let number = value.number()?;
    u8::try_from(number).map_err(|_| format!("{number} is too large"))
}

/// A model, and what else its file says.
#[derive(Debug, Clone, PartialEq)]
pub struct FilebenchFile {
    /// The model.
    pub model: FileModel,
    /// How long it asks to be run, in nanoseconds.
    pub run_ns: Option<u64>,
    /// What was left out because it does not change the load, and what differs from Filebench.
    pub notes: Vec<String>,
}
