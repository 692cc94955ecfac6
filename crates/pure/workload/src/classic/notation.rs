//! The notation of workloads on command lines: `NAME[:KEY=VALUE[,KEY=VALUE]...]`.

use std::fmt;

use thiserror::Error;
use virtbench_units::{format_bytes, format_duration_ns, parse_bytes, parse_duration_ns};

use crate::files::FileSpec;

use super::{
    CommandSpec, CpuKernel, CpuSpec, MemorySpec, Stores, SystemKernel, SystemSpec, Workload, WorkloadError,
    WorkloadSpec,
};

/// A text that is no workload.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum WorkloadSyntaxError {
    /// No such workload.
    #[error("{name:?} is no workload: there are {}", names())]
    Name {
        /// What was given.
        name: String,
    },
    /// No such key.
    #[error("{workload} has no {key:?}: it has {known}")]
    Key {
        workload: &'static str,
        /// What was given.
        key: String,
        /// What there is.
        known: String,
    },
    /// A value that cannot be read.
    #[error("{key}={value}: {why}")]
    Value {
        key: String,
        /// What was given.
        value: String,
        /// What is wrong.
        why: String,
    },
    /// A program whose words cannot be told.
    #[error(
        "{why}: a program is written command[:KEY=VALUE,...] -- PROGRAM WORDS, as in 'command:runs=3 -- make -j4'"
    )]
    Command {
        /// What is wrong.
        why: &'static str,
    },
    /// It can be read, but makes no sense.
    #[error(transparent)]
    Nonsense(#[from] WorkloadError),
}

fn names() -> String {
    ["memory", "cpu", "system", COMMAND].into_iter().chain(FileSpec::NAMES).collect::<Vec<_>>().join(", ")
}

/// Keys that every workload has.
const COMMON: &str = "warm-ups, runs, time, ramp, limit, interval, seed, ballast, drop-caches, count";

/// How a program of the user's is named, and what its words stand behind.
const COMMAND: &str = "command";
const WORDS: &str = "-- ";

/// Whether a text names a program of the user's, whose words may look like anything.
#[must_use]
pub fn names_command(text: &str) -> bool {
    text.strip_prefix(COMMAND).is_some_and(|rest| rest.is_empty() || rest.starts_with([':', ' ']))
}

/// A program, with options before its words, which are quoted as for a shell.
fn command(text: &str) -> Result<WorkloadSpec, WorkloadSyntaxError> {
    let wrong = |why| WorkloadSyntaxError::Command { why };
    let (options, line) = text.split_once(WORDS).ok_or_else(|| wrong("no program is named"))?;
    let options = options.trim_start_matches(COMMAND).trim().trim_start_matches(':');
    let words = shlex::split(line).ok_or_else(|| wrong("a quotation mark has no end"))?;
    with_options(WorkloadSpec::new(Workload::Command(CommandSpec::new(words))), options)
}

/// Reads a workload such as `memory`, `memory:threads=2,stores=regular`,
/// `cpu:kernels=sha+fft,kernel=500ms,ballast=64MiB` or `command:runs=3 -- make -j4`, and validates it.
///
/// # Errors
/// No such workload or key, a value that cannot be read, or one outside its limits.
pub fn parse_workload(text: &str) -> Result<WorkloadSpec, WorkloadSyntaxError> {
    if names_command(text) {
        return command(text);
    }
    let (name, options) = text.split_once(':').unwrap_or((text, ""));
    let workload = match name.trim() {
        "memory" => Workload::Memory(MemorySpec::default()),
        "cpu" => Workload::Cpu(CpuSpec::default()),
        "system" => Workload::System(SystemSpec::default()),
        name => {
            let files = FileSpec::named(name).map(Workload::Files);
            files.ok_or_else(|| WorkloadSyntaxError::Name { name: name.to_owned() })?
        }
    };
    with_options(WorkloadSpec::new(workload), options)
}

/// The workload with these options, `KEY=VALUE[,KEY=VALUE]...`, validated.
///
/// # Errors
/// No such key, a value that cannot be read, or one outside its limits.
pub fn with_options(mut spec: WorkloadSpec, options: &str) -> Result<WorkloadSpec, WorkloadSyntaxError> {
    for option in options.split(',').map(str::trim).filter(|option| !option.is_empty()) {
        let (key, value) = option.split_once('=').unwrap_or((option, ""));
        set(&mut spec, key.trim(), value.trim())?;
    }
    spec.validate()?;
    Ok(spec)
}

