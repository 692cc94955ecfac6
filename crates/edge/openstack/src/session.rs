//! Calls of the services, logged in.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use std::{fmt, thread};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use virtbench_https::{Answer, Ask, HttpsServer, Limit, through_outages};

use crate::catalogue::{self, Catalogue, Token};
use crate::clouds::Cloud;
use crate::error::OpenStackError;
use crate::fault::{Fault, FaultKind, words};

/// One call takes no longer than this, whatever its deadline.
const LONGEST_CALL: Duration = Duration::from_secs(60);

/// A token is renewed when it has less than this left.
const EARLY: Duration = Duration::from_secs(60);

/// How often a call is made again that the cloud wants later, and how long it is waited for at most where it does not say.
const LATER: (u32, Duration) = (8, Duration::from_secs(1));

/// What stays as it is in a path or a query.
const PLAIN: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Versions of Nova's API: the oldest that tells all that is needed (that of Rocky, 2018), and the newest that is known.
const MICROVERSIONS: (u32, u32) = (62, 90);

/// Who is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    Identity,
    Compute,
    Image,
    Network,
    Volume,
}

/// A call: a method of HTTP, a path below a service, and what is sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub service: Service,
    pub method: &'static str,
    /// With its query.
    pub path: String,
    pub body: Option<Value>,
}

impl Call {
    /// Asks Nova for something. It may be asked twice.
    pub fn get(path: impl Into<String>) -> Self {
        Self { service: Service::Compute, method: "GET", path: path.into(), body: None }
    }

    /// Has Nova do something.
    pub fn of(method: &'static str, path: impl Into<String>, body: Option<Value>) -> Self {
        Self { service: Service::Compute, method, path: path.into(), body }
    }

    /// Of Glance.
    pub fn at_image(self) -> Self {
        Self { service: Service::Image, ..self }
    }

    /// Of Cinder.
    pub fn at_volume(self) -> Self {
        Self { service: Service::Volume, ..self }
    }
}

/// Without its query.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.split('?').next().unwrap_or_default();
        // What an action is called is all that its body may tell: it can hold whatever a user wrote.
        let action = self.body.as_ref().filter(|_| path.ends_with("/action"));
        let action = action.and_then(|body| body.as_object()?.keys().next());
        write!(f, "{} {path}", self.method)?;
        action.map_or(Ok(()), |action| write!(f, " {action}"))
    }
}

/// Part of a path or of a query.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, &PLAIN).to_string()
}

/// What was answered, and what the cloud and the network took of the time. It may hold a token, so that it is not printed.
pub(crate) struct Answered {
    pub body: Vec<u8>,
    /// The time from handing requests over until their answers began.
    pub waited: Duration,
    /// How often it was asked again.
    pub retries: u32,
    /// The request, as the cloud's logs name it.
    pub request: Option<String>,
    /// The cloud's clock.
    pub date: Option<SystemTime>,
    token: Option<String>,
}

struct Login {
    token: Option<Token>,
    /// Which login it is.
    number: u64,
    /// It was refused: it is not tried again, so that the user is not locked out.
    refused: Option<OpenStackError>,
}

/// A session that threads share.
pub(crate) struct Session {
    cloud: Cloud,
    identity: HttpsServer,
    compute: HttpsServer,
    image: HttpsServer,
    /// Where the cloud has Neutron.
    network: Option<HttpsServer>,
    /// Where it has Cinder.
    volume: Option<HttpsServer>,
    pub catalogue: Catalogue,
    /// The version of Nova's API, such as `2.90`.
    pub microversion: String,
    login: Mutex<Login>,
}

impl Session {
    /// Logs in, and finds the services and the version of Nova's API.
    pub fn open(cloud: Cloud, limit: Limit) -> Result<Self, OpenStackError> {
        let identity = HttpsServer::new(host(&cloud.identity), &cloud.trust)?;
        let (token, catalogue) = log_in(&cloud, &identity, limit)?;
        let catalogue = Catalogue::read(&catalogue, &cloud).map_err(OpenStackError::Settings)?;
        let server = |url: Option<&str>| url.map(|url| HttpsServer::new(host(url), &cloud.trust)).transpose();
        let (network, volume) = (server(catalogue.network.as_deref())?, server(catalogue.volume.as_deref())?);
        let mut session = Self {
            compute: HttpsServer::new(host(&catalogue.compute), &cloud.trust)?,
            image: HttpsServer::new(host(&catalogue.image), &cloud.trust)?,
            network,
            volume,
            cloud,
            identity,
            catalogue,
            microversion: "2.1".to_owned(),
            login: Mutex::new(Login { token: Some(token), number: 1, refused: None }),
        };
        let call = Call::get("");
        let version: Value = session.read(&call, &session.through_outages(&call, limit)?)?;
        session.microversion = microversion(&version).map_err(OpenStackError::Settings)?;
        Ok(session)
    }

