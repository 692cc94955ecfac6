//! A service in a VM, as members of tiles are: there the server is the limit, and not the tool that loads it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;
use virtbench_lab::{
    ApplianceSpec, Filesystem, GuestPlace, Network, Place, RunningAppliance, TierLinks, make_filesystem,
};
use virtbench_recipe::supplied;

use crate::tools::virtbench;

/// Bytes of what the service keeps.
const DATA_BYTES: u64 = 1 << 30;
const BOOT_LIMIT: Duration = Duration::from_secs(60);
const PREPARE_LIMIT: Duration = Duration::from_secs(60);

/// A supplied recipe in a VM of one processor, reached by QEMU's user-mode network. It ends with this.
pub struct VmService {
    appliance: RunningAppliance,
    port: u16,
    _data: TempDir,
}

impl VmService {
    /// Builds its root where there is none, boots the VM and waits until the service is ready. Its data are in `folder`.
    ///
    /// # Errors
    /// Something that is needed is missing, with how to get it, or it does not get ready.
    pub fn start(name: &str, folder: &Path) -> Result<Self> {
        let recipe = supplied::find(name).with_context(|| format!("no recipe {name}"))?.recipe()?;
        let own = TempDir::new_in(folder)?;
        let data = recipe.data.as_ref().map(|_| own.path().join("data"));
        if let Some(data) = &data {
            make_filesystem(data, DATA_BYTES, Filesystem::Ext4)?;
        }
        let port = *recipe.ports().first().context("the recipe has no port")?;
        let spec = ApplianceSpec {
            name: name.to_owned(),
            memory_bytes: recipe.memory,
            recipe,
            root: root(name)?,
            data,
            vcpus: 1,
            network: Network::User,
            tiers: TierLinks::default(),
            processors: Vec::new(),
            place: Place::Guest(Box::new(GuestPlace::on_this_host(BOOT_LIMIT)?)),
        };
        if spec.data.is_some() {
            let mut opened = RunningAppliance::open(&spec)?;
            opened.prepare_data(PREPARE_LIMIT)?;
            opened.stop()?;
        }
        Ok(Self { appliance: RunningAppliance::start_unmeasured(&spec)?, port, _data: own })
    }

    /// Its port on loopback.
    ///
    /// # Errors
    /// It has none.
    pub fn port(&self) -> Result<u16> {
        let address = self.appliance.address(self.port).context("the VM has no address")?;
        ensure!(address.ip().is_loopback(), "{address} is not on loopback");
        Ok(address.port())
    }
}

fn root(name: &str) -> Result<PathBuf> {
    let mut command = Command::new(virtbench());
    let output = command.args(["appliance", "build", name, "--json"]).output().context("virtbench")?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    let built: Value = serde_json::from_slice(&output.stdout)?;
    Ok(built["image"].as_str().context("nothing says where the root is")?.into())
}
