//! Who runs an appliance.

use virtbench_record::{ApplianceFacts, CrossingCost};

use super::network::{Network, Reach};
use super::spec::ApplianceSpec;
use super::start::NativeAppliance;
use crate::connection::{Connection, ConnectionError};
use crate::guest::Guest;
use crate::libvirt::DomainAppliance;
use crate::process::MachineError;
use crate::remote::EnclosedAppliance;
use crate::uml::UmlGuest;

/// Who runs an appliance. Dropping it ends it.
#[derive(Debug)]
pub(super) enum Machine {
    Native(Box<NativeAppliance>),
    Guest(Box<Guest>),
    Uml(Box<UmlGuest>),
    Domain(Box<DomainAppliance>),
    Enclosed(Box<EnclosedAppliance>),
}

impl Machine {
    pub(super) fn connection(&mut self) -> &mut Connection {
        match self {
            Self::Native(native) => &mut native.agent.connection,
            Self::Guest(guest) => guest.connection(),
            Self::Uml(guest) => guest.connection(),
            Self::Domain(domain) => &mut domain.connection,
            Self::Enclosed(enclosed) => enclosed.connection(),
        }
    }

    pub(super) fn explain(&mut self, error: ConnectionError) -> MachineError {
        match self {
            Self::Native(native) => native.agent.process.explain(error),
            Self::Guest(guest) => guest.explain(error),
            Self::Uml(guest) => guest.explain(error),
            Self::Domain(domain) => domain.explain(error),
            Self::Enclosed(enclosed) => enclosed.explain(error),
        }
    }

    /// Whether it is on a machine of the user's, and on a network there.
    pub(super) fn is_elsewhere(&self) -> bool {
        matches!(self, Self::Domain(_) | Self::Enclosed(_))
    }

    pub(super) fn check(&mut self) -> Result<(), MachineError> {
        match self {
            Self::Native(native) => native.agent.process.check(),
            Self::Guest(guest) => guest.check(),
            Self::Uml(guest) => guest.check(),
            Self::Domain(domain) => domain.check(),
            Self::Enclosed(enclosed) => enclosed.check(),
        }
    }

    /// Ends it in good order, within a time limit.
    pub(super) fn shut_down(self) {
        match self {
            Self::Native(native) => native.shut_down(),
            Self::Guest(guest) => guest.shut_down(),
            Self::Uml(guest) => guest.shut_down(),
            Self::Domain(domain) => domain.shut_down(),
            Self::Enclosed(enclosed) => drop(enclosed),
        }
    }

    /// Where clients have to be.
    pub(super) fn reach(&self, network: &Network) -> Reach {
        match (self, network) {
            (Self::Native(native), _) => Reach::of(&native.network),
            (Self::Guest(_) | Self::Uml(_), Network::Namespace(namespace)) => Reach::of(namespace),
            (Self::Guest(_) | Self::Uml(_), Network::User) | (Self::Domain(_) | Self::Enclosed(_), _) => {
                Reach::here()
            }
        }
    }

    /// What its agent found that crossing into its kernel costs; nothing of machines of the user's.
    fn crossing(&self) -> Option<CrossingCost> {
        match self {
            Self::Native(native) => Some(native.agent.greeting.crossing),
            Self::Guest(guest) => Some(guest.greeting().crossing),
            Self::Uml(guest) => Some(guest.greeting().crossing),
            Self::Domain(_) | Self::Enclosed(_) => None,
        }
    }

    /// What it stands on, before anything has started.
    pub(super) fn facts(&self, spec: &ApplianceSpec, notes: Vec<String>) -> ApplianceFacts {
        let (network, boot, command_line) = match (self, &spec.network) {
            (Self::Native(native), _) => ("loopback".into(), native.boot, Vec::new()),
            (Self::Guest(guest), network) => {
                let name = if matches!(network, Network::User) { "user" } else { "tap" };
                (name.into(), guest.boot_time(), guest.command_line().to_vec())
            }
            (Self::Uml(guest), _) => ("tap".into(), guest.boot_time(), guest.command_line().to_vec()),
            (Self::Domain(domain), _) => (domain.network.to_string(), domain.boot, vec![domain.xml.clone()]),
            (Self::Enclosed(enclosed), _) => (enclosed.network.clone(), enclosed.boot, Vec::new()),
        };
        ApplianceFacts {
            recipe: spec.recipe.name.clone(),
            vcpus: spec.vcpus,
            memory_bytes: spec.memory_bytes,
            network,
            boot_ns: u64::try_from(boot.as_nanos()).unwrap_or(u64::MAX),
            crossing: self.crossing(),
            ready_ns: 0,
            services: Vec::new(),
            path: None,
            command_line,
            notes,
        }
    }
}
