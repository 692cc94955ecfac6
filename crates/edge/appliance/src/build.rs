//! Builds a root, or finds the one that was built, and says how far it is.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use virtbench_lab::{CommandError, run_command_followed};
use virtbench_recipe::{Manifest, Recipe};

use crate::apt::{Apt, Resolved};
use crate::build_folder::BuildFolder;
use crate::error::ApplianceError;
use crate::host::{Distribution, plain_command, require_programs};
use crate::lock::Lock;
use crate::room::require_room;
use crate::store::{
    Appliance, BUILDER, IMAGE, MANIFEST, RECIPE, Store, digest_of, file_digest, recipe_digest,
};
use crate::world::World;

/// A tree and its image, of what packages say they take.
const COPIES: u64 = 2;

/// Lists of packages and the file system's own, in bytes.
const SLACK: u64 = 128 << 20;

/// Lines of a failed build that are told.
const LAST_LINES: usize = 4;

/// How to build.
#[derive(Debug, Clone, Copy)]
pub struct BuildOptions<'a> {
    /// Look for newer packages, also where a root is built already.
    pub update: bool,
    /// How long all of it may take.
    pub limit: Duration,
    /// Ends it, with nothing left.
    pub stop: &'a AtomicBool,
}

/// What came of it.
#[derive(Debug)]
pub struct Built {
    /// The appliance.
    pub appliance: Appliance,
    /// Whether it was built now, and not found.
    pub is_new: bool,
}

/// The root that this recipe describes: the newest that was built of it, else, or with `update` where packages are newer, a new
/// one. `told` hears how far it is.
///
/// A root stays valid for its recipe until somebody asks for newer packages, so that what was built needs no network and
/// does not change between two runs.
///
/// # Errors
/// The recipe's packages cannot be had, something is missing here, or it was stopped. Nothing is left of it but the packages
/// that were fetched, and a log.
pub fn build(
    store: &Store,
    recipe: &Recipe,
    options: BuildOptions<'_>,
    told: &mut dyn FnMut(Progress),
) -> Result<Built, ApplianceError> {
    let cached = || store.find(recipe).map(|found| found.filter(|_| !options.update));
    if let Some(appliance) = cached()? {
        return Ok(Built { appliance, is_new: false });
    }
    let begun = Instant::now();
    let distribution = Distribution::of_host()?;
    require_programs()?;
    let world = World::find(options.stop)?;
    let _lock = lock(&store.lock(&recipe.name), &recipe.name, options, told)?;
    // The one that was waited for may have built it.
    if let Some(appliance) = cached()? {
        return Ok(Built { appliance, is_new: false });
    }
    let folder = BuildFolder::make(store.building().join(&recipe.name), world)?;
    let packages = fetch(store, recipe, &distribution, options, told)?;
    let digest = digest_of(&(BUILDER, recipe_digest(recipe), &distribution.suite, &packages.resolved.debs));
    let place = store.root_folder(&recipe.name, &digest);
    if place.join(MANIFEST).exists() {
        let appliance = Appliance { recipe: recipe.clone(), ..Appliance::open(&place)? };
        return Ok(Built { appliance, is_new: false });
    }
    folder.fill(recipe, &packages.resolved.debs)?;
    let what = Making { store, recipe, distribution: &distribution, packages: &packages, digest: &digest };
    what.run(&folder, world, options, told)?;
    let manifest = what.manifest(&folder, begun)?;
    keep(&folder, &place, recipe, &manifest)?;
    Ok(Built { appliance: Appliance { recipe: recipe.clone(), ..Appliance::open(&place)? }, is_new: true })
}

fn lock(
    path: &Path,
    name: &str,
    options: BuildOptions<'_>,
    told: &mut dyn FnMut(Progress),
) -> Result<Lock, ApplianceError> {
    let waiting = &mut |holder: &str| {
        told(Progress { detail: format!("for process {holder}"), ..Progress::of(Phase::Waiting) });
    };
    Lock::take(path, name, options.limit, options.stop, waiting)
}

/// The packages of a root, which are here.
struct Packages<'a> {
    apt: Apt<'a>,
    resolved: Resolved,
}

/// Finds out which packages are needed, and fetches them.
fn fetch<'a>(
    store: &Store,
    recipe: &Recipe,
    distribution: &Distribution,
    options: BuildOptions<'a>,
    told: &mut dyn FnMut(Progress),
) -> Result<Packages<'a>, ApplianceError> {
    let _lock = lock(&store.packages_lock(), "the archive of packages", options, told)?;
    let apt = Apt::set_up(&store.packages(), distribution, options.limit, options.stop)?;
    let mut is_fresh = options.update || !apt.has_lists();
    if is_fresh {
        require_room(&apt.folder, "the list of packages", SLACK)?;
        told(Progress::of(Phase::Lists));
        apt.update()?;
    }
    loop {
        told(Progress::of(Phase::Resolving));
        let resolved = apt.resolve(&recipe.packages)?;
        let needed = resolved.installed_bytes * COPIES + apt.missing_bytes(&resolved) + SLACK;
        require_room(store.folder(), &format!("the root of {}", recipe.name), needed)?;
        if apt.missing_bytes(&resolved) == 0 {
            return Ok(Packages { apt, resolved });
        }
        match apt.download(&recipe.packages, &mut |share, what| {
            let share = Some(share);
            told(Progress { phase: Phase::Downloading, share, detail: what.to_owned() });
        }) {
            Err(ApplianceError::Outdated) if !is_fresh => {
                is_fresh = true;
                told(Progress::of(Phase::Lists));
                apt.update()?;
            }
            done => return done.map(|()| Packages { apt, resolved }),
        }
    }
}