    /// Makes a call; again if the token had ended, and as often as the cloud asks for it later. It refuses so before it does anything.
    pub fn call(&self, call: &Call, limit: Limit) -> Result<Answered, OpenStackError> {
        let begun = Instant::now();
        let (mut retries, mut renewed, mut read) = (0, false, Duration::ZERO);
        loop {
            let (token, number) = self.token(limit)?;
            let asked = Instant::now();
            match self.ask(call, Some(&token), limit) {
                Err((error, _)) if error.fault() == Some(FaultKind::NotAuthenticated) && !renewed => {
                    renewed = true;
                    self.expired(number);
                }
                Err((error, Some(later))) if retries < LATER.0 && later < limit.left() => {
                    drop(error);
                    thread::sleep(later);
                }
                Err((error, _)) => return Err(error),
                Ok(answered) => {
                    read += asked.elapsed().saturating_sub(answered.waited);
                    let waited = begun.elapsed().saturating_sub(read);
                    return Ok(Answered { waited, retries, ..answered });
                }
            }
            retries += 1;
        }
    }

    /// Asks until somebody answers, for what may be asked twice. A service that a proxy cannot reach is away too.
    pub fn through_outages(&self, call: &Call, limit: Limit) -> Result<Answered, OpenStackError> {
        let is_away = |error: &OpenStackError| match error {
            OpenStackError::Unreachable { .. } => true,
            OpenStackError::Fault { fault, .. } => matches!(fault.status, 502..=504),
            _ => false,
        };
        let (answered, before, failed) = through_outages(limit, is_away, || self.call(call, limit))?;
        let (waited, retries) = (before + answered.waited, failed + answered.retries);
        Ok(Answered { waited, retries, ..answered })
    }

    /// Asks, and reads what was answered.
    pub fn get<T: DeserializeOwned>(
        &self,
        call: &Call,
        limit: Limit,
    ) -> Result<(T, Answered), OpenStackError> {
        let mut answered = self.through_outages(call, limit)?;
        let value = self.read(call, &answered)?;
        answered.body = Vec::new();
        Ok((value, answered))
    }

    /// Reads what was answered.
    pub fn read<T: DeserializeOwned>(&self, call: &Call, answered: &Answered) -> Result<T, OpenStackError> {
        serde_json::from_slice(&answered.body).map_err(|error| self.garbled(call, &error.to_string()))
    }

    pub fn garbled(&self, call: &Call, why: &str) -> OpenStackError {
        let host = self.server(call.service).map_or("the cloud", |(server, ..)| server.host()).to_owned();
        OpenStackError::Garbled { host, what: call.to_string(), why: why.to_owned() }
    }

    /// Breaks what is in flight. A token ends by itself.
    pub fn close(&self) {
        for server in
            [&self.identity, &self.compute, &self.image].into_iter().chain(&self.network).chain(&self.volume)
        {
            server.shut_down();
        }
    }

    /// Keystone's URL.
    pub fn identity(&self) -> &str {
        &self.cloud.identity
    }

    /// Who is asked, its URL and the version of its API; nothing where the cloud has no such service.
    fn server(&self, service: Service) -> Option<(&HttpsServer, &str, &str)> {
        let Catalogue { compute, image, network, volume, .. } = &self.catalogue;
        match service {
            Service::Identity => Some((&self.identity, &self.cloud.identity, "")),
            Service::Compute => Some((&self.compute, compute, "/v2.1/")),
            Service::Image => Some((&self.image, image, "/v2/")),
            Service::Network => Some((self.network.as_ref()?, network.as_deref()?, "/v2.0/")),
            // Its URL has the version and the project.
            Service::Volume => Some((self.volume.as_ref()?, volume.as_deref()?, "/")),
        }
    }

    fn login(&self) -> MutexGuard<'_, Login> {
        self.login.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn expired(&self, number: u64) {
        let mut login = self.login();
        if login.number == number {
            login.token = None;
        }
    }

