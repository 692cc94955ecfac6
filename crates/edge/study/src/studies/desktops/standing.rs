//! So many desktops that stand at once, and the pictures that are kept of them.

use std::net::TcpStream;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use virtbench_desktop::{Desk, Screenshot};
use virtbench_lab::{
    ApplianceError, ApplianceSpec, Network, Place, RunningAppliance, TierLinks, usable_processors,
};
use virtbench_record::{DesktopPicture, DesktopsPlan, GuestFacts};

use super::source::{DesktopAppliance, DesktopSource, ExistingDesktops, SESSION_PORT, VNC_PORT};
use crate::guests::ApplianceGuests;
use crate::runner::progress::Progress;
use crate::runner::steps::NoResult;
use crate::study_error::StudyError;

/// How long a guest may take to boot.
const BOOT_LIMIT: Duration = Duration::from_secs(120);

const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Desktops that stand. Those that were started end with this.
pub(super) struct Standing<'a> {
    appliances: Vec<RunningAppliance>,
    existing: Option<(&'a ExistingDesktops, u32)>,
}

impl<'a> Standing<'a> {
    /// Starts them one after the other, unless they are there already.
    pub(super) fn start(
        source: &'a DesktopSource,
        plan: &DesktopsPlan,
        count: u32,
        progress: &mut Progress<'_>,
    ) -> Result<Self, NoResult> {
        let (desktop, guests) = match source {
            DesktopSource::Started { desktop, guests } => (desktop, guests.as_deref()),
            DesktopSource::Existing(existing) => {
                return Ok(Self { appliances: Vec::new(), existing: Some((existing, count)) });
            }
        };
        let processors = usable_processors().map_err(|error| {
            let why = format!("this process's processors cannot be asked for: {error}");
            NoResult::Study(StudyError::input(why))
        })?;
        let mut standing = Self { appliances: Vec::new(), existing: None };
        for number in 0..count {
            progress.check().map_err(|error| NoResult::Study(error.into()))?;
            progress.doing(&format!("{count} desktops: starting number {}", number + 1));
            let spec = spec(desktop, plan, guests, number, &processors);
            // What a path costs is in what users see.
            let started = RunningAppliance::start_unmeasured(&spec);
            standing.appliances.push(started.map_err(|error| NoResult::failed(error.to_string()))?);
        }
        Ok(standing)
    }

    /// What the first one's guest is, where there are guests.
    pub(super) fn guest(&self, source: &DesktopSource) -> Option<GuestFacts> {
        let DesktopSource::Started { guests, .. } = source else { return None };
        Some(guests.as_ref()?.facts(self.appliances.first()?.facts()))
    }

    /// The way to each: to the screen of its VM, where it has one, else to its VNC server.
    pub(super) fn desks(&mut self) -> Result<Vec<Desk>, NoResult> {
        if let Some((existing, count)) = self.existing {
            return Ok(existing.desks(count));
        }
        let desk = |appliance: &mut RunningAppliance| {
            let screen = match appliance.connect_to_screen() {
                Some(screen) => screen.map_err(|error| {
                    NoResult::failed(format!("{}: its screen: {error}", appliance.name()))
                })?,
                None => connect(appliance, VNC_PORT)?,
            };
            let control = Some(connect(appliance, SESSION_PORT)?);
            Ok(Desk { screen: Ok(screen), control, password: None })
        };
        self.appliances.iter_mut().map(desk).collect()
    }

    /// Why a user's desktop has gone, if its appliance knows.
    pub(super) fn why_gone(&mut self, user: u32) -> Option<String> {
        let appliance = self.appliances.get_mut(user as usize)?;
        appliance.crashed().map(|error: ApplianceError| error.to_string())
    }

    /// Ends all of them in good order; returns what could not be done so.
    pub(super) fn stop(self) -> Vec<String> {
        let ended = self.appliances.into_iter().map(RunningAppliance::stop);
        ended
            .flat_map(|ended| ended.map_or_else(|error| vec![error.to_string()], |(_, notes)| notes))
            .collect()
    }
}

fn connect(appliance: &RunningAppliance, port: u16) -> Result<TcpStream, NoResult> {
    let name = appliance.name();
    let failed = |why: String| NoResult::failed(format!("{name}: port {port}: {why}"));
    let address = appliance.address(port).ok_or_else(|| failed("it has no address".into()))?;
    let stream = appliance.reach().within(|| TcpStream::connect_timeout(&address, CONNECT_LIMIT));
    stream.and_then(|stream| stream).map_err(|error| failed(error.to_string()))
}

fn spec(
    desktop: &DesktopAppliance,
    plan: &DesktopsPlan,
    guests: Option<&ApplianceGuests>,
    number: u32,
    processors: &[usize],
) -> ApplianceSpec {
    let place = guests.map_or(Place::Native, |guests| guests.place(BOOT_LIMIT));
    // In turns, so that desktops are spread over the host's processors.
    let first = number as usize * plan.vcpus as usize;
    let own = processors.iter().cycle().skip(first % processors.len().max(1)).take(plan.vcpus as usize);
    ApplianceSpec {
        name: format!("desktop {}", number + 1),
        recipe: desktop.built.appliance.recipe.clone(),
        root: desktop.image(),
        data: None,
        vcpus: plan.vcpus,
        memory_bytes: plan.memory_bytes,
        network: Network::User,
        tiers: TierLinks::default(),
        processors: own.copied().collect(),
        place,
    }
}

/// Pictures of failures that are kept.
const FAILURES: usize = 3;

/// A longer picture is left out, in bytes: records are read as a whole.
const LONGEST: usize = 1 << 20;

/// The one of the operation that took longest beside its limit, and some of failures.
#[derive(Default)]
pub(super) struct Pictures {
    worst: Option<(u32, String, Screenshot)>,
    failures: Vec<(u32, String, Screenshot)>,
}

impl Pictures {
    pub(super) fn worst(&mut self, user: u32, what: String, picture: Option<Screenshot>) {
        self.worst = picture.map(|picture| (user, what, picture)).or_else(|| self.worst.take());
    }

    pub(super) fn failure(&mut self, user: u32, what: String, picture: Option<Screenshot>) {
        if self.failures.len() < FAILURES {
            self.failures.extend(picture.map(|picture| (user, what, picture)));
        }
    }

    pub(super) fn kept(self) -> Vec<DesktopPicture> {
        let all = self.worst.into_iter().chain(self.failures);
        let kept = |(user, what, picture): (u32, String, Screenshot)| {
            let png = picture.png().ok().filter(|png| png.len() <= LONGEST)?;
            Some(DesktopPicture { user, what, png: BASE64_STANDARD.encode(png) })
        };
        all.filter_map(kept).collect()
    }
}
