//! Where a cloud is and as whom to log in: from clouds.yaml with secure.yaml, or from `OS_...` variables.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use virtbench_https::Trust;

use crate::address::Address;
use crate::credentials::{Credentials, Settings};

/// Bytes that a file may have.
const MOST: u64 = 1 << 20;
/// Settings of `auth:`, which are variables with `OS_` and in capital letters too.
const OF_AUTH: [&str; 18] = [
    "auth_url",
    "username",
    "user_id",
    "password",
    "token",
    "project_name",
    "project_id",
    "tenant_name",
    "tenant_id",
    "user_domain_name",
    "user_domain_id",
    "project_domain_name",
    "project_domain_id",
    "default_domain",
    "default_domain_id",
    "application_credential_id",
    "application_credential_name",
    "application_credential_secret",
];

/// A cloud that can be logged in to.
#[derive(Debug, Clone)]
pub struct Cloud {
    /// Keystone's address, which ends with `/v3`.
    pub identity: String,
    /// As whom, and for which project.
    pub credentials: Credentials,
    /// The region whose endpoints are taken; the only one where none is named.
    pub region: Option<String>,
    /// Which of the catalogue's endpoints.
    pub interface: String,
    /// Whom to believe that it is the server.
    pub trust: Trust,
}

/// One entry of clouds.yaml. It has secrets in it, so that it is not printed.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct Entry {
    auth: Settings,
    auth_type: Option<String>,
    profile: Option<String>,
    region_name: Option<String>,
    interface: Option<String>,
    endpoint_type: Option<String>,
    verify: Option<bool>,
    insecure: Option<bool>,
    cacert: Option<PathBuf>,
    cert: Option<PathBuf>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Clouds {
    clouds: BTreeMap<String, Entry>,
}

/// What the process that asks has of variables and folders.
pub(crate) struct Surroundings<'a> {
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// In which clouds.yaml and secure.yaml are looked for, the first that has one.
    pub folders: Vec<PathBuf>,
}

impl Surroundings<'_> {
    /// Those of this process.
    pub fn of_process() -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let home = || variable("HOME").map(|home| PathBuf::from(home).join(".config"));
        let of_user = variable("XDG_CONFIG_HOME").map(PathBuf::from).or_else(home);
        let mut folders = vec![PathBuf::from(".")];
        folders.extend(of_user.map(|folder| folder.join("openstack")));
        folders.push("/etc/openstack".into());
        Self { variable: &|name| std::env::var(name).ok().filter(|value| !value.is_empty()), folders }
    }

    fn file(&self, variable: &str, names: [&str; 2]) -> Option<PathBuf> {
        if let Some(named) = (self.variable)(variable) {
            return Some(named.into());
        }
        let all = self.folders.iter().flat_map(|folder| names.map(|name| folder.join(name)));
        all.into_iter().find(|path| path.exists())
    }

    fn searched(&self) -> String {
        let folders: Vec<String> = self.folders.iter().map(|folder| folder.display().to_string()).collect();
        format!("clouds.yaml in {}, or the file of OS_CLIENT_CONFIG_FILE", folders.join(", "))
    }
}

impl Cloud {
    /// The one that an address names.
    ///
    /// # Errors
    /// It is in no file, or says too little, in words that repeat no secret.
    pub(crate) fn find(address: &Address, around: &Surroundings<'_>) -> Result<Self, String> {
        if let Some(file) = &address.clouds {
            let name = if address.cloud.is_empty() { "envvars" } else { &address.cloud };
            let folder = file.parent().unwrap_or(Path::new("."));
            let secure = [folder.join("secure.yaml")].into_iter().find(|path| path.exists());
            return of_these(name, file, secure.as_deref())?.cloud().map(|cloud| cloud.with(address));
        }
        let named = Some(address.cloud.clone()).filter(|name| !name.is_empty());
        let entry = match named.or_else(|| (around.variable)("OS_CLOUD")) {
            Some(name) => of_files(&name, around)?,
            None => of_variables(around)?,
        };
        entry.cloud().map(|cloud| cloud.with(address))
    }

    /// With what the address says instead.
    fn with(self, address: &Address) -> Self {
        let mut cloud = self;
        if address.trust != Trust::System {
            cloud.trust.clone_from(&address.trust);
        }
        if let Some(region) = &address.region {
            cloud.region = Some(region.clone());
        }
        if let Some(interface) = &address.interface {
            cloud.interface.clone_from(interface);
        }
        cloud
    }
}

fn of_files(name: &str, around: &Surroundings<'_>) -> Result<Entry, String> {
    let path = around
        .file("OS_CLIENT_CONFIG_FILE", ["clouds.yaml", "clouds.yml"])
        .ok_or_else(|| format!("there is no cloud {name}: there is no {}", around.searched()))?;
    let secure = around.file("OS_CLIENT_SECURE_FILE", ["secure.yaml", "secure.yml"]);
    of_these(name, &path, secure.as_deref())
}

