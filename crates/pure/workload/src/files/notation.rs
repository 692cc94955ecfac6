//! Options of loads on files, as command lines write them.

use std::fmt::Display;

use virtbench_units::{format_bytes, format_duration_ns, parse_bytes, parse_duration_ns};

use super::{
    BonnieSpec, CacheControl, CharacterIo, FileLoad, FileSpec, IozoneSpec, IozoneTest, Pace, Personality,
};
use crate::arrivals::{Arrivals, Rate};

/// Keys that every load on files has.
const COMMON: &str = "run, cache, rate, arrivals, pace";

impl FileSpec {
    /// Names that stand for a load on files without a file of their own.
    pub(crate) const NAMES: [&'static str; 5] = ["bonnie", "iozone", "fileserver", "mailserver", "webserver"];

    /// The load of this name, with everything as it is when nobody says otherwise.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let load = match name {
            "bonnie" => FileLoad::Bonnie(BonnieSpec::new(0)),
            "iozone" => FileLoad::Iozone(IozoneSpec::new(0)),
            name => FileLoad::Model(Personality::find(name)?.model()),
        };
        Some(Self::new(load))
    }

    /// The keys it has, for messages.
    pub(crate) fn keys(&self) -> String {
        let own = match &self.load {
            FileLoad::Bonnie(_) => "size, bs, chars, threads, seeks, seek-writes, files, file-size",
            FileLoad::Iozone(_) => "size, bs, tests, stride, flush",
            FileLoad::Model(_) => "threads, files",
            FileLoad::Dbench(_) => "threads, client-rate",
        };
        format!("{own}, {COMMON}")
    }

    /// Sets one option; nothing where there is no such key, else whether its value could be read.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Option<Result<(), String>> {
        let own = match &mut self.load {
            FileLoad::Bonnie(bonnie) => set_bonnie(bonnie, key, value),
            FileLoad::Iozone(iozone) => set_iozone(iozone, key, value),
            FileLoad::Model(model) => match key {
                "threads" => Some(
                    number(value)
                        .and_then(|threads| model.set_threads(threads).map_err(|error| error.to_string())),
                ),
                "files" => Some(match (number(value), model.filesets.first_mut()) {
                    (Ok(files), Some(set)) => {
                        set.entries = files;
                        Ok(())
                    }
                    (result, _) => result.map(|_: u32| ()),
                }),
                _ => None,
            },
            FileLoad::Dbench(dbench) => match key {
                "threads" | "clients" => Some(number(value).map(|clients| dbench.clients = clients)),
                "client-rate" => Some(bytes(value).map(|rate| {
                    dbench.client_bytes_per_second = (rate > 0).then_some(rate as f64);
                })),
                _ => None,
            },
        };
        own.or_else(|| self.set_common(key, value))
    }

    fn set_common(&mut self, key: &str, value: &str) -> Option<Result<(), String>> {
        let usual = Pace { rate: Rate { per_second: 0.0, arrivals: Arrivals::Constant }, open: false };
        let pace = self.pace.unwrap_or(usual);
        Some(match key {
            "run" => parse_duration_ns(value).map_err(words).map(|run_ns| self.run_ns = run_ns),
            "cache" => choice(value, &CACHE).map(|cache| self.cache = cache),
            "rate" => number(value.trim_end_matches("/s")).map(|per_second| {
                self.pace = Some(Pace { rate: Rate { per_second, ..pace.rate }, ..pace });
            }),
            "arrivals" => choice(value, &ARRIVALS).map(|arrivals| {
                self.pace = Some(Pace { rate: Rate { arrivals, ..pace.rate }, ..pace });
            }),
            "pace" => choice(value, &[("open", true), ("limit", false)])
                .map(|open| self.pace = Some(Pace { open, ..pace })),
            _ => return None,
        })
    }

    /// What differs from the defaults, so that it can be read again. What a model's or a loadfile's own
    /// file says is not among it.
    pub(crate) fn options(&self) -> Vec<(&'static str, String)> {
        let mut options = match (&self.load, Self::named(self.load.name()).map(|usual| usual.load)) {
            (FileLoad::Bonnie(bonnie), Some(FileLoad::Bonnie(usual))) => bonnie_options(bonnie, &usual),
            (FileLoad::Iozone(iozone), Some(FileLoad::Iozone(usual))) => iozone_options(iozone, &usual),
            (FileLoad::Model(model), Some(FileLoad::Model(usual))) => {
                let entries = |sets: &[super::FileSet]| sets.first().map_or(0, |set| set.entries);
                let (files, usual_files) = (entries(&model.filesets), entries(&usual.filesets));
                kept(vec![
                    ("threads", model.threads() != usual.threads(), model.threads().to_string()),
                    ("files", files != usual_files, files.to_string()),
                ])
            }
            (load, _) => vec![("threads", load.threads().to_string())],
        };
        let usual = Self::new(self.load.clone());
        let mut more = vec![
            ("run", self.run_ns != usual.run_ns, format_duration_ns(self.run_ns)),
            ("cache", self.cache != usual.cache, name_of(self.cache, &CACHE)),
        ];
        if let Some(pace) = self.pace {
            let poisson = pace.rate.arrivals == Arrivals::Poisson;
            more.push(("rate", true, format!("{}/s", pace.rate.per_second)));
            more.push(("arrivals", poisson, name_of(pace.rate.arrivals, &ARRIVALS)));
            more.push(("pace", pace.open, "open".into()));
        }
        options.extend(kept(more));
        options
    }
}

