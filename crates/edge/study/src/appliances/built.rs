//! Recipes by name, an appliance's root and its prepared data, which every start begins with; and data that are filled by the
//! commands of another appliance, such as a web application that makes its tables.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use virtbench_appliance::{Appliance, BuildOptions, DataSet, DataSets, Store, build};
use virtbench_lab::{ApplianceSpec, Network, NetworkNamespace, Place, RunningAppliance, TierLinks};
use virtbench_recipe::{Recipe, supplied};
use virtbench_record::ApplianceRoot;

use crate::runner::progress::Progress;
use crate::study_error::StudyError;
use crate::user_files::{read_user_file, user_folder};

/// How long a root may take to be built, and data to be prepared.
const LIMIT: Duration = Duration::from_secs(3600);

/// How long a command that prepares data may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(600);

type Cause = Box<dyn Error + Send + Sync>;

/// A root, and where data sets of it are kept.
#[derive(Debug)]
pub struct BuiltAppliance {
    store: Store,
    pub(crate) appliance: Appliance,
}

impl BuiltAppliance {
    /// Finds the root of a recipe, or builds it.
    ///
    /// # Errors
    /// It cannot be built here, or it was to stop.
    pub fn find(recipe: &Recipe, progress: &mut Progress<'_>) -> Result<Self, StudyError> {
        let store = Store::of_user();
        let options = BuildOptions { update: false, limit: LIMIT, stop: progress.stop };
        let mut phase = None;
        let built = build(&store, recipe, options, &mut |now| {
            if phase != Some(now.phase) {
                phase = Some(now.phase);
                progress.doing(&format!("building the appliance {}: {}", recipe.name, now.phase.name()));
            }
        })?;
        Ok(Self { store, appliance: built.appliance })
    }

    /// Digest of the root, in hexadecimal digits.
    #[must_use]
    pub fn root_digest(&self) -> &str {
        &self.appliance.manifest.digest
    }

    /// The least memory that it needs, in bytes.
    #[must_use]
    pub fn least_memory(&self) -> u64 {
        self.appliance.recipe.memory
    }

    /// What it is made of.
    #[must_use]
    pub fn root(&self) -> ApplianceRoot {
        let manifest = &self.appliance.manifest;
        ApplianceRoot {
            name: manifest.name.clone(),
            digest: manifest.digest.clone(),
            image_digest: manifest.image_digest.clone(),
            suite: manifest.suite.clone(),
            packages: manifest.packages.clone(),
        }
    }

    /// The data set `key`, which is made natively, with so many processors, where there is none: the recipe's commands, then its
    /// services, then `load`.
    pub(crate) fn data(
        &self,
        key: &str,
        processors: u32,
        progress: &mut Progress<'_>,
        load: impl FnOnce(&mut RunningAppliance) -> Result<(), Cause>,
    ) -> Result<DataSet, StudyError> {
        let sets = DataSets::new(&self.store, &self.appliance);
        Ok(sets.get(key, LIMIT, progress.stop, |image| self.fill(image, processors, load))?)
    }

    fn fill(
        &self,
        image: &Path,
        processors: u32,
        load: impl FnOnce(&mut RunningAppliance) -> Result<(), Cause>,
    ) -> Result<(), Cause> {
        let recipe = &self.appliance.recipe;
        let spec = ApplianceSpec {
            name: format!("{} (preparing)", recipe.name),
            recipe: recipe.clone(),
            root: self.appliance.image(),
            data: Some(image.to_owned()),
            tiers: TierLinks::default(),
            vcpus: processors,
            memory_bytes: recipe.memory,
            network: Network::Namespace(NetworkNamespace::new()?),
            processors: Vec::new(),
            place: Place::Native,
        };
        let mut appliance = RunningAppliance::open(&spec)?;
        appliance.prepare_data(COMMAND_LIMIT)?;
        appliance.start_services()?;
        load(&mut appliance)?;
        appliance.stop()?;
        Ok(())
    }
}

/// An appliance whose commands fill the data of another one.
#[derive(Debug)]
pub(crate) struct Preparing {
    /// The name by which it reaches the other one.
    host: String,
    recipe: Recipe,
    root: PathBuf,
    digest: String,
}

impl Preparing {
    /// One of this root, which reaches the other one as `host`.
    pub(crate) fn new(built: &BuiltAppliance, host: &str) -> Self {
        // Its own data are of no use here, so that it needs none.
        let recipe = Recipe { data: None, ..built.appliance.recipe.clone() };
        let (root, digest) = (built.appliance.image(), built.root_digest().to_owned());
        Self { host: host.to_owned(), recipe, root, digest }
    }

    /// What the data depend on beside the commands.
    pub(crate) fn key(&self) -> String {
        format!("{} of {} at {}", self.recipe.name, self.digest, self.host)
    }