/// Sets one option: one of its own, or one that every workload has.
fn set(spec: &mut WorkloadSpec, key: &str, value: &str) -> Result<(), WorkloadSyntaxError> {
    let workload = spec.workload.name();
    let (known, own) = match &mut spec.workload {
        Workload::Memory(memory) => (MEMORY.to_owned(), set_memory(memory, key, value)),
        Workload::Cpu(cpu) => (CPU.to_owned(), set_cpu(cpu, key, value)),
        Workload::Files(files) => (files.keys(), files.set(key, value)),
        Workload::System(system) => (SYSTEM.to_owned(), set_system(system, key, value)),
        Workload::Command(_) => (String::new(), None),
    };
    let done = own.or_else(|| set_common(spec, key, value)).ok_or_else(|| WorkloadSyntaxError::Key {
        workload,
        key: key.to_owned(),
        known: format!("{known}, {COMMON}"),
    })?;
    done.map_err(|why| WorkloadSyntaxError::Value { key: key.to_owned(), value: value.to_owned(), why })
}

/// Nothing where there is no such key, else whether the value could be read.
type Set = Option<Result<(), String>>;

const MEMORY: &str = "threads, array, kernel, stores";

fn set_memory(spec: &mut MemorySpec, key: &str, value: &str) -> Set {
    Some(match key {
        "threads" => put(&mut spec.threads, value.parse()),
        "array" => put(&mut spec.array_bytes, parse_bytes(value)),
        "kernel" => put(&mut spec.kernel_ns, parse_duration_ns(value)),
        "stores" => put(&mut spec.stores, named(value, &STORES)),
        _ => return None,
    })
}

const STORES: [(&str, Stores); 3] =
    [("regular", Stores::Regular), ("non-temporal", Stores::NonTemporal), ("both", Stores::Both)];

const CPU: &str = "threads, kernel, kernels";

fn set_cpu(spec: &mut CpuSpec, key: &str, value: &str) -> Set {
    Some(match key {
        "threads" => put(&mut spec.threads, value.parse()),
        "kernel" => put(&mut spec.kernel_ns, parse_duration_ns(value)),
        "kernels" => {
            let known = CpuKernel::ALL.map(|kernel| (kernel.name(), kernel));
            put(&mut spec.kernels, value.split('+').map(|name| named(name, &known)).collect())
        }
        _ => return None,
    })
}

const SYSTEM: &str = "kernel, kernels";

fn set_system(spec: &mut SystemSpec, key: &str, value: &str) -> Set {
    Some(match key {
        "kernel" => put(&mut spec.kernel_ns, parse_duration_ns(value)),
        "kernels" => {
            let known = SystemKernel::ALL.map(|kernel| (kernel.name(), kernel));
            put(&mut spec.kernels, value.split('+').map(|name| named(name, &known)).collect())
        }
        _ => return None,
    })
}

fn set_common(spec: &mut WorkloadSpec, key: &str, value: &str) -> Set {
    Some(match key {
        "warm-ups" => put(&mut spec.warm_ups, value.parse()),
        "runs" => put(&mut spec.runs, value.parse()),
        "time" => put(&mut spec.time_ns, parse_duration_ns(value).map(Some)),
        "ramp" => put(&mut spec.ramp_ns, parse_duration_ns(value)),
        "limit" => put(&mut spec.limit_ns, parse_duration_ns(value)),
        "interval" => put(&mut spec.interval_ns, parse_duration_ns(value)),
        "seed" => put(&mut spec.seed, value.parse()),
        "ballast" => put(&mut spec.ballast_bytes, parse_bytes(value)),
        "drop-caches" => put(&mut spec.drop_caches, named(value, &YES)),
        "sample" => put(&mut spec.sample, named(value, &YES)),
        "count" => put(&mut spec.count, named(value, &YES)),
        _ => return None,
    })
}

const YES: [(&str, bool); 3] = [("yes", true), ("no", false), ("", true)];

fn put<T, E: fmt::Display>(place: &mut T, value: Result<T, E>) -> Result<(), String> {
    *place = value.map_err(|error| error.to_string())?;
    Ok(())
}