struct Making<'a> {
    store: &'a Store,
    recipe: &'a Recipe,
    distribution: &'a Distribution,
    packages: &'a Packages<'a>,
    digest: &'a str,
}

impl Making<'_> {
    fn run(
        &self,
        folder: &BuildFolder,
        world: World,
        options: BuildOptions<'_>,
        told: &mut dyn FnMut(Progress),
    ) -> Result<(), ApplianceError> {
        let command = self.command(folder, world)?;
        let path = self.store.log(&self.recipe.name);
        let mut log = File::create(&path).map_err(ApplianceError::file("write", &path))?;
        let mut reader = Reader::new(self.packages.resolved.debs.len());
        let mut lines = Vec::new();
        told(Progress::of(Phase::Unpacking));
        let done = run_command_followed(command, "mmdebstrap", options.limit, options.stop, &mut |line| {
            // A log that cannot be written does not make the root worse.
            let _ = writeln!(log, "{line}");
            if let Some(now) = reader.read(line) {
                told(now);
            }
            lines.push(line.to_owned());
        });
        match done {
            Err(CommandError::Failed { .. }) => {
                Err(ApplianceError::Build { what: self.what_failed(&lines), said: last(&lines), log: path })
            }
            Err(CommandError::TooLong { what, limit }) => {
                Err(ApplianceError::TooLong { what, limit, log: path })
            }
            done => Ok(done?),
        }
    }

    fn command(&self, folder: &BuildFolder, world: World) -> Result<Command, ApplianceError> {
        let mut command = world.command("sh");
        command.arg(folder.script()).arg("main").args(self.packages.apt.sources()?);
        let data = self.recipe.data.as_ref().map(|data| format!("{}:{}", data.user, data.folder));
        let id = |at: usize| {
            let part = |from: usize, to: usize| &self.digest[at + from..at + to];
            format!("{}-{}-4{}-8{}-{}", part(0, 8), part(8, 12), part(12, 15), part(15, 18), part(18, 30))
        };
        command
            .env("VIRTBENCH_BUILD", folder.path())
            .env("VIRTBENCH_APT", &self.packages.apt.folder)
            .env("VIRTBENCH_SUITE", &self.distribution.suite)
            .env("VIRTBENCH_ARCHITECTURE", &self.distribution.architecture)
            .env("VIRTBENCH_PACKAGES", self.recipe.packages.join(","))
            .env("VIRTBENCH_NAME", &self.recipe.name)
            .env("VIRTBENCH_DATA", data.unwrap_or_default())
            .env("VIRTBENCH_UUID", id(0))
            .env("VIRTBENCH_HASH_SEED", id(30))
            .env("DEBIAN_FRONTEND", "noninteractive")
            .env_remove("TMPDIR")
            .current_dir("/");
        Ok(command)
    }

    /// What of the recipe it was, if the script says so.
    fn what_failed(&self, lines: &[String]) -> String {
        let part = lines.iter().rev().find_map(|line| line.strip_prefix("virtbench-failed: "));
        part.map_or_else(
            || format!("building {}", self.recipe.name),
            |part| format!("{part}, of {}", self.recipe.name),
        )
    }

    fn manifest(&self, folder: &BuildFolder, begun: Instant) -> Result<Manifest, ApplianceError> {
        let image = folder.path().join(IMAGE);
        let facts = fs::metadata(&image).map_err(ApplianceError::file("read", &image))?;
        let listed = folder.read("packages")?;
        let packages: BTreeMap<String, String> = listed
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(name, version)| (name.to_owned(), version.to_owned()))
            .collect();
        let digest = file_digest(&image).map_err(ApplianceError::file("read", &image))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Manifest {
            name: self.recipe.name.clone(),
            recipe_digest: recipe_digest(self.recipe),
            digest: self.digest.to_owned(),
            suite: self.distribution.suite.clone(),
            architecture: self.distribution.architecture.clone(),
            packages,
            image_digest: digest,
            image_bytes: facts.len(),
            disk_bytes: facts.blocks() * 512,
            built_unix_s: now.as_secs(),
            build_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            mmdebstrap: version("mmdebstrap", "--version"),
            mke2fs: version("mke2fs", "-V"),
            builder: BUILDER,
        })
    }
}