const CACHE: [(&str, CacheControl); 3] =
    [("drop", CacheControl::Drop), ("keep", CacheControl::Keep), ("direct", CacheControl::Direct)];
const ARRIVALS: [(&str, Arrivals); 2] = [("constant", Arrivals::Constant), ("poisson", Arrivals::Poisson)];
const CHARACTERS: [(&str, Option<CharacterIo>); 3] =
    [("buffered", Some(CharacterIo::Buffered)), ("syscall", Some(CharacterIo::Syscall)), ("none", None)];

fn set_bonnie(spec: &mut BonnieSpec, key: &str, value: &str) -> Option<Result<(), String>> {
    Some(match key {
        "size" => bytes(value).map(|size| spec.file_bytes = size),
        "bs" => bytes(value).map(|size| spec.block_bytes = size),
        "chars" => choice(value, &CHARACTERS).map(|kind| spec.characters = kind),
        "threads" => number(value).map(|seekers| spec.seekers = seekers),
        "seeks" => number(value).map(|seeks| spec.seeks = seeks),
        "seek-writes" => number(value.trim_end_matches('%')).map(|percent| spec.seek_write_percent = percent),
        "files" => number(value).map(|files| spec.small_files = files),
        "file-size" => bytes(value).map(|size| spec.small_file_bytes = size),
        _ => return None,
    })
}

fn bonnie_options(spec: &BonnieSpec, usual: &BonnieSpec) -> Vec<(&'static str, String)> {
    kept(vec![
        ("size", spec.file_bytes != usual.file_bytes, format_bytes(spec.file_bytes)),
        ("bs", spec.block_bytes != usual.block_bytes, format_bytes(spec.block_bytes)),
        ("chars", spec.characters != usual.characters, name_of(spec.characters, &CHARACTERS)),
        ("threads", spec.seekers != usual.seekers, spec.seekers.to_string()),
        ("seeks", spec.seeks != usual.seeks, spec.seeks.to_string()),
        (
            "seek-writes",
            spec.seek_write_percent != usual.seek_write_percent,
            spec.seek_write_percent.to_string(),
        ),
        ("files", spec.small_files != usual.small_files, spec.small_files.to_string()),
        ("file-size", spec.small_file_bytes != usual.small_file_bytes, format_bytes(spec.small_file_bytes)),
    ])
}

fn set_iozone(spec: &mut IozoneSpec, key: &str, value: &str) -> Option<Result<(), String>> {
    let known = IozoneTest::ALL.map(|test| (test.name(), test));
    Some(match key {
        "size" => bytes(value).map(|size| spec.file_bytes = size),
        "bs" => value.split('+').map(bytes).collect::<Result<_, _>>().map(|sizes| spec.record_bytes = sizes),
        "tests" => value
            .split('+')
            .map(|name| choice(name, &known))
            .collect::<Result<_, _>>()
            .map(|tests| spec.tests = tests),
        "stride" => number(value).map(|records| spec.stride_records = records),
        "flush" => choice(value, &[("yes", true), ("no", false)]).map(|flush| spec.include_flush = flush),
        _ => return None,
    })
}

