//! Statements and definitions.

use std::collections::BTreeMap;

use virtbench_workload::files::{FileModel, FileSet, MAX_FILESETS, MAX_FLOWOPS, Process, Quit, ThreadFlow};

use super::attributes::Attributes;
use super::error::FilebenchError;
use super::file::FilebenchFile;
use super::steps::step;
use super::tokens::{Placed, Token, shorten};
use super::values::{Value, distribution};

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
