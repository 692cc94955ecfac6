//! SOAP requests over HTTPS.

use std::time::Duration;

use virtbench_https::{Answer, Ask, HttpsError, HttpsServer};

use crate::address::Address;
use crate::error::VsphereError;

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
