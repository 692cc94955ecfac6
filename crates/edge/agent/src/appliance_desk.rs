//! Where requests about an appliance are answered.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::appliance::{Appliance, serve_path};
use crate::path_cost::{PATH_FLOW, measure_path_cost};
use crate::protocol::appliance::{ApplianceReply, ApplianceRequest};
use crate::protocol::{FailureKind, Reply};

/// The appliance, once there is one. Cloning shares it.
#[derive(Clone, Default)]
pub(crate) struct ApplianceDesk {
    appliance: Arc<OnceLock<Appliance>>,
    is_watched: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
}

impl ApplianceDesk {
    pub(crate) fn is_used(&self) -> bool {
        self.appliance.get().is_some()
    }

    /// The answer to what takes no time.
    pub(crate) fn answer_at_once(&self, request: &ApplianceRequest) -> Option<Reply> {
        let result = match request {
            ApplianceRequest::State => self.get().map(|appliance| ApplianceReply::State(appliance.state())),
            ApplianceRequest::Log { service } => self
                .get()
                .and_then(|appliance| appliance.log(service))
                .map(|text| ApplianceReply::Log { text }),
            ApplianceRequest::ServePath { port } => serve_path(*port)
                .map(|()| ApplianceReply::PathServed)
                .map_err(|error| format!("the path cannot be measured on port {port}: {error}")),
            _ => return None,
        };
        Some(reply(result))
    }

    /// Whether services are started for the first time.
    pub(crate) fn begins_to_watch(&self, request: &ApplianceRequest) -> bool {
        let starts = matches!(request, ApplianceRequest::Start(_)) && self.is_used();
        starts && !self.is_watched.swap(true, Ordering::Relaxed)
    }

    /// Tells of each service that ends by itself, until the conversation is over.
    pub(crate) fn watch(&self, tell: impl Fn(Reply)) {
        if let Some(appliance) = self.appliance.get() {
            let is_over = || self.is_over.load(Ordering::Acquire);
            appliance.watch(&is_over, |failure| tell(Reply::Appliance(ApplianceReply::Crashed(failure))));
        }
    }

    /// Does what takes its time.
    pub(crate) fn act(
        &self,
        request: ApplianceRequest,
        is_stopped: &dyn Fn() -> bool,
        tell: impl Fn(Reply),
    ) -> Reply {
        reply(match request {
            ApplianceRequest::Mount(_) if self.is_used() => Err("there is an appliance already".to_owned()),
            ApplianceRequest::Mount(order) => Appliance::mount(&order).map(|appliance| {
                let address = appliance.address.map(|address| address.octets());
                let _ = self.appliance.set(appliance);
                ApplianceReply::Mounted { address }
            }),
            ApplianceRequest::Run(order) => {
                self.get().and_then(|appliance| appliance.run(&order, is_stopped)).map(ApplianceReply::Ran)
            }
            ApplianceRequest::Start(services) => self.get().map(|appliance| {
                let started = appliance.start(&services, is_stopped, |service, took| {
                    let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
                    tell(Reply::Appliance(ApplianceReply::Ready { service: service.to_owned(), took_ns }));
                });
                started.map_or_else(ApplianceReply::NotStarted, |()| ApplianceReply::Started)
            }),
            ApplianceRequest::MeasurePath { address, port } => {
                measure_path_cost((address, port).into(), PATH_FLOW)
                    .map(ApplianceReply::PathMeasured)
                    .map_err(|error| format!("the path from it cannot be measured: {error}"))
            }
            ApplianceRequest::Stop => self.get().map(|appliance| {
                let (services, notes) = appliance.stop();
                ApplianceReply::Stopped { services, notes }
            }),
            ApplianceRequest::State | ApplianceRequest::Log { .. } | ApplianceRequest::ServePath { .. } => {
                Err("this is answered at once".to_owned())
            }
        })
    }

    /// Ends everything, also what was not stopped.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        if let Some(appliance) = self.appliance.get() {
            appliance.end();
        }
    }

    fn get(&self) -> Result<&Appliance, String> {
        self.appliance.get().ok_or_else(|| "there is no appliance here".to_owned())
    }
}

fn reply(result: Result<ApplianceReply, String>) -> Reply {
    match result {
        Ok(reply) => Reply::Appliance(reply),
        Err(message) => Reply::Failed { kind: FailureKind::Appliance, message },
    }
}