fn iozone_options(spec: &IozoneSpec, usual: &IozoneSpec) -> Vec<(&'static str, String)> {
    let sizes: Vec<String> = spec.record_bytes.iter().map(|size| format_bytes(*size)).collect();
    let tests: Vec<&str> = spec.tests.iter().map(|test| test.name()).collect();
    kept(vec![
        ("size", spec.file_bytes != usual.file_bytes, format_bytes(spec.file_bytes)),
        ("bs", spec.record_bytes != usual.record_bytes, sizes.join("+")),
        ("tests", spec.tests != usual.tests, tests.join("+")),
        ("stride", spec.stride_records != usual.stride_records, spec.stride_records.to_string()),
        ("flush", !spec.include_flush, "no".into()),
    ])
}

fn kept(options: Vec<(&'static str, bool, String)>) -> Vec<(&'static str, String)> {
    options.into_iter().filter(|(_, differs, _)| *differs).map(|(key, _, value)| (key, value)).collect()
}

fn words(error: impl Display) -> String {
    error.to_string()
}

fn bytes(text: &str) -> Result<u64, String> {
    parse_bytes(text).map_err(words)
}

fn number<T: std::str::FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(words)
}

fn choice<T: Copy>(text: &str, known: &[(&str, T)]) -> Result<T, String> {
    let found = known.iter().find(|(name, _)| *name == text.trim());
    let names = || known.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    found.map(|(_, value)| *value).ok_or_else(|| format!("it is none of {}", names()))
}

fn name_of<T: PartialEq>(value: T, known: &[(&str, T)]) -> String {
    known.iter().find(|(_, other)| *other == value).map_or_else(String::new, |(name, _)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use crate::classic::{Workload, parse_workload};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn loads_on_files_are_read_and_written() {
        for text in [
            "bonnie",
            "bonnie:size=1GiB,chars=syscall,threads=3,files=1024,cache=keep",
            "iozone:size=64MiB,bs=4KiB+1MiB,tests=read+backward-read,flush=no",
            "fileserver:threads=8,files=500,run=5s,rate=200/s,arrivals=poisson,pace=open",
            "mailserver:threads=2",
            "webserver:rate=0.5/s,runs=3",
        ] {
            let spec = parse_workload(text).unwrap();
            assert_eq!(spec.to_string(), text);
            assert_eq!(parse_workload(&spec.to_string()), Ok(spec));
        }
    }

    #[test]
    fn what_is_wrong_with_one_is_named() {
        let message = |text| parse_workload(text).unwrap_err().to_string();
        assert!(message("bonnie:tests=read").contains("chars"), "{}", message("bonnie:tests=read"));
        assert!(message("iozone:tests=read+x").contains("backward-read"));
        assert!(message("fileserver:rate=0/s").contains("rate=0"));
        assert!(message("fileserver:cache=direct").contains("cache=keep"));
        assert!(message("bonnie:rate=5/s").contains("rate"));
        assert!(message("fileserver:threads=5000").contains("1024"));
        assert!(message("fileserver:files=0").contains("entry"));
    }

    proptest! {
        #[test]
        fn what_is_written_of_them_can_be_read(
            name in prop::sample::select(FileSpec::NAMES.to_vec()),
            (threads, files, run) in (1u32..200, 1u32..10_000, 1u64..1_000_000),
            rate in prop::option::of((1u32..100_000, any::<bool>(), any::<bool>())),
            cache in prop::sample::select(vec![CacheControl::Drop, CacheControl::Keep]),
        ) {
            let mut spec = FileSpec::named(name).unwrap();
            spec.set("threads", &threads.to_string());
            spec.set("files", &files.to_string());
            spec.run_ns = run * 1_000_000;
            spec.cache = cache;
            if let (Some((rate, poisson, open)), FileLoad::Model(_)) = (rate, &spec.load) {
                let arrivals = if poisson { Arrivals::Poisson } else { Arrivals::Constant };
                spec.pace = Some(Pace { rate: Rate { per_second: f64::from(rate) / 8.0, arrivals }, open });
            }
            let spec = crate::classic::WorkloadSpec::new(Workload::Files(spec));
            prop_assert_eq!(parse_workload(&spec.to_string()), Ok(spec));
        }

        #[test]
        fn no_text_panics(text in "(bonnie|iozone|fileserver|webserver):[a-z=,+0-9/ -]{0,60}") {
            let _ = parse_workload(&text);
        }
    }
}
