//! A session over HTTPS: logged in, and again when it has expired.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use roxmltree::Node;
use virtbench_https::{Answer, Ask, HttpsError, HttpsServer, Limit, Secret};

use crate::address::Address;
use crate::error::{FaultKind, VsphereError};
use crate::reply::{self, NoValue, Reference};
use crate::request::Request;

/// One call takes no longer than this, whatever its deadline.
const LONGEST_CALL: Duration = Duration::from_secs(60);

/// A value with what the server and the network took of the time.
#[derive(Debug)]
pub(crate) struct Answered<T> {
    /// What was answered.
    pub value: T,
    /// The time from handing requests over until their answers began.
    pub waited: Duration,
    /// How often it was asked again.
    pub retries: u32,
}

/// The server's own objects and what it says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// Such as `VMware vCenter Server 8.0.2 build-22617221`.
    pub software: String,
    /// `VirtualCenter` or `HostAgent`.
    pub kind: String,
    /// The version of its API.
    pub api: String,
}

impl About {
    /// Whether it is a host by itself, without the calls that only a vCenter has.
    #[must_use]
    pub fn is_host(&self) -> bool {
        self.kind == "HostAgent"
    }
}

/// Where the server keeps what.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    pub about: About,
    pub root: Reference,
    pub properties: Reference,
    pub views: Reference,
    pub search: Reference,
    sessions: Reference,
}

enum Login {
    Never,
    Cookie(String),
    /// It was refused: it is not tried again, so that the user is not locked out.
    Refused(VsphereError),
}

struct State {
    login: Login,
    /// Which login this is.
    number: u64,
}

/// A session that threads share.
pub(crate) struct Session {
    wire: Wire,
    user: String,
    password: Secret,
    content: Content,
    state: Mutex<State>,
}

impl Session {
    /// Asks the server what it is, and logs in.
    pub fn open(address: &Address, password: Secret, limit: Limit) -> Result<Self, VsphereError> {
        let wire = Wire::new(address)?;
        let instance = Reference::new("ServiceInstance", "ServiceInstance");
        let request = Request::new("RetrieveServiceContent", &instance, |_| {});
        let content = ask(&wire, &request, None, limit, &content)?.value;
        let state = Mutex::new(State { login: Login::Never, number: 0 });
        let session = Self { wire, user: address.user.clone(), password, content, state };
        session.logged_in(limit)?;
        Ok(session)
    }

    /// Where the server keeps what.
    pub fn content(&self) -> &Content {
        &self.content
    }

    /// Calls a method; once more if the session had expired, which the server then says before it does anything.
    pub fn call<T>(
        &self,
        request: &Request,
        limit: Limit,
        take: impl Fn(Node<'_, '_>) -> Result<T, String>,
    ) -> Result<Answered<T>, VsphereError> {
        let begun = Instant::now();
        let (cookie, number) = self.logged_in(limit)?;
        let before = begun.elapsed();
        match ask(&self.wire, request, Some(&cookie), limit, &take) {
            Err(error) if error.fault() == Some(FaultKind::NotAuthenticated) => {
                self.expired(number);
                let (cookie, _) = self.logged_in(limit)?;
                let before = begun.elapsed();
                let answer = ask(&self.wire, request, Some(&cookie), limit, &take)?;
                Ok(Answered { waited: before + answer.waited, retries: 1, ..answer })
            }
            answer => answer.map(|answer| Answered { waited: before + answer.waited, ..answer }),
        }
    }

    /// Which login the session is at: objects that belong to a session end with it.
    pub fn number(&self) -> u64 {
        self.state().number
    }