    /// The first caller logs in; others wait for it.
    fn token(&self, limit: Limit) -> Result<(String, u64), OpenStackError> {
        let mut login = self.login();
        let is_good = |token: &&Token| {
            let soon = SystemTime::now() + EARLY;
            !self.cloud.credentials.can_be_repeated() || token.ends.is_none_or(|ends| ends > soon)
        };
        if let Some(token) = login.token.as_ref().filter(is_good) {
            return Ok((token.text.clone(), login.number));
        }
        if let Some(refused) = &login.refused {
            return Err(refused.clone());
        }
        match log_in(&self.cloud, &self.identity, limit) {
            Ok((token, _)) => {
                login.number += 1;
                login.token = Some(token.clone());
                Ok((token.text, login.number))
            }
            Err(error) => {
                if error.fault() == Some(FaultKind::NotAuthenticated) {
                    login.refused = Some(error.clone());
                }
                Err(error)
            }
        }
    }

    /// One request. A refusal has with it in how long the cloud wants to be asked again.
    fn ask(
        &self,
        call: &Call,
        token: Option<&str>,
        limit: Limit,
    ) -> Result<Answered, (OpenStackError, Option<Duration>)> {
        let none = || {
            let lacks = if call.service == Service::Volume {
                "the catalogue has no service for volumes (Cinder): do without volume=, attach_disk and detach_disk"
            } else {
                "the catalogue has no network: take network=none"
            };
            OpenStackError::Settings(lacks.to_owned())
        };
        let (server, base, version) = self.server(call.service).ok_or_else(|| (none(), None))?;
        let microversion = format!("compute {}", self.microversion);
        let mut headers = vec![];
        if call.service == Service::Compute {
            headers.push(("openstack-api-version", microversion.as_str()));
        }
        headers.extend(token.map(|token| ("x-auth-token", token)));
        ask(server, &format!("{base}{version}{}", call.path), call, &headers, limit)
    }
}

/// Until when a call may take.
fn longest(limit: Limit) -> Duration {
    limit.left().min(LONGEST_CALL)
}

fn ask(
    server: &HttpsServer,
    url: &str,
    call: &Call,
    more: &[(&str, &str)],
    limit: Limit,
) -> Result<Answered, (OpenStackError, Option<Duration>)> {
    let body = call.body.as_ref().map(Value::to_string).unwrap_or_default();
    let kind = if call.method == "PATCH" {
        "application/openstack-images-v2.1-json-patch"
    } else {
        "application/json"
    };
    let mut headers = vec![("accept", "application/json"), ("content-type", kind)];
    headers.extend(more);
    let ask = Ask { method: call.method, url, headers: &headers, body: body.as_bytes() };
    let answer = server.ask(&ask, longest(limit)).map_err(|error| match error.into() {
        OpenStackError::Late { limit, .. } => {
            (OpenStackError::Late { what: call.to_string(), limit, last: None }, None)
        }
        error => (error, None),
    })?;
    let request = answer.header("x-openstack-request-id").or(answer.header("x-compute-request-id"));
    let request = request.map(str::to_owned);
    if !(200..300).contains(&answer.status) {
        let said = words(answer.status, &answer.body);
        let fault = Fault::new(answer.status.into(), &said, request.as_deref());
        let later = later(&answer, &fault);
        return Err((OpenStackError::Fault { what: call.to_string(), fault }, later));
    }
    let date = answer.header("date").and_then(http_date);
    let token = answer.header("x-subject-token").map(str::to_owned);
    Ok(Answered { waited: answer.waited, retries: 0, request, date, token, body: answer.body })
}

/// In how long a cloud wants to be asked again that refused since it has too many requests, or is down for a while. A quota that is used up
/// is another thing, whatever its status.
fn later(answer: &Answer, fault: &Fault) -> Option<Duration> {
    let seconds =
        answer.header("retry-after").and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
    match fault.kind {
        FaultKind::RateLimited => Some(seconds.unwrap_or(LATER.1)),
        FaultKind::Server if answer.status == 503 => seconds,
        _ => None,
    }
}

