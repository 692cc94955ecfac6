//! Calls of the API, logged in.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use virtbench_https::{Answer, Ask, HttpsServer, Limit, Secret, through_outages};

use crate::address::Address;
use crate::error::{Fault, FaultKind, ProxmoxError};

/// One call takes no longer than this, whatever its deadline.
const LONGEST_CALL: Duration = Duration::from_secs(60);
/// What stays as it is in a form or a path.
const PLAIN: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A call: a method of HTTP, a path below the API, and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// Such as `POST`.
    pub method: &'static str,
    /// Such as `nodes/pve1/qemu`.
    pub path: String,
    /// Names and values.
    pub arguments: Vec<(&'static str, String)>,
}

impl Call {
    /// Asks for something. It may be asked twice.
    pub fn get(path: impl Into<String>) -> Self {
        Self { method: "GET", path: path.into(), arguments: Vec::new() }
    }

    /// Has something done.
    pub fn of(method: &'static str, path: impl Into<String>, arguments: Vec<(&'static str, String)>) -> Self {
        Self { method, path: path.into(), arguments }
    }

    /// With one more argument.
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.arguments.push((name, value.into()));
        self
    }

    fn form(&self) -> String {
        let pairs = self.arguments.iter().map(|(name, value)| format!("{name}={}", encoded(value)));
        pairs.collect::<Vec<_>>().join("&")
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

/// Part of a path or of a form.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, &PLAIN).to_string()
}

/// A value with what the server and the network took of the time.
#[derive(Debug)]
pub(crate) struct Answered {
    /// `data` of what was answered.
    pub value: Value,
    /// The time from handing requests over until their answers began.
    pub waited: Duration,
    /// How often it was asked again.
    pub retries: u32,
}

#[derive(Debug, Clone)]
struct Ticket {
    cookie: String,
    token: String,
}

#[derive(Debug)]
struct Login {
    ticket: Option<Ticket>,
    /// Which login it is.
    number: u64,
    /// It was refused: it is not tried again, so that the user is not locked out.
    refused: Option<ProxmoxError>,
}

/// A session that threads share.
pub(crate) struct Session {
    server: HttpsServer,
    base: String,
    user: String,
    is_token: bool,
    secret: Secret,
    login: Mutex<Login>,
}

impl Session {
    /// Logs in, unless the user is a token.
    pub fn open(address: &Address, secret: Secret, limit: Limit) -> Result<Self, ProxmoxError> {
        let session = Self {
            server: HttpsServer::new(&address.host, &address.trust)?,
            base: format!("https://{}/api2/json/", address.host),
            user: address.user.clone(),
            is_token: address.is_token(),
            secret,
            login: Mutex::new(Login { ticket: None, number: 0, refused: None }),
        };
        if !session.is_token {
            session.logged_in(limit)?;
        }
        Ok(session)
    }

    /// Makes a call; once more if the ticket had expired, which the server says before it does anything.
    pub fn call(&self, call: &Call, limit: Limit) -> Result<Answered, ProxmoxError> {
        let begun = Instant::now();
        let (ticket, number) = self.credentials(limit)?;
        let before = begun.elapsed();
        match self.ask(call, ticket.as_ref(), limit) {
            Err(error) if ticket.is_some() && error.fault() == Some(FaultKind::NotAuthenticated) => {
                self.expired(number);
                let (ticket, _) = self.credentials(limit)?;
                let before = begun.elapsed();
                let answered = self.ask(call, ticket.as_ref(), limit)?;
                Ok(Answered { waited: before + answered.waited, retries: 1, ..answered })
            }
            answered => answered.map(|answered| Answered { waited: before + answered.waited, ..answered }),
        }
    }

    /// Asks until somebody answers, for what may be asked twice.
    pub fn through_outages(&self, call: &Call, limit: Limit) -> Result<Answered, ProxmoxError> {
        let is_away = |error: &ProxmoxError| matches!(error, ProxmoxError::Unreachable { .. });
        let (answered, before, failed) = through_outages(limit, is_away, || self.call(call, limit))?;
        let (waited, retries) = (before + answered.waited, failed + answered.retries);
        Ok(Answered { waited, retries, ..answered })
    }

    /// Breaks what is in flight. A ticket ends by itself.
    pub fn close(&self) {
        self.server.shut_down();
    }

    fn login(&self) -> MutexGuard<'_, Login> {
        self.login.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn expired(&self, number: u64) {
        let mut login = self.login();
        if login.number == number {
            login.ticket = None;
        }
    }

    fn credentials(&self, limit: Limit) -> Result<(Option<Ticket>, u64), ProxmoxError> {
        if self.is_token {
            return Ok((None, 0));
        }
        self.logged_in(limit).map(|(ticket, number)| (Some(ticket), number))
    }

