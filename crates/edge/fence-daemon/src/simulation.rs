//! The simulator's world of what a daemon serves: the same configuration, the same models, another clock.
//!
//! What the two do under the same load is what the daemon's being real adds: threads, sockets, files, late timers.

use thiserror::Error;
use virtbench_fence::ConfigError;
use virtbench_fence_sim::client::Client;
use virtbench_fence_sim::disk::{HddModel, Order, SsdModel, SsdProfile};
use virtbench_fence_sim::{Span, WorldConfig};

use crate::config::{Built, Config, DeviceSpec, DeviceTable, EmulatedKind};

/// A daemon of which there is no model.
#[derive(Debug, Error)]
pub enum NotModelled {
    /// A device of which there is no model.
    #[error("{0} is no emulated device, so that it cannot be simulated: use hdd:PATH or ssd:PATH")]
    Real(String),
    /// Its parts do not fit together.
    #[error("the configuration does not fit: {0}")]
    Config(#[from] ConfigError),
    /// A device that is needed is not given.
    #[error("the configuration does not fit: {0}")]
    Device(String),
}

/// The world of a configuration with a client for each disk, over devices of these sizes in bytes: the slow one's file
/// and the fast one's.
///
/// # Errors
/// A device that is used is no model, or the configuration is none.
pub fn world(
    config: &Config,
    sizes: [u64; 2],
    clients: Vec<Client>,
    span: Span,
    seed: u64,
) -> Result<WorldConfig, NotModelled> {
    let home = config.home().map_err(NotModelled::Device)?;
    let (mut hdd, mut ssd, mut order) = (HddModel::default(), SsdModel::new(SsdProfile::Spec), Order::Scan);
    let used = |fast: bool| match home {
        Built::Slow => !fast,
        Built::Fast => fast,
        Built::Cached { .. } => true,
    };
    let tables: [(usize, &Option<DeviceTable>); 2] = [(0, &config.slow), (1, &config.fast)];
    for (index, table) in tables {
        let Some(table) = table.as_ref().filter(|_| used(index == 1)) else { continue };
        let DeviceSpec::Emulated(emulated) = &table.device else {
            return Err(NotModelled::Real(table.device.to_string()));
        };
        match emulated.kind {
            EmulatedKind::Hdd { order: own, .. } if index == 0 => {
                hdd = emulated.hdd(sizes[index]).unwrap_or(hdd);
                order = own;
            }
            EmulatedKind::Ssd(model) if index == 1 => ssd = model,
            _ => return Err(NotModelled::Real(format!("{} in the other's place", table.device))),
        }
    }
    let fence = config.fence(home, sizes, &[0; 16], [0; 16])?;
    Ok(WorldConfig { fence, hdd, ssd, hdd_order: order, clients, fill: 0, span, seed })
}
