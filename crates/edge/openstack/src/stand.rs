//! The small OpenStack of `scripts/openstack-stand.sh`, for benchmarks: real services whose hosts are fake. It ends with its value.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

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