    /// Runs commands, as root, in its root on the network of the other one, which runs natively. No service of its own is
    /// started, and nothing of it is left.
    ///
    /// # Errors
    /// It does not start, or a command fails, with what it said.
    pub(crate) fn fill(
        &self,
        other: &RunningAppliance,
        commands: &[Vec<String>],
        limit: Duration,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let mut tiers = TierLinks::default();
        let address = other.shared_address().ok_or("the appliance shares no network: a defect")?;
        tiers.name(&self.host, address);
        let spec = ApplianceSpec {
            name: format!("{} (preparing {})", self.recipe.name, other.name()),
            recipe: self.recipe.clone(),
            root: self.root.clone(),
            data: None,
            vcpus: 1,
            memory_bytes: self.recipe.memory,
            network: other.network().clone(),
            tiers,
            processors: Vec::new(),
            place: Place::Native,
        };
        let mut appliance = RunningAppliance::open(&spec)?;
        for words in commands {
            let end = appliance.run(words, "root", limit)?;
            if let Some(trouble) = end.trouble() {
                let words = words.join(" ");
                return Err(format!("prepare: {words} {trouble}: {}", end.output).into());
            }
        }
        Ok(())
    }
}

/// A recipe, and where it stands.
#[derive(Debug)]
pub struct FoundRecipe {
    /// The recipe.
    pub recipe: Recipe,
    /// Its file; none for one that comes with virtbench.
    pub file: Option<PathBuf>,
}

/// The recipe of this name, or in the file of this name.
///
/// # Errors
/// There is none, or it cannot be used.
pub fn find_recipe(name: &str) -> Result<FoundRecipe, StudyError> {
    if is_file(name) {
        return read(Path::new(name));
    }
    let of_user = folder().map(|folder| folder.join(format!("{name}.toml")));
    if let Some(path) = of_user.filter(|path| path.exists()) {
        return read(&path);
    }
    let supplied = supplied::find(name).ok_or_else(|| no_recipe(name))?;
    supplied.recipe().map(|recipe| FoundRecipe { recipe, file: None }).map_err(StudyError::input)
}

/// What there is instead, with the user's files that cannot be used: the wanted one may be among them.
fn no_recipe(name: &str) -> StudyError {
    let mut left_out = String::new();
    let known = all_recipes(&mut |error| left_out += &format!("\nleft out: {error}"));
    let known: Vec<String> = known.into_iter().map(|found| found.recipe.name).collect();
    let here =
        folder().map_or_else(|| "~/.config/virtbench/appliances".into(), |it| it.display().to_string());
    StudyError::input(format!(
        "there is no recipe {name}: choose {}, name a file, or put {name}.toml into {here}{left_out}",
        known.join(", ")
    ))
}

/// The recipe that a study's file names: a recipe's file is looked for beside it.
///
/// # Errors
/// As [`find_recipe`].
pub(crate) fn find_recipe_beside(study: &Path, name: &str) -> Result<FoundRecipe, StudyError> {
    match study.parent().filter(|_| is_file(name) && Path::new(name).is_relative()) {
        Some(folder) => read(&folder.join(name)),
        None => find_recipe(name),
    }
}

/// All that have a name; `left_out` is told why a file cannot be used.
pub fn all_recipes(left_out: &mut dyn FnMut(&StudyError)) -> Vec<FoundRecipe> {
    let mut found: Vec<FoundRecipe> = Vec::new();
    let entries = folder().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    for path in
        entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|it| it == "toml"))
    {
        match read(&path) {
            Ok(one) => found.push(one),
            Err(error) => left_out(&error),
        }
    }
    for one in supplied::ALL {
        if let Ok(recipe) = one.recipe()
            && found.iter().all(|other| other.recipe.name != recipe.name)
        {
            found.push(FoundRecipe { recipe, file: None });
        }
    }
    found.sort_by(|a, b| a.recipe.name.cmp(&b.recipe.name));
    found
}

fn is_file(name: &str) -> bool {
    name.contains('/') || Path::new(name).extension().is_some_and(|ending| ending == "toml")
}

fn folder() -> Option<PathBuf> {
    user_folder("XDG_CONFIG_HOME", ".config").map(|folder| folder.join("virtbench/appliances"))
}

fn read(path: &Path) -> Result<FoundRecipe, StudyError> {
    let wrong = |why: String| StudyError::input(format!("{}: {why}", path.display()));
    let text = read_user_file(path).map_err(wrong)?;
    let recipe = Recipe::parse(&text).map_err(|error| wrong(error.to_string()))?;
    Ok(FoundRecipe { recipe, file: Some(path.to_owned()) })
}
