//! What failures of machines mean to the shell.

use virtbench_lab::{LabError, MachineError};

use crate::exit::Kind;

/// The kind of a failed machine: it is well where its agent only refuses the target, and never began where this host lacks something.
pub fn lab_kind(error: &LabError) -> Kind {
    match error {
        LabError::Stopped => Kind::Interrupted,
        error if error.is_of_target() => Kind::Target,
        LabError::Uml(_) | LabError::Machine { source: MachineError::Lacking { .. }, .. } => {
            Kind::Environment
        }
        _ => Kind::Guest,
    }
}
