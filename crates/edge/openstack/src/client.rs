//! What can be asked of a cloud, and done there.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use serde::Deserialize;
use serde_json::{Value, json};
use virtbench_https::Limit;

use crate::address::Address;
use crate::clouds::{Cloud, Surroundings};
use crate::error::OpenStackError;
use crate::fault::FaultKind;
use crate::looks::Pace;
use crate::server::{Flavor, Image, Server, Volume};
use crate::session::{Call, Session, encoded};
use crate::watch::{self, Watch};
use crate::{server, session, time};

/// A project of a cloud, by the APIs of Keystone, Nova and Glance.
pub struct OpenStack {
    pub(crate) session: Session,
    pub(crate) watch: Watch,
    /// Why consoles tell nothing, once that is known.
    pub(crate) silent_consoles: Mutex<Option<String>>,
    /// Why actions are not told of, once that is known.
    pub(crate) hidden_actions: Mutex<Option<String>>,
}

impl fmt::Debug for OpenStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenStack({})", self.session.identity())
    }
}

#[derive(Deserialize)]
struct OneVolume {
    volume: Volume,
}

/// Where the time of a list went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ListTimes {
    /// What this program needed.
    pub client: Duration,
    /// The cloud's and the network's.
    pub waited: Duration,
    /// How often something was asked again.
    pub retries: u32,
}

impl OpenStack {
    /// Connects and logs in, with what clouds.yaml or the variables of this process say.
    ///
    /// # Errors
    /// There is no such cloud, it cannot be reached or trusted, refuses the user, or has no Nova that is new enough.
    pub fn connect(address: &Address, limit: Limit) -> Result<Self, OpenStackError> {
        let cloud = Cloud::find(address, &Surroundings::of_process()).map_err(OpenStackError::Settings)?;
        Self::open(cloud, limit)
    }

    /// Logs in to this cloud.
    ///
    /// # Errors
    /// It cannot be reached or trusted, refuses the user, or has no Nova that is new enough.
    pub fn open(cloud: Cloud, limit: Limit) -> Result<Self, OpenStackError> {
        Ok(Self {
            session: Session::open(cloud, limit)?,
            watch: Watch::default(),
            silent_consoles: Mutex::default(),
            hidden_actions: Mutex::default(),
        })
    }

    /// The same, looked at so.
    #[must_use]
    pub fn paced(mut self, pace: Pace) -> Self {
        self.watch.pace = pace;
        self
    }

    /// Keystone's URL.
    #[must_use]
    pub fn identity(&self) -> &str {
        self.session.identity()
    }

    /// The version of Nova's API that is spoken, such as `2.90`.
    #[must_use]
    pub fn microversion(&self) -> &str {
        &self.session.microversion
    }

    /// Whether the catalogue has Cinder.
    #[must_use]
    pub fn has_volumes(&self) -> bool {
        self.session.catalogue.volume.is_some()
    }

    /// The id of the project.
    #[must_use]
    pub fn project(&self) -> &str {
        &self.session.catalogue.project
    }