fn of_these(name: &str, path: &Path, secure: Option<&Path>) -> Result<Entry, String> {
    let mut clouds = read(path)?.clouds;
    let Some(mut entry) = clouds.remove(name) else {
        let names: Vec<&str> = clouds.keys().map(String::as_str).collect();
        return Err(format!("{} has no cloud {name}: it has {}", path.display(), names.join(", ")));
    };
    if let Some(secure) = secure {
        entry.add(read(secure)?.clouds.remove(name).unwrap_or_default());
    }
    if let Some(profile) = entry.profile.as_ref().filter(|_| !entry.auth.has("auth_url")) {
        return Err(format!(
            "{name} is of the profile {profile}, which virtbench does not know: give auth_url in {}",
            path.display()
        ));
    }
    Ok(entry)
}

fn of_variables(around: &Surroundings<'_>) -> Result<Entry, String> {
    let variable = |name: &str| (around.variable)(name);
    let mut entry = Entry::default();
    for setting in OF_AUTH {
        if let Some(value) = variable(&format!("OS_{}", setting.to_uppercase())) {
            entry.auth.set(setting, value);
        }
    }
    if !entry.auth.has("auth_url") {
        return Err(format!(
            "no cloud is named: write openstack:CLOUD for one of {}, or set OS_CLOUD, or OS_AUTH_URL, OS_USERNAME, OS_PASSWORD and so on",
            around.searched()
        ));
    }
    entry.auth_type = variable("OS_AUTH_TYPE");
    entry.region_name = variable("OS_REGION_NAME");
    entry.interface = variable("OS_INTERFACE").or_else(|| variable("OS_ENDPOINT_TYPE"));
    entry.cacert = variable("OS_CACERT").map(PathBuf::from);
    entry.cert = variable("OS_CERT").map(PathBuf::from);
    entry.insecure =
        variable("OS_INSECURE").map(|word| matches!(word.to_lowercase().as_str(), "true" | "1" | "yes"));
    Ok(entry)
}

fn read(path: &Path) -> Result<Clouds, String> {
    let why = |why: &str| format!("cannot read {}: {why}", path.display());
    let mut text = String::new();
    let file = File::open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => why("it is not there"),
        _ => why(&error.to_string()),
    })?;
    file.take(MOST + 1).read_to_string(&mut text).map_err(|error| why(&error.to_string()))?;
    if text.len() as u64 > MOST {
        return Err(why("it has more than 1 MiB"));
    }
    // The reason would repeat the line, which may be that of a password.
    serde_saphyr::from_str(&text).map_err(|error| {
        let line = error.location().map(|at| format!(" at line {}", at.line())).unwrap_or_default();
        why(&format!("it is no YAML file of clouds{line}"))
    })
}

impl Entry {
    /// What another file says besides, and instead.
    fn add(&mut self, other: Self) {
        self.auth.add(other.auth);
        self.auth_type = other.auth_type.or(self.auth_type.take());
        self.region_name = other.region_name.or(self.region_name.take());
        self.interface = other.interface.or(self.interface.take());
        self.endpoint_type = other.endpoint_type.or(self.endpoint_type.take());
        self.verify = other.verify.or(self.verify);
        self.insecure = other.insecure.or(self.insecure);
        self.cacert = other.cacert.or(self.cacert.take());
        self.cert = other.cert.or(self.cert.take());
    }

    fn cloud(self) -> Result<Cloud, String> {
        if self.cert.is_some() {
            return Err("virtbench shows a cloud no certificate of a client: leave cert out".into());
        }
        let interface = self.interface.or(self.endpoint_type).unwrap_or_else(|| "public".into());
        let interface = interface.strip_suffix("URL").unwrap_or(&interface).to_owned();
        if !matches!(interface.as_str(), "public" | "internal" | "admin") {
            return Err(format!("interface {interface:?}: it is public, internal or admin"));
        }
        let trust = match (self.verify == Some(false) || self.insecure == Some(true), self.cacert) {
            (true, _) => Trust::Anybody,
            (false, Some(file)) => Trust::Authorities(file),
            (false, None) => Trust::System,
        };
        let url = self.auth.get("auth_url").unwrap_or_default();
        let identity = identity(url).ok_or_else(|| {
            format!("auth_url {url:?} is no address of Keystone: write such as https://HOST:5000/v3")
        })?;
        let credentials = Credentials::read(&self.auth, self.auth_type.as_deref())?;
        Ok(Cloud { identity, credentials, region: self.region_name, interface, trust })
    }
}

/// Keystone's address with its version.
fn identity(url: &str) -> Option<String> {
    let url = url.trim().trim_end_matches('/');
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    if rest.is_empty() || rest.contains('@') || rest.ends_with("/v2.0") {
        return None;
    }
    Some(if url.ends_with("/v3") { url.to_owned() } else { format!("{url}/v3") })
}

#[cfg(test)]
#[path = "clouds_tests.rs"]
mod tests;
