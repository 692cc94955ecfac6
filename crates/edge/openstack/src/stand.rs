//! The small OpenStack of `scripts/openstack-stand.sh`, for benchmarks, and Rally beside it.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Where its Keystone answers.
pub(crate) const URL: &str = "http://127.0.77.1:5000";

/// Of each of its users.
pub(crate) const PASSWORD: &str = "stand-only-secret";

/// One that runs.
#[derive(Debug)]
pub struct OpenStackStand {
    process: Child,
    folder: TempDir,
}

pub(crate) fn script(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../scripts")).join(name)
}

impl OpenStackStand {
    /// Starts it, and waits until it answers; its own script gives up where it does not.
    ///
    /// # Errors
    /// It is not set up, this is not root, or it does not start.
    pub fn start() -> io::Result<Self> {
        let folder = TempDir::new()?;
        let mut process = Command::new(script("openstack-stand.sh"))
            .arg("run")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        if let Some(told) = process.stdout.take() {
            BufReader::new(told).read_line(&mut line)?;
        }
        let user = |name: &str| {
            format!(
                "  {name}: {{auth: {{auth_url: '{URL}', username: {name}, password: {PASSWORD}, project_name: bench}}}}\n"
            )
        };
        let clouds = format!("clouds:\n{}{}{}", user("admin"), user("member"), user("reader"));
        fs::write(folder.path().join("clouds.yaml"), clouds)?;
        let stand = Self { process, folder };
        if line.trim() != "up" {
            return Err(io::Error::other(
                "OpenStack does not start: run scripts/setup-openstack.sh, as root",
            ));
        }
        Ok(stand)
    }

    /// The address of its project for a user: `admin`, `member` or `reader`.
    #[must_use]
    pub fn argument(&self, user: &str) -> String {
        let clouds = self.folder.path().join("clouds.yaml");
        format!("openstack:{user}?clouds={}&flavor=tiny&other-flavor=small&image=cirros", clouds.display())
    }
}

impl Drop for OpenStackStand {
    /// It ends with its standard input, and all that it has started with it.
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// Rally, set up for the administrator of the project.
#[derive(Debug)]
pub struct Rally(TempDir);

/// What Rally calls an atomic action: from when its client began until that knew its end, in seconds since 1970.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RallyAction {
    /// Such as `nova.boot_server`.
    pub name: String,
    /// When it began.
    #[serde(rename = "started_at")]
    pub begun: f64,
    /// When it was known to be over.
    #[serde(rename = "finished_at")]
    pub ended: f64,
}

#[derive(Deserialize)]
struct Iteration {
    #[serde(rename = "atomic_actions")]
    actions: Vec<RallyAction>,
    error: Vec<Value>,
}

impl Rally {
    /// Sets it up with these lines of its `[openstack]` settings.
    ///
    /// # Errors
    /// It is not installed, this is not root, or it cannot be set up.
    pub fn ready(settings: &str) -> io::Result<Self> {
        let folder = TempDir::new()?;
        let user = json!({
            "username": "admin", "password": PASSWORD, "project_name": "bench", "user_domain_name": "Default", "project_domain_name": "Default",
        });
        let cloud = json!({ "auth_url": format!("{URL}/v3"), "region_name": "RegionOne", "admin": user, "users": [user] });
        fs::write(folder.path().join("deployment.json"), json!({ "openstack": cloud }).to_string())?;
        let settings =
            format!("[database]\nconnection = sqlite:////mnt/rally.sqlite\n[openstack]\n{settings}");
        fs::write(folder.path().join("rally.conf"), settings)?;
        let rally = Self(folder);
        rally.start(None)?;
        Ok(rally)
    }

    /// Runs a task; the atomic actions of each iteration.
    ///
    /// # Errors
    /// It does not run, or an iteration failed.
    pub fn run(&self, task: &Value) -> io::Result<Vec<Vec<RallyAction>>> {
        fs::write(self.0.path().join("task.json"), task.to_string())?;
        self.start(Some("task"))?;
        let mut told: Value = serde_json::from_slice(&fs::read(self.0.path().join("task.result.json"))?)?;
        let data = told.pointer_mut("/tasks/0/subtasks/0/workloads/0/data").map(Value::take);
        let iterations: Vec<Iteration> = serde_json::from_value(data.unwrap_or_default())?;
        if let Some(failed) = iterations.iter().find(|iteration| !iteration.error.is_empty()) {
            return Err(io::Error::other(format!("an iteration of Rally's failed: {:?}", failed.error)));
        }
        Ok(iterations.into_iter().map(|iteration| iteration.actions).collect())
    }

    fn start(&self, task: Option<&str>) -> io::Result<()> {
        let mut command = Command::new(script("openstack-rally.sh"));
        let output = command.arg(self.0.path()).args(task).stdin(Stdio::null()).output()?;
        if output.status.success() {
            return Ok(());
        }
        let told = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Err(io::Error::other(format!("rally: {}", told.concat())))
    }
}