/// The end of what a failed build said, without what mmdebstrap says of its hooks.
fn last(lines: &[String]) -> String {
    let of_use = |line: &&String| {
        !line.trim().is_empty()
            && !line.starts_with("virtbench-failed: ")
            && !["I: ", "W: ", "E: run_chroot failed", "E: setup failed", "Processing triggers"]
                .iter()
                .any(|start| line.starts_with(start))
    };
    let of_use: Vec<&str> = lines.iter().filter(of_use).map(String::as_str).collect();
    of_use[of_use.len().saturating_sub(LAST_LINES)..].join("; ")
}

/// What a program says first about its version; `mke2fs 1.47.0 (5-Feb-2023)` gives `1.47.0`.
fn version(program: &str, option: &str) -> String {
    let Ok(output) = plain_command(program).arg(option).output() else { return String::new() };
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let first = said.lines().next().unwrap_or_default();
    first
        .split(' ')
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        .unwrap_or_default()
        .to_owned()
}

/// Gives the root its place, whole.
fn keep(
    folder: &BuildFolder,
    place: &Path,
    recipe: &Recipe,
    manifest: &Manifest,
) -> Result<(), ApplianceError> {
    let whole = folder.path().join("whole");
    fs::create_dir(&whole).map_err(ApplianceError::file("make", &whole))?;
    let image = whole.join(IMAGE);
    fs::rename(folder.path().join(IMAGE), &image).map_err(ApplianceError::file("rename", &image))?;
    fs::set_permissions(&image, fs::Permissions::from_mode(0o444))
        .map_err(ApplianceError::file("make read-only", &image))?;
    let write = |name: &str, json: serde_json::Result<Vec<u8>>| {
        let path = whole.join(name);
        let written = json.map_err(std::io::Error::from).and_then(|json| fs::write(&path, json));
        written.map_err(ApplianceError::file("write", &path))
    };
    write(MANIFEST, serde_json::to_vec_pretty(manifest))?;
    write(RECIPE, serde_json::to_vec_pretty(recipe))?;
    if let Some(roots) = place.parent() {
        fs::create_dir_all(roots).map_err(ApplianceError::file("make", roots))?;
    }
    fs::rename(&whole, place).map_err(ApplianceError::file("rename", place))
}

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Waiting for another build.
    Waiting,
    /// Fetching lists of packages.
    Lists,
    /// Finding out which packages are needed.
    Resolving,
    /// Fetching packages.
    Downloading,
    /// Unpacking those that the distribution does not work without.
    Unpacking,
    /// Installing and configuring packages.
    Configuring,
    /// Putting files, users and scripts of the recipe into it.
    Finishing,
    /// Making the image.
    Image,
}

impl Phase {
    /// Its name, for people and programs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Lists => "package lists",
            Self::Resolving => "resolving",
            Self::Downloading => "downloading",
            Self::Unpacking => "unpacking",
            Self::Configuring => "configuring",
            Self::Finishing => "finishing",
            Self::Image => "image",
        }
    }
}

/// How far a build is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// What is being done.
    pub phase: Phase,
    /// How much of it is done, from 0 to 1, where that is known.
    pub share: Option<f64>,
    /// With what.
    pub detail: String,
}

impl Progress {
    pub(crate) fn of(phase: Phase) -> Self {
        Self { phase, share: None, detail: String::new() }
    }
}

/// Reads a build's progress from what its programs say.
#[derive(Debug)]
pub(crate) struct Reader {
    phase: Phase,
    packages: usize,
    configured: usize,
}

impl Reader {
    /// Of a build of so many packages.
    pub fn new(packages: usize) -> Self {
        Self { phase: Phase::Unpacking, packages, configured: 0 }
    }

    /// What this line tells.
    pub fn read(&mut self, line: &str) -> Option<Progress> {
        let phase = match line {
            "I: extracting archives..." => Some(Phase::Unpacking),
            "I: installing essential packages..." => Some(Phase::Configuring),
            "virtbench: finishing" => Some(Phase::Finishing),
            "virtbench: image" => Some(Phase::Image),
            _ => None,
        };
        if let Some(phase) = phase {
            self.phase = phase;
            return Some(Progress::of(phase));
        }
        let package = line.strip_prefix("Setting up ")?.split([' ', ':']).next()?;
        self.configured += 1;
        let share = self.configured as f64 / self.packages.max(1) as f64;
        Some(Progress { phase: self.phase, share: Some(share.min(1.0)), detail: package.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_and_packages_are_read_from_what_is_said() {
        let mut reader = Reader::new(4);
        let read =
            |reader: &mut Reader, line: &str| reader.read(line).map(|now| (now.phase, now.share, now.detail));
        let phase = read(&mut reader, "I: installing essential packages...");
        assert_eq!(phase, Some((Phase::Configuring, None, String::new())));
        let package = read(&mut reader, "Setting up libc6:amd64 (2.36-9) ...");
        assert_eq!(package, Some((Phase::Configuring, Some(0.25), "libc6".into())));
        assert_eq!(read(&mut reader, "Unpacking passwd (1:4.13) ..."), None);
        assert_eq!(read(&mut reader, "virtbench: image").map(|now| now.0), Some(Phase::Image));
    }
}
