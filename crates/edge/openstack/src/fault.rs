//! How a cloud says no.

use std::fmt;

use serde_json::Value;

/// What kind of refusal, as far as what to do next differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// User, password, credential or token is wrong, or the token has ended.
    NotAuthenticated,
    /// The role does not allow it.
    Denied,
    /// It is not there.
    NotFound,
    /// Another task holds it, or it is in no state for it (409).
    Conflict,
    /// A quota of the project is used up.
    Quota,
    /// The scheduler found no host for it.
    NoValidHost,
    /// The cloud wants fewer requests (413, 429).
    RateLimited,
    /// A service is down, or failed by itself (5xx).
    Server,
    /// This cannot be done here.
    Unsupported,
    /// An argument is wrong.
    InvalidArgument,
    /// Any other.
    Other,
}

/// Words of messages, and what they say; the first that is found counts, whatever the status.
const WORDS: [(&str, FaultKind); 7] = [
    ("no valid host", FaultKind::NoValidHost),
    ("not enough hosts", FaultKind::NoValidHost),
    ("quota exceeded", FaultKind::Quota),
    ("exceeds allowed", FaultKind::Quota),
    ("exceeded quota", FaultKind::Quota),
    ("not supported", FaultKind::Unsupported),
    ("not implemented", FaultKind::Unsupported),
];

impl FaultKind {
    /// The kind of an answer with this status of HTTP, or of a server's fault with this code, and these words.
    #[must_use]
    pub fn of(status: u64, message: &str) -> Self {
        let message = message.to_lowercase();
        if let Some((_, kind)) = WORDS.iter().find(|(words, _)| message.contains(words)) {
            return *kind;
        }
        match status {
            400 => Self::InvalidArgument,
            401 => Self::NotAuthenticated,
            403 => Self::Denied,
            404 => Self::NotFound,
            409 => Self::Conflict,
            413 | 429 => Self::RateLimited,
            405 | 501 => Self::Unsupported,
            500..=599 => Self::Server,
            _ => Self::Other,
        }
    }

    /// What to do about it, as the end of a sentence.
    #[must_use]
    pub fn advice(self) -> &'static str {
        match self {
            Self::NotAuthenticated => {
                "see user, project and domains in clouds.yaml or OS_... variables; a token that has ended can only be renewed with a password or \
                 an application credential"
            }
            Self::Denied => {
                "give the user a role that may do this on the project, or leave the operation out"
            }
            Self::NotFound => "see whether somebody removed it meanwhile",
            Self::Conflict => "see what else changes this server",
            Self::Quota => "see `openstack quota show`, use fewer servers, or have the quota raised",
            Self::NoValidHost => {
                "see `openstack hypervisor list` for hosts that are up and have room, and what the flavor asks for"
            }
            Self::RateLimited => "lower the rate",
            Self::Server => "see the log of the service for this request",
            Self::Unsupported => "leave this operation out",
            Self::InvalidArgument => "see the cloud's own words for what it does not take",
            Self::Other => "see the log of the service for this request",
        }
    }
}

/// A refusal as the cloud sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What kind.
    pub kind: FaultKind,
    /// The status of HTTP, or the code of a server's fault; 0 where there is none.
    pub status: u64,
    /// The cloud's own words.
    pub message: String,
    /// The request by which its logs name it.
    pub request: Option<String>,
}

/// What is kept of the cloud's words, in characters.
const MOST: usize = 400;

impl Fault {
    /// Of an answer with this status of HTTP, or of a server's fault with this code.
    #[must_use]
    pub fn new(status: u64, message: &str, request: Option<&str>) -> Self {
        let clean = |letter: char| if letter.is_control() { ' ' } else { letter };
        let short = |text: &str| -> String { text.trim().chars().map(clean).take(MOST).collect() };
        let message = short(message);
        Self { kind: FaultKind::of(status, &message), status, message, request: request.map(short) }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.message.is_empty() { "refused without a reason" } else { &self.message })?;
        self.request.as_ref().map_or(Ok(()), |request| write!(f, " ({request})"))
    }
}

/// What a refusal's body says: Nova wraps its message in an object named after the kind, Keystone in `error`; Glance writes HTML.
pub(crate) fn words(status: u16, body: &[u8]) -> String {
    let told: Option<Value> = serde_json::from_slice(body).ok();
    let message = told.as_ref().and_then(|told| {
        let inner = told.as_object()?.values().find_map(|inner| inner["message"].as_str());
        inner.or_else(|| told["message"].as_str()).map(str::to_owned)
    });
    // Glance has tags of HTML within JSON too.
    let message = message.map(|text| plain(text.as_bytes()).unwrap_or(text));
    message.or_else(|| plain(body)).unwrap_or_else(|| format!("HTTP status {status}"))
}

/// The text of a page, without its head and tags.
fn plain(body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(body).ok()?;
    let text = text.split_once("<body>").map_or(text, |(_, body)| body);
    let mut is_tag = false;
    let kept: String = text
        .chars()
        .take(4 * MOST)
        .filter(|letter| {
            let was_tag = is_tag;
            is_tag = (is_tag || *letter == '<') && *letter != '>';
            !is_tag && !was_tag
        })
        .collect();
    let words: Vec<&str> = kept.split_whitespace().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_openstack_is_told_by_its_status_and_words() {
        for (status, message, kind) in [
            (401, "The request you have made requires authentication.", FaultKind::NotAuthenticated),
            (403, "Policy doesn't allow os_compute_api:os-migrate-server:migrate", FaultKind::Denied),
            (
                403,
                "Quota exceeded for instances: Requested 1, but already used 10 of 10 instances",
                FaultKind::Quota,
            ),
            (500, "No valid host was found. There are not enough hosts available.", FaultKind::NoValidHost),
            (400, "No valid host found for cold migrate", FaultKind::NoValidHost),
            (404, "Instance x could not be found.", FaultKind::NotFound),
            (409, "Cannot 'stop' instance x while it is in vm_state stopped", FaultKind::Conflict),
            (413, "", FaultKind::RateLimited),
            (429, "", FaultKind::RateLimited),
            (500, "Unexpected API Error.", FaultKind::Server),
            (503, "", FaultKind::Server),
            (400, "Invalid input for field/attribute name", FaultKind::InvalidArgument),
        ] {
            assert_eq!(Fault::new(status, message, None).kind, kind, "{message}");
            assert!(!kind.advice().is_empty());
        }
        let long = Fault::new(500, &"x\n".repeat(4000), Some("req-1"));
        assert!(long.message.len() == MOST && long.to_string().ends_with(" (req-1)"));
    }

    #[test]
    fn the_words_of_each_service_are_found() {
        assert_eq!(words(409, br#"{"conflictingRequest": {"code": 409, "message": "busy"}}"#), "busy");
        assert_eq!(words(401, br#"{"error": {"code": 401, "message": "who?", "title": "x"}}"#), "who?");
        let page = b"<html>\n <head><title>404</title></head>\n <body>\n  <h1>404 Not Found</h1>\n  No image<br />\n </body></html>";
        assert_eq!(words(404, page), "404 Not Found No image");
        let tagged =
            br#"{"message": "You are not authorized to complete add_image action.<br /><br />\n\n\n"}"#;
        assert_eq!(words(403, tagged), "You are not authorized to complete add_image action.");
        assert_eq!(words(502, b""), "HTTP status 502");
    }
}