    /// Logs out, and breaks what is in flight.
    pub fn close(&self, limit: Limit) {
        if let Login::Cookie(cookie) = &self.state().login {
            let request = Request::new("Logout", &self.content.sessions, |_| {});
            let _ = ask(&self.wire, &request, Some(cookie), limit, &nothing);
        }
        self.wire.shut_down();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn expired(&self, number: u64) {
        let mut state = self.state();
        if state.number == number && matches!(state.login, Login::Cookie(_)) {
            state.login = Login::Never;
        }
    }

    /// The cookie, and which login it is from. The first caller logs in; others wait for it.
    fn logged_in(&self, limit: Limit) -> Result<(String, u64), VsphereError> {
        let mut state = self.state();
        match &state.login {
            Login::Cookie(cookie) => return Ok((cookie.clone(), state.number)),
            Login::Refused(error) => return Err(error.clone()),
            Login::Never => {}
        }
        let request = Request::new("Login", &self.content.sessions, |xml| {
            xml.text("userName", &self.user);
            xml.text("password", self.password.reveal());
        });
        match log_in(&self.wire, &request, limit) {
            Ok(cookie) => {
                state.login = Login::Cookie(cookie.clone());
                state.number += 1;
                Ok((cookie, state.number))
            }
            Err(error) => {
                if error.fault().is_some() {
                    state.login = Login::Refused(error.clone());
                }
                Err(error)
            }
        }
    }
}

fn log_in(wire: &Wire, request: &Request, limit: Limit) -> Result<String, VsphereError> {
    let answer = wire.post(request.method, &request.envelope, None, longest(limit))?;
    let cookie = answer.cookie().map(str::to_owned);
    understand(wire, request, answer.status, &answer.body, |_| Ok(()))?;
    cookie.ok_or_else(|| VsphereError::Garbled {
        host: wire.host().to_owned(),
        what: request.method,
        why: "it sets no cookie for the session".to_owned(),
    })
}

fn longest(limit: Limit) -> Duration {
    limit.left().min(LONGEST_CALL)
}

fn ask<T>(
    wire: &Wire,
    request: &Request,
    cookie: Option<&str>,
    limit: Limit,
    take: &impl Fn(Node<'_, '_>) -> Result<T, String>,
) -> Result<Answered<T>, VsphereError> {
    let answer = wire.post(request.method, &request.envelope, cookie, longest(limit))?;
    let value = understand(wire, request, answer.status, &answer.body, take)?;
    Ok(Answered { value, waited: answer.waited, retries: 0 })
}

/// Faults come with status 500.
fn understand<T>(
    wire: &Wire,
    request: &Request,
    status: u16,
    body: &[u8],
    take: impl FnOnce(Node<'_, '_>) -> Result<T, String>,
) -> Result<T, VsphereError> {
    let (host, what) = (wire.host().to_owned(), request.method);
    match (reply::read(body, take), status) {
        (Ok(value), 200) => Ok(value),
        (Err(NoValue::Fault(fault)), _) => Err(VsphereError::Fault { what, fault }),
        (Err(NoValue::Garbled(why)), 200) => Err(VsphereError::Garbled { host, what, why }),
        (_, status) => Err(VsphereError::Http { host, what, status }),
    }
}

fn content(response: Node<'_, '_>) -> Result<Content, String> {
    let value = reply::child(response, "returnval").ok_or("it returns nothing")?;
    let object = |name: &str| {
        reply::child(value, name).ok_or_else(|| format!("it has no {name}")).and_then(reply::reference)
    };
    let about = reply::child(value, "about").ok_or("it does not say what it is")?;
    let word =
        |name: &str| reply::text(about, name).unwrap_or("unknown").chars().take(200).collect::<String>();
    Ok(Content {
        about: About { software: word("fullName"), kind: word("apiType"), api: word("apiVersion") },
        root: object("rootFolder")?,
        properties: object("propertyCollector")?,
        views: object("viewManager")?,
        search: object("searchIndex")?,
        sessions: object("sessionManager")?,
    })
}

fn nothing(_: Node<'_, '_>) -> Result<(), String> {
    Ok(())
}

/// Not more than a moment from now.
pub(crate) fn soon() -> Limit {
    Limit::at(Instant::now() + Duration::from_secs(2))
}

/// Which version of the API is spoken: that of vSphere 6.5, which every later one speaks too.
const VERSION: &str = "urn:vim25/6.5";

/// A server's HTTP side.
pub(crate) struct Wire {
    server: HttpsServer,
    url: String,
}

impl Wire {
    /// Nothing is connected yet.
    pub fn new(address: &Address) -> Result<Self, VsphereError> {
        Ok(Self { server: HttpsServer::new(&address.host, &address.trust)?, url: address.url.clone() })
    }

    /// Who is asked.
    pub fn host(&self) -> &str {
        self.server.host()
    }

    /// Sends a request and reads the answer, within `limit`.
    pub fn post(
        &self,
        what: &str,
        body: &[u8],
        cookie: Option<&str>,
        limit: Duration,
    ) -> Result<Answer, VsphereError> {
        let mut headers = vec![("content-type", "text/xml; charset=utf-8"), ("soapaction", VERSION)];
        headers.extend(cookie.map(|cookie| ("cookie", cookie)));
        let ask = Ask { method: "POST", url: &self.url, headers: &headers, body };
        self.server.ask(&ask, limit).map_err(|error| match error {
            HttpsError::Late { limit, .. } => VsphereError::Late { what: what.to_owned(), limit, last: None },
            error => error.into(),
        })
    }

    /// Breaks requests that are in flight; later ones fail.
    pub fn shut_down(&self) {
        self.server.shut_down();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_a_vcenter_is_told_by_its_kind() {
        let about = |kind: &str| About { software: String::new(), kind: kind.into(), api: String::new() };
        assert!(about("HostAgent").is_host() && !about("VirtualCenter").is_host());
    }
}
