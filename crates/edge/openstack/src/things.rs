//! Images, volumes and ports, followed until an operation on them is over.

use std::thread;
use std::time::Instant;

use serde_json::Value;
use virtbench_https::{Limit, Polling};

use crate::client::OpenStack;
use crate::error::OpenStackError;
use crate::fault::{Fault, FaultKind};
use crate::looks::{OperationTimes, Parts};
use crate::session::{Call, encoded};

/// A call that was answered: for which server, and by which request.
pub(crate) struct Step<'a> {
    pub server: &'a str,
    pub request: Option<&'a str>,
    /// As errors name it.
    pub name: String,
}

/// How something was found.
enum Found {
    /// As it should be.
    Over,
    /// On its way there; as an error tells how it was found.
    UnderWay(String),
    /// It will not get there: the fault where the cloud has recorded none.
    Failed(Fault),
}

impl OpenStack {
    /// Waits until an image is whole, or gone.
    pub(crate) fn image_is(
        &self,
        step: &Step<'_>,
        image: &str,
        is_there: bool,
        limit: Limit,
        times: &mut OperationTimes,
    ) -> Result<(), OpenStackError> {
        self.until(step, limit, times, || {
            let found = self.image(image, limit)?;
            Ok(match (found.as_ref().map(|image| image.status.as_str()), is_there) {
                (Some("active"), true) | (None | Some("pending_delete"), false) => Found::Over,
                (None | Some("killed" | "deactivated" | "pending_delete"), true) => {
                    Found::Failed(Fault::new(404, "the image is gone", step.request))
                }
                (status, _) => Found::UnderWay(status.unwrap_or_default().to_owned()),
            })
        })
    }

    /// Waits until a volume has this status, or is gone, without one.
    pub(crate) fn volume_is(
        &self,
        step: &Step<'_>,
        volume: &str,
        wanted: Option<&str>,
        limit: Limit,
        times: &mut OperationTimes,
    ) -> Result<(), OpenStackError> {
        self.until(step, limit, times, || {
            let found = self.volume(volume, limit)?;
            let status = found.as_ref().map(|volume| volume.status.as_str());
            Ok(match status {
                _ if status == wanted => Found::Over,
                None => Found::Failed(Fault::new(404, "the volume is gone", step.request)),
                Some(status) if status.starts_with("error") => {
                    Found::Failed(Fault::new(0, &format!("the volume is in {status}"), step.request))
                }
                Some(status) => Found::UnderWay(status.to_owned()),
            })
        })
    }

    /// Waits until a server has a port, or has it no more.
    pub(crate) fn port_is(
        &self,
        step: &Step<'_>,
        port: &str,
        is_there: bool,
        limit: Limit,
        times: &mut OperationTimes,
    ) -> Result<(), OpenStackError> {
        let path = format!("servers/{}/os-interface/{}", encoded(step.server), encoded(port));
        self.until(step, limit, times, || {
            let found = match self.session.get::<Value>(&Call::get(path.as_str()), limit) {
                Ok(_) => true,
                Err(error) if error.fault() == Some(FaultKind::NotFound) => false,
                Err(error) => return Err(error),
            };
            let shown = if found { "attached" } else { "not attached" };
            Ok(if found == is_there { Found::Over } else { Found::UnderWay(shown.to_owned()) })
        })
    }

    /// Looks again and again, ever less often, until it is over.
    fn until(
        &self,
        step: &Step<'_>,
        limit: Limit,
        times: &mut OperationTimes,
        look: impl Fn() -> Result<Found, OpenStackError>,
    ) -> Result<(), OpenStackError> {
        let (polling, begun, mut parts) = (Polling::start(), Instant::now(), Parts::default());
        let result = loop {
            let asked = Instant::now();
            let last = match look()? {
                Found::Over => break Ok(()),
                Found::Failed(fault) => {
                    let fault = self.action_fault(step, limit)?.unwrap_or(fault);
                    break Err(OpenStackError::Fault { what: step.name.clone(), fault });
                }
                Found::UnderWay(shown) => shown,
            };
            parts.saw(asked - begun, false);
            let pause = self.watch.pace.pause(&polling, asked.elapsed());
            if limit.left() <= pause {
                let last = (!last.is_empty()).then(|| format!("last found {last}"));
                break Err(OpenStackError::Late { what: step.name.clone(), limit: limit.length(), last });
            }
            thread::sleep(pause);
        };
        parts.add_to(times, begun.elapsed());
        result
    }
}