    /// Hosts that run servers; nothing where the role may not know.
    ///
    /// # Errors
    /// The cloud does not say.
    pub fn hosts(&self, limit: Limit) -> Result<Option<usize>, OpenStackError> {
        let call = Call::get("os-services?binary=nova-compute");
        match self.session.get::<Value>(&call, limit) {
            Ok((services, _)) => {
                let all = services["services"].as_array().map(Vec::as_slice).unwrap_or_default();
                let is_up = |service: &&Value| service["state"] == "up" && service["status"] == "enabled";
                Ok(Some(all.iter().filter(is_up).count()))
            }
            Err(error) if error.fault() == Some(FaultKind::Denied) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Hands each server of the project to `take`, page by page: no more than a page is kept.
    ///
    /// # Errors
    /// The cloud does not say.
    pub fn each_server(&self, limit: Limit, take: impl FnMut(Server)) -> Result<ListTimes, OpenStackError> {
        let begun = Instant::now();
        let reading = server::each(&self.session, &Call::get("servers/detail"), limit, take)?;
        let client = begun.elapsed().saturating_sub(reading.waited);
        Ok(ListTimes { client, waited: reading.waited, retries: reading.retries })
    }

    /// Hands each server of the project to `take` that changed since a moment of the cloud's clock, removed ones too.
    ///
    /// # Errors
    /// The cloud does not say.
    pub fn each_changed_server(
        &self,
        since: SystemTime,
        limit: Limit,
        take: impl FnMut(Server),
    ) -> Result<(), OpenStackError> {
        let path = format!("servers/detail?changes-since={}", encoded(&time::written(since)));
        server::each(&self.session, &Call::get(path), limit, take).map(drop)
    }

    /// Hands each image that the project owns to `take`, page by page.
    ///
    /// # Errors
    /// The cloud does not say.
    pub fn each_image(&self, limit: Limit, take: impl FnMut(Image)) -> Result<(), OpenStackError> {
        let call = Call::get(format!("images?owner={}", encoded(self.project()))).at_image();
        server::each(&self.session, &call, limit, take).map(drop)
    }

    /// The images of this name or id that the project may use.
    ///
    /// # Errors
    /// The cloud does not say.
    pub fn images(&self, limit: Limit) -> Result<Vec<Image>, OpenStackError> {
        let mut images = Vec::new();
        server::each(&self.session, &Call::get("images?status=active").at_image(), limit, |image| {
            images.push(image)
        })?;
        Ok(images)
    }

    /// The flavors that the project may use.
    ///
    /// # Errors
    /// The cloud does not say.
    pub fn flavors(&self, limit: Limit) -> Result<Vec<Flavor>, OpenStackError> {
        let mut flavors = Vec::new();
        server::each(&self.session, &Call::get("flavors/detail"), limit, |flavor| flavors.push(flavor))?;
        Ok(flavors)
    }

    /// The id of a network of this name or id.
    ///
    /// # Errors
    /// There is none, or several, or the cloud does not say.
    pub fn network(&self, wanted: &str, limit: Limit) -> Result<String, OpenStackError> {
        session::find(&self.session, wanted, limit)
    }

    /// How a server is; nothing where it is not there.
    ///
    /// # Errors
    /// The cloud does not say.
    pub fn server(&self, id: &str, limit: Limit) -> Result<Option<Server>, OpenStackError> {
        watch::alone(&self.session, id, limit)
    }

    /// An image; nothing where it is not there.
    ///
    /// # Errors
    /// The cloud does not say.
    pub fn image(&self, id: &str, limit: Limit) -> Result<Option<Image>, OpenStackError> {
        match self.session.get(&Call::get(format!("images/{}", encoded(id))).at_image(), limit) {
            Ok((image, _)) => Ok(Some(image).filter(|image: &Image| image.status != "deleted")),
            Err(error) if error.fault() == Some(FaultKind::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Hands each volume of the project to `take`, page by page; none where the cloud has no Cinder.
    ///
    /// # Errors
    /// The cloud does not say.
    pub fn each_volume(&self, limit: Limit, take: impl FnMut(Volume)) -> Result<(), OpenStackError> {
        if !self.has_volumes() {
            return Ok(());
        }
        server::each(&self.session, &Call::get("volumes/detail").at_volume(), limit, take).map(drop)
    }

    /// A volume; nothing where it is not there.
    ///
    /// # Errors
    /// The cloud does not say.
    pub fn volume(&self, id: &str, limit: Limit) -> Result<Option<Volume>, OpenStackError> {
        let call = Call::get(format!("volumes/{}", encoded(id))).at_volume();
        match self.session.get::<OneVolume>(&call, limit) {
            Ok((one, _)) => Ok(Some(one.volume)),
            Err(error) if error.fault() == Some(FaultKind::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes an image without any bytes, which costs nothing but its record; its id.
    ///
    /// # Errors
    /// The cloud refuses.
    pub fn make_empty_image(
        &self,
        name: &str,
        metadata: &BTreeMap<String, String>,
        limit: Limit,
    ) -> Result<String, OpenStackError> {
        let mut body = json!({ "name": name, "visibility": "private" });
        for (key, value) in metadata {
            body[key] = value.as_str().into();
        }
        let call = Call::of("POST", "images", Some(body)).at_image();
        let made: Image = self.session.read(&call, &self.session.call(&call, limit)?)?;
        Ok(made.id)
    }

    /// Changes what is written on an image.
    ///
    /// # Errors
    /// The cloud refuses, or it is gone.
    pub fn write_on_image(
        &self,
        id: &str,
        name: &str,
        text: &str,
        limit: Limit,
    ) -> Result<(), OpenStackError> {
        let change = json!([{ "op": "replace", "path": format!("/{name}"), "value": text }]);
        let call = Call::of("PATCH", format!("images/{}", encoded(id)), Some(change)).at_image();
        self.session.call(&call, limit).map(drop)
    }
}

impl Drop for OpenStack {
    fn drop(&mut self) {
        self.session.close();
    }
}