fn named<T: Copy>(text: &str, known: &[(&str, T)]) -> Result<T, String> {
    let found = known.iter().find(|(name, _)| *name == text.trim());
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).filter(|name| !name.is_empty()).collect();
        format!("{:?} is none of {}", text.trim(), names.join(", "))
    })
}

/// Writes what differs from the defaults, so that [`parse_workload`] gives it back.
impl fmt::Display for WorkloadSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut options = match &self.workload {
            Workload::Memory(memory) => memory_options(memory),
            Workload::Cpu(cpu) => cpu_options(cpu),
            Workload::Files(files) => files.options(),
            Workload::System(system) => system_options(system),
            Workload::Command(_) => Vec::new(),
        };
        let mut option = |key: &'static str, differs: bool, value: String| {
            if differs {
                options.push((key, value));
            }
        };
        let usual = Self::new(self.workload.clone());
        option("warm-ups", self.warm_ups != 0, self.warm_ups.to_string());
        option("runs", self.runs != usual.runs, self.runs.to_string());
        option("time", self.time_ns.is_some(), format_duration_ns(self.time_ns.unwrap_or(0)));
        option("ramp", self.ramp_ns != usual.ramp_ns, format_duration_ns(self.ramp_ns));
        option("limit", self.limit_ns != usual.limit_ns, format_duration_ns(self.limit_ns));
        option("interval", self.interval_ns != usual.interval_ns, format_duration_ns(self.interval_ns));
        option("seed", self.seed != usual.seed, self.seed.to_string());
        option("ballast", self.ballast_bytes != 0, format_bytes(self.ballast_bytes));
        option("drop-caches", self.drop_caches, "yes".to_owned());
        option("sample", self.sample, "yes".to_owned());
        option("count", self.count, "yes".to_owned());
        f.write_str(self.workload.name())?;
        for (index, (key, value)) in options.iter().enumerate() {
            // A space inside a value is for people; the notation does without.
            write!(f, "{}{key}={}", if index == 0 { ':' } else { ',' }, value.replace(' ', ""))?;
        }
        match &self.workload {
            Workload::Command(command) => write!(f, " {WORDS}{}", in_one_line(&command.words)),
            _ => Ok(()),
        }
    }
}

/// Words of a program as they are given back by [`parse_workload`]. None of them has a zero in it.
fn in_one_line(words: &[String]) -> String {
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
}

fn memory_options(spec: &MemorySpec) -> Vec<(&'static str, String)> {
    let usual = MemorySpec::default();
    let stores = STORES.iter().find(|(_, stores)| *stores == spec.stores).map_or("both", |(name, _)| name);
    let all = [
        ("threads", spec.threads != usual.threads, spec.threads.to_string()),
        ("array", spec.array_bytes != usual.array_bytes, format_bytes(spec.array_bytes)),
        ("kernel", spec.kernel_ns != usual.kernel_ns, format_duration_ns(spec.kernel_ns)),
        ("stores", spec.stores != usual.stores, stores.to_owned()),
    ];
    kept(all)
}

fn cpu_options(spec: &CpuSpec) -> Vec<(&'static str, String)> {
    let usual = CpuSpec::default();
    let kernels: Vec<&str> = spec.kernels.iter().map(|kernel| kernel.name()).collect();
    let all = [
        ("threads", spec.threads != usual.threads, spec.threads.to_string()),
        ("kernel", spec.kernel_ns != usual.kernel_ns, format_duration_ns(spec.kernel_ns)),
        ("kernels", spec.kernels != usual.kernels, kernels.join("+")),
    ];
    kept(all)
}

fn system_options(spec: &SystemSpec) -> Vec<(&'static str, String)> {
    let usual = SystemSpec::default();
    let kernels: Vec<&str> = spec.kernels.iter().map(|kernel| kernel.name()).collect();
    kept([
        ("kernel", spec.kernel_ns != usual.kernel_ns, format_duration_ns(spec.kernel_ns)),
        ("kernels", spec.kernels != usual.kernels, kernels.join("+")),
    ])
}

fn kept<const N: usize>(options: [(&'static str, bool, String); N]) -> Vec<(&'static str, String)> {
    options.into_iter().filter(|(_, differs, _)| *differs).map(|(key, _, value)| (key, value)).collect()
}

#[cfg(test)]
#[path = "notation_tests.rs"]
mod tests;