/// Asks Keystone for a token; with it, its body.
fn log_in(cloud: &Cloud, identity: &HttpsServer, limit: Limit) -> Result<(Token, Value), OpenStackError> {
    let body = Some(cloud.credentials.request());
    let call = Call { service: Service::Identity, method: "POST", path: "/auth/tokens".to_owned(), body };
    let url = format!("{}{}", cloud.identity, call.path);
    let garbled = |why: &str| OpenStackError::Garbled {
        host: identity.host().to_owned(),
        what: call.to_string(),
        why: why.to_owned(),
    };
    let is_away =
        |error: &OpenStackError| matches!(error, OpenStackError::Unreachable { was_sent: true, .. });
    let asked = || ask(identity, &url, &call, &[], limit).map_err(|(error, _)| error);
    let (answered, ..) = through_outages(limit, is_away, asked)?;
    let mut body: Value =
        serde_json::from_slice(&answered.body).map_err(|error| garbled(&error.to_string()))?;
    let text = answered.token.ok_or_else(|| garbled("it gives no token"))?;
    let token = Token { text, ends: catalogue::end(&body["token"]) };
    Ok((token, body["token"].take()))
}

/// The host and port of a URL, as errors name it.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest)
}

/// The newest version that both know.
fn microversion(version: &Value) -> Result<String, String> {
    let newest = version["version"]["version"].as_str().unwrap_or_default();
    let minor = newest.strip_prefix("2.").and_then(|minor| minor.parse::<u32>().ok()).unwrap_or(0);
    let (oldest, known) = MICROVERSIONS;
    if minor < oldest {
        return Err(format!(
            "Nova there speaks up to version {newest:?} of its API, and virtbench needs 2.{oldest} (Rocky, 2018): see the compute endpoint"
        ));
    }
    Ok(format!("2.{}", minor.min(known)))
}

/// The body of a call for one action on a server.
pub(crate) fn action(server: &str, name: &str, value: Value) -> Call {
    Call::of("POST", format!("servers/{}/action", encoded(server)), Some(json!({ name: value })))
}

/// An `IMF-fixdate`, such as `Sun, 29 Nov 2026 04:38:01 GMT`.
fn http_date(text: &str) -> Option<SystemTime> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [_, day, month, year, clock, "GMT"] = words[..] else { return None };
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = months.iter().position(|name| *name == month)? + 1;
    crate::time::parse(&format!("{year}-{month:02}-{day}T{clock}"))
}

#[derive(Deserialize)]
struct Networks {
    networks: Vec<Network>,
}

#[derive(Deserialize)]
struct Network {
    id: String,
}

/// The id of the network of this name or id; `auto` and `none` stand for themselves.
pub(crate) fn find(session: &Session, wanted: &str, limit: Limit) -> Result<String, OpenStackError> {
    if matches!(wanted, "auto" | "none") {
        return Ok(wanted.to_owned());
    }
    for field in ["id", "name"] {
        let path = format!("networks?fields=id&{field}={}", encoded(wanted));
        let call = Call { service: Service::Network, ..Call::get(path) };
        let mut found = session.get::<Networks>(&call, limit)?.0.networks;
        match (found.pop(), found.len()) {
            (Some(network), 0) => return Ok(network.id),
            (Some(_), _) => {
                let why =
                    format!("several networks are named {wanted}: give the id in network= of the address");
                return Err(OpenStackError::Settings(why));
            }
            _ => {}
        }
    }
    let why = format!(
        "there is no network {wanted}: see `openstack network list` and network= of the address, which takes auto and none as well"
    );
    Err(OpenStackError::Settings(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_that_both_know_is_taken() {
        let of = |version: &str| microversion(&json!({ "version": { "version": version } }));
        assert_eq!((of("2.93"), of("2.79")), (Ok("2.90".to_owned()), Ok("2.79".to_owned())));
        assert!(of("2.60").unwrap_err().contains("Rocky") && of("").is_err());
    }

    #[test]
    fn a_call_is_named_without_what_it_sends() {
        let call = action("ab/c", "rebuild", json!({"adminPass": "hunter2"}));
        assert_eq!(call.to_string(), "POST servers/ab%2Fc/action rebuild");
        assert_eq!(Call::get("servers/detail?name=x").to_string(), "GET servers/detail");
        assert_eq!(host("https://h:5000/v3"), "h:5000");
    }

    #[test]
    fn the_clouds_clock_is_read() {
        let read = http_date("Sun, 29 Nov 2026 04:38:01 GMT");
        assert_eq!(read, crate::time::parse("2026-11-29T04:38:01"));
        assert_eq!(http_date("yesterday"), None);
    }
}
