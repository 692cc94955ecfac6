//! Whether a recipe is valid.

use std::collections::BTreeSet;

use thiserror::Error;

use crate::recipe::{Init, Probe, Recipe, Service};

/// The smallest guest in which Debian's kernel boots.
const LEAST_MEMORY: u64 = 96 << 20;

/// Names end up in folders, host names and labels of file systems.
const NAME_CHARACTERS: usize = 40;

/// The package that makes systemd the init.
const INIT: &str = "systemd-sysv";

const LONGEST_WAIT_NS: u64 = 3_600_000_000_000;

pub(crate) fn check(recipe: &Recipe) -> Result<(), RecipeError> {
    name("name", &recipe.name)?;
    ensure(recipe.memory >= LEAST_MEMORY, "memory", || {
        format!("{} bytes: a guest needs at least {LEAST_MEMORY}", recipe.memory)
    })?;
    for package in &recipe.packages {
        ensure(is_package(package), "packages", || format!("{package:?} is no name of a package"))?;
    }
    ensure(recipe.init == Init::Agent || recipe.packages.iter().any(|name| name == INIT), "init", || {
        format!("full needs {INIT} among the packages")
    })?;
    let mut users = BTreeSet::new();
    for user in &recipe.users {
        name("users.name", &user.name)?;
        absolute(&format!("users.{}.home", user.name), &user.home)?;
        ensure(users.insert(&user.name), &format!("users.{}", user.name), || "it is there twice".into())?;
    }
    for pattern in &recipe.build.exclude {
        absolute("build.exclude", pattern)?;
    }
    files(recipe)?;
    if let Some(data) = &recipe.data {
        absolute("data.folder", &data.folder)?;
        owner("data.user", &data.user)?;
        ensure(data.size >= 16 << 20, "data.size", || format!("{} bytes: at least 16 MiB", data.size))?;
        ensure(data.prepare.iter().all(|command| !command.is_empty()), "data.prepare", || {
            "an empty command".into()
        })?;
    }
    services(recipe)
}

fn files(recipe: &Recipe) -> Result<(), RecipeError> {
    let mut paths = BTreeSet::new();
    for file in &recipe.files {
        absolute("files.path", &file.path)?;
        let field = |part: &str| format!("files.{}.{part}", file.path);
        ensure(!file.path.ends_with('/') && paths.insert(&file.path), &field("path"), || {
            "it is there twice, or a folder".into()
        })?;
        owner(&field("owner"), &file.owner)?;
        ensure(!file.before_packages || file.owner == "root", &field("owner"), || {
            "before the packages there is nobody but root".into()
        })?;
        let octal = u32::from_str_radix(&file.mode, 8).is_ok_and(|mode| mode <= 0o7777);
        ensure(octal, &field("mode"), || format!("{:?}: octal digits such as 0644", file.mode))?;
    }
    Ok(())
}

fn services(recipe: &Recipe) -> Result<(), RecipeError> {
    ensure(!recipe.services.is_empty(), "services", || "there is none, so nothing would run".into())?;
    let mut names = BTreeSet::new();
    let mut ports = BTreeSet::new();
    for one in &recipe.services {
        service(one, recipe.init)?;
        ensure(names.insert(&one.name), &format!("services.{}", one.name), || "it is there twice".into())?;
        for port in &one.ports {
            ensure(*port != 0 && ports.insert(*port), &format!("services.{}.ports", one.name), || {
                format!("{port}: another service has it, or it is none")
            })?;
        }
    }
    Ok(())
}

fn service(service: &Service, init: Init) -> Result<(), RecipeError> {
    let field = |part: &str| format!("services.{}.{part}", service.name);
    name(&format!("services.{:?}.name", service.name), &service.name)?;
    if let Some(unit) = &service.unit {
        ensure(init == Init::Full, &field("unit"), || "only init = \"full\" has units".into())?;
        ensure(service.command.is_empty(), &field("command"), || "a unit has its own: leave it out".into())?;
        ensure(is_unit(unit), &field("unit"), || format!("{unit:?} is no service of systemd's"))?;
    } else {
        let program = service.command.first().map_or("", String::as_str);
        absolute(&field("command"), program)?;
    }
    owner(&field("user"), &service.user)?;
    for folder in &service.folders {
        absolute(&field("folders"), folder)?;
    }
    if let Probe::Command(command) = &service.ready {
        absolute(&field("ready.command"), command.first().map_or("", String::as_str))?;
    }
    for (part, ns) in [("ready_within", service.ready_within), ("stop_within", service.stop_within)] {
        ensure((1..=LONGEST_WAIT_NS).contains(&ns), &field(part), || {
            format!("{ns} ns: more than nothing, an hour at most")
        })?;
    }
    Ok(())
}

fn name(field: &str, name: &str) -> Result<(), RecipeError> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    ensure(begins && name.len() <= NAME_CHARACTERS && name.chars().all(plain), field, || {
        format!("{name:?}: a lower-case letter, then up to {} of a-z, 0-9 and -", NAME_CHARACTERS - 1)
    })
}

/// A user of the root, as packages name theirs: `postgres`, `_chrony`, `www-data`.
fn owner(field: &str, name: &str) -> Result<(), RecipeError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    ensure(begins && name.len() <= NAME_CHARACTERS && name.chars().all(allowed), field, || {
        format!("{name:?} is no name of a user")
    })
}

/// Debian policy, section 5.6.7, with an architecture or version behind it.
fn is_package(package: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "+-.:=~_".contains(c);
    package.starts_with(|c: char| c.is_ascii_alphanumeric()) && package.chars().all(allowed)
}

/// systemd.unit(5), of services alone.
fn is_unit(unit: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
    unit.strip_suffix(".service").is_some_and(|name| {
        name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(allowed)
    })
}

fn absolute(field: &str, path: &str) -> Result<(), RecipeError> {
    let inside = path.starts_with('/')
        && !path.split('/').any(|part| part == "..")
        && !path.contains(char::is_control);
    ensure(inside, field, || {
        format!("{path:?}: a path within the root, beginning with /, without .. and control characters")
    })
}

fn ensure(holds: bool, field: &str, why: impl FnOnce() -> String) -> Result<(), RecipeError> {
    if holds { Ok(()) } else { Err(RecipeError::Value { field: field.into(), why: why() }) }
}

/// A recipe that cannot be used, and why.
#[derive(Debug, Error)]
pub enum RecipeError {
    /// It is no TOML, has an unknown field, lacks one, or a value is of another kind; the text names line and column.
    #[error("{0}")]
    Syntax(#[from] toml::de::Error),
    /// An invalid value.
    #[error("{field}: {why}")]
    Value {
        /// The field, as in the file: `services.postgresql.command`.
        field: String,
        /// What is wrong with it, and what would do.
        why: String,
    },
}

impl Recipe {
    /// The recipe in the text of a TOML file.
    ///
    /// # Errors
    /// The first line that cannot be read, or an invalid value.
    pub fn parse(text: &str) -> Result<Self, RecipeError> {
        let recipe: Self = toml::from_str(text)?;
        check(&recipe)?;
        Ok(recipe)
    }
}
