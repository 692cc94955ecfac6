//! The folder in which a root is made: what `build.sh` reads there.

use std::fs;
use std::path::{Path, PathBuf};

use virtbench_recipe::{Recipe, RecipeFile};

use crate::apt::Deb;
use crate::error::ApplianceError;
use crate::host::plain_command;
use crate::world::World;

const SCRIPT: &str = include_str!("build.sh");
/// What every root does without.
const EXCLUDED: [&str; 9] = [
    "/usr/share/doc/*",
    "/usr/share/man/*",
    "/usr/share/info/*",
    "/usr/share/locale/*",
    "/usr/share/lintian/*",
    "/usr/share/doc-base/*",
    "/usr/share/gnome/help/*",
    "/usr/share/bug/*",
    "/usr/share/groff/*",
];

/// Removed with everything in it when this is dropped.
#[derive(Debug)]
pub(crate) struct BuildFolder {
    path: PathBuf,
    world: World,
}

impl BuildFolder {
    /// An empty folder at `path`; what a build left there that was killed is removed. The caller holds the lock of its name.
    pub fn make(path: PathBuf, world: World) -> Result<Self, ApplianceError> {
        let own = Self { path, world };
        own.remove()?;
        fs::create_dir_all(&own.path).map_err(ApplianceError::file("make", &own.path))?;
        Ok(own)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The script.
    pub fn script(&self) -> PathBuf {
        self.path.join("build.sh")
    }

    /// Writes what the script reads.
    pub fn fill(&self, recipe: &Recipe, debs: &[Deb]) -> Result<(), ApplianceError> {
        self.write("build.sh", SCRIPT)?;
        self.write("debs", &lines(debs.iter().map(|deb| deb.file.clone())))?;
        let excluded = EXCLUDED.into_iter().chain(recipe.build.exclude.iter().map(String::as_str));
        let excluded: Vec<&str> = excluded.collect();
        self.write("exclude", &lines(excluded.iter()))?;
        let excluded = lines(excluded.iter().map(|pattern| format!("path-exclude={pattern}")));
        self.write("dpkg.cfg", &format!("force-unsafe-io\n{excluded}"))?;
        self.write("users", &lines(recipe.users.iter().map(|user| format!("{} {}", user.name, user.home))))?;
        for (folder, before) in [("before", true), ("after", false)] {
            self.put(folder, recipe.files.iter().filter(|file| file.before_packages == before))?;
        }
        let run = self.path.join("run");
        fs::create_dir(&run).map_err(ApplianceError::file("make", &run))?;
        for (index, script) in recipe.build.run.iter().enumerate() {
            self.write(&format!("run/{:03}", index + 1), script)?;
        }
        Ok(())
    }

    fn put<'a>(
        &self,
        folder: &str,
        files: impl Iterator<Item = &'a RecipeFile>,
    ) -> Result<(), ApplianceError> {
        let path = self.path.join(folder);
        fs::create_dir(&path).map_err(ApplianceError::file("make", &path))?;
        let mut list = Vec::new();
        for (number, file) in files.enumerate() {
            self.write(&format!("{folder}/{number}"), &file.text)?;
            list.push(format!("{number} {} {} {}", file.mode, file.owner, file.path));
        }
        self.write(&format!("{folder}/list"), &lines(list.iter()))
    }

    fn write(&self, name: &str, text: &str) -> Result<(), ApplianceError> {
        let path = self.path.join(name);
        fs::write(&path, text).map_err(ApplianceError::file("write", &path))
    }

    /// A file that the script has left.
    pub fn read(&self, name: &str) -> Result<String, ApplianceError> {
        let path = self.path.join(name);
        fs::read_to_string(&path).map_err(ApplianceError::file("read", &path))
    }

    /// Of a user's build most files belong to subordinate ids, which only the user's own namespaces may remove.
    fn remove(&self) -> Result<(), ApplianceError> {
        if !self.path.exists() {
            return Ok(());
        }
        let mut command = match self.world {
            World::OfRoot => plain_command("rm"),
            World::OfUser => self.world.command("rm"),
        };
        let removed = command.args(["-rf", "--one-file-system", "--"]).arg(&self.path).status();
        removed.map_err(ApplianceError::file("remove", &self.path))?;
        if self.path.exists() {
            let source = std::io::Error::other("something in it cannot be removed");
            return Err(ApplianceError::File { action: "remove", path: self.path.clone(), source });
        }
        Ok(())
    }
}

impl Drop for BuildFolder {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            // The next build of this recipe tries again.
            tracing::warn!("{error}");
        }
    }
}

fn lines<T: std::fmt::Display>(texts: impl Iterator<Item = T>) -> String {
    texts.map(|text| format!("{text}\n")).collect()
}
