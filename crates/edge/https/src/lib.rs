//! HTTPS to control planes: whom to trust, where secrets come from, and requests that are bounded in time and size.
//!
//! It knows no platform's API. What a server says is its caller's to understand; the secret is in no error and in no log.

mod limit;
mod options;
mod secret;
mod server;
mod trust;

pub use limit::{Limit, Polling, through_outages};
pub use options::options;
pub use secret::Secret;
pub use server::{Answer, Ask, HttpsServer, MOST_BYTES};
pub use trust::{HttpsError, Trust, make_loopback_certificate};