    /// The first caller logs in; others wait for it.
    fn logged_in(&self, limit: Limit) -> Result<(Ticket, u64), ProxmoxError> {
        let mut login = self.login();
        if let Some(ticket) = &login.ticket {
            return Ok((ticket.clone(), login.number));
        }
        if let Some(refused) = &login.refused {
            return Err(refused.clone());
        }
        let arguments = vec![("username", self.user.clone()), ("password", self.secret.reveal().to_owned())];
        let call = Call::of("POST", "access/ticket", arguments);
        match self.ask(&call, None, limit).and_then(|answered| self.ticket(&call, &answered.value)) {
            Ok(ticket) => {
                login.ticket = Some(ticket.clone());
                login.number += 1;
                Ok((ticket, login.number))
            }
            Err(error) => {
                if error.fault().is_some() {
                    login.refused = Some(error.clone());
                }
                Err(error)
            }
        }
    }

    fn ticket(&self, call: &Call, value: &Value) -> Result<Ticket, ProxmoxError> {
        if crate::inventory::is_true(&value["NeedTFA"]) {
            let why = format!(
                "{} logs in with a second factor: take a token instead (proxmox:USER@REALM!TOKEN@HOST)",
                self.user
            );
            return Err(ProxmoxError::Settings(why));
        }
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        let both = text("ticket").zip(text("CSRFPreventionToken"));
        let (ticket, token) = both.ok_or_else(|| self.garbled(call, "it gives no ticket"))?;
        Ok(Ticket { cookie: format!("PVEAuthCookie={ticket}"), token })
    }

    pub fn garbled(&self, call: &Call, why: &str) -> ProxmoxError {
        let (host, what) = (self.server.host().to_owned(), call.to_string());
        ProxmoxError::Garbled { host, what, why: why.to_owned() }
    }

    fn ask(&self, call: &Call, ticket: Option<&Ticket>, limit: Limit) -> Result<Answered, ProxmoxError> {
        let (mut url, form) = (format!("{}{}", self.base, call.path), call.form());
        let is_in_url = matches!(call.method, "GET" | "DELETE") && !form.is_empty();
        if is_in_url {
            url = format!("{url}?{form}");
        }
        let body = if is_in_url { "" } else { form.as_str() };
        let secret = self.is_token.then(|| format!("PVEAPIToken={}={}", self.user, self.secret.reveal()));
        let mut headers = vec![("accept", "application/json")];
        if call.method != "GET" && call.method != "DELETE" {
            headers.push(("content-type", "application/x-www-form-urlencoded"));
        }
        headers.extend(secret.as_deref().map(|secret| ("authorization", secret)));
        if let Some(Ticket { cookie, token }) = ticket {
            headers.extend([("cookie", cookie.as_str()), ("csrfpreventiontoken", token.as_str())]);
        }
        let ask = Ask { method: call.method, url: &url, headers: &headers, body: body.as_bytes() };
        let answer =
            self.server.ask(&ask, limit.left().min(LONGEST_CALL)).map_err(|error| match error.into() {
                ProxmoxError::Late { limit, .. } => ProxmoxError::Late { what: call.to_string(), limit },
                error => error,
            })?;
        let waited = answer.waited;
        self.understood(call, &answer).map(|value| Answered { value, waited, retries: 0 })
    }

    fn understood(&self, call: &Call, answer: &Answer) -> Result<Value, ProxmoxError> {
        let parsed: Result<Value, _> = serde_json::from_slice(&answer.body);
        match (answer.status, parsed) {
            (200, Ok(mut value)) if value.get("data").is_some() => Ok(value["data"].take()),
            (200, Ok(_)) => Err(self.garbled(call, "it has no data")),
            (200, Err(error)) => Err(self.garbled(call, &error.to_string())),
            (404, Err(_)) => Err(self.garbled(call, "HTTP status 404")),
            (status, parsed) => {
                let message = refusal(status, parsed.ok().as_ref());
                Err(ProxmoxError::Fault { what: call.to_string(), fault: Fault::new(status, &message) })
            }
        }
    }
}

/// What a refusal says: its message, and what is wrong with which argument.
fn refusal(status: u16, body: Option<&Value>) -> String {
    let message = body.and_then(|body| body["message"].as_str()).unwrap_or_default().trim();
    let mut said = if message.is_empty() { format!("HTTP status {status}") } else { message.to_owned() };
    for (name, why) in body.and_then(|body| body["errors"].as_object()).into_iter().flatten() {
        said.push_str(&format!(" {name}: {}", why.as_str().unwrap_or_default().trim()));
    }
    said
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refusal_says_which_argument_is_wrong() {
        let body = json!({"data": null, "message": "Parameter verification failed.\n", "errors": {"vmid": "too small\n"}});
        assert_eq!(refusal(400, Some(&body)), "Parameter verification failed. vmid: too small");
        assert_eq!(refusal(502, None), "HTTP status 502");
    }

    #[test]
    fn arguments_arrive_as_they_were() {
        let call = Call::get("nodes").with("name", "a b&c=d\n").with("other", "ä");
        assert_eq!(call.form(), "name=a%20b%26c%3Dd%0A&other=%C3%A4");
        assert_eq!(call.to_string(), "GET nodes");
    }
}
