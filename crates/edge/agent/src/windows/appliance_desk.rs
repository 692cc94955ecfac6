//! Where requests about an appliance are refused: they run on Linux only.

use crate::protocol::appliance::ApplianceRequest;
use crate::protocol::{FailureKind, Reply};

/// There is none.
#[derive(Clone, Default)]
pub(crate) struct ApplianceDesk {}

impl ApplianceDesk {
    pub(crate) fn is_used(&self) -> bool {
        false
    }

    /// Refuses.
    pub(crate) fn answer_at_once(&self, _request: &ApplianceRequest) -> Option<Reply> {
        let message = "appliances run on Linux machines, and this one runs Windows".to_owned();
        Some(Reply::Failed { kind: FailureKind::Appliance, message })
    }

    pub(crate) fn begins_to_watch(&self, _request: &ApplianceRequest) -> bool {
        false
    }

    pub(crate) fn watch(&self, _tell: impl Fn(Reply)) {}

    /// Refuses as well: all has been answered at once.
    pub(crate) fn act(
        &self,
        request: ApplianceRequest,
        _is_stopped: &dyn Fn() -> bool,
        _tell: impl Fn(Reply),
    ) -> Reply {
        self.answer_at_once(&request)
            .unwrap_or(Reply::Failed { kind: FailureKind::Appliance, message: String::new() })
    }

    pub(crate) fn end(&self) {}
}
