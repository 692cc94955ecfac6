//! The desktop that a study starts many of.

use std::path::{Path, PathBuf};

use virtbench_recipe::{Recipe, ServicePlace, supplied};
use virtbench_record::ApplianceRoot;

use crate::appliances::built::BuiltAppliance;
use crate::runner::progress::Progress;
use crate::study_error::StudyError;

/// Where the recipes of desktops serve VNC, unless it is their VM's screen.
pub(super) const VNC_PORT: u16 = 5900;
/// Where the program inside the session listens.
pub(super) const SESSION_PORT: u16 = 5999;

/// A desktop's root.
#[derive(Debug)]
pub struct DesktopAppliance {
    pub(super) built: BuiltAppliance,
}

impl DesktopAppliance {
    /// Finds the root of a recipe, supplied or a file, for desktops in a place, or builds it.
    ///
    /// # Errors
    /// There is no such recipe, it is no desktop, or it cannot be built here.
    pub fn find(name: &str, place: ServicePlace, progress: &mut Progress<'_>) -> Result<Self, StudyError> {
        let recipe = recipe(name)?;
        let ports = recipe.at(place).ports();
        let is_shown = recipe.screen && place == ServicePlace::Vm;
        let wanted = if is_shown { &[SESSION_PORT][..] } else { &[VNC_PORT, SESSION_PORT] };
        if let Some(port) = wanted.iter().find(|port| !ports.contains(port)) {
            return Err(StudyError::input(format!(
                "the recipe {name} is no desktop: no service of it has the port {port} there; {VNC_PORT} serves VNC, {SESSION_PORT} the program \
                 inside the session (see the recipe desktop-small)"
            )));
        }
        if recipe.data.is_some() {
            return Err(StudyError::input(format!(
                "the recipe {name} has data of its own: each desktop begins with its root alone, so put documents into [[files]]"
            )));
        }
        Ok(Self { built: BuiltAppliance::find(&recipe, progress)? })
    }

    /// Digest of the root, in hexadecimal digits.
    #[must_use]
    pub fn root_digest(&self) -> &str {
        self.built.root_digest()
    }

    /// The recipe's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.built.appliance.recipe.name
    }

    /// Whether its VMs have a screen.
    #[must_use]
    pub fn has_screen(&self) -> bool {
        self.built.appliance.recipe.screen
    }

    /// The least memory that it needs, in bytes.
    #[must_use]
    pub fn least_memory(&self) -> u64 {
        self.built.least_memory()
    }

    /// What it is made of.
    pub(super) fn root(&self) -> ApplianceRoot {
        self.built.root()
    }

    /// The image that every desktop reads. What one writes stays in its memory.
    pub(super) fn image(&self) -> PathBuf {
        self.built.appliance.image()
    }
}

fn recipe(name: &str) -> Result<Recipe, StudyError> {
    if let Some(found) = supplied::find(name) {
        return found.recipe().map_err(StudyError::input);
    }
    let path = Path::new(name);
    let text = std::fs::read_to_string(path).map_err(|error| {
        let names = supplied::ALL.map(|supplied| supplied.name).join(", ");
        StudyError::input(format!("{name}: {error}; a recipe is a file, or one of {names}"))
    })?;
    Recipe::parse(&text).map_err(|error| StudyError::input(format!("{name}: {error}")))
}
