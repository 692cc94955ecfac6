//! A mailbox that a user has opened.

use async_imap::{Client, Session};
use futures_util::StreamExt;
use tokio::net::TcpStream;

use super::fault::of_imap;
use crate::address::Address;
use crate::fault::{Fault, FaultKind};

/// The mailbox that everybody has.
const INBOX: &str = "INBOX";

/// A connection of a user who is logged in.
pub(super) struct Mailbox(Session<TcpStream>);

impl Mailbox {
    /// Connects and logs in.
    pub(super) async fn open(address: &Address, user: &str, password: &str) -> Result<Self, Fault> {
        let mut client = Client::new(address.connect().await?);
        match client.read_response().await {
            Ok(Some(_)) => {}
            Ok(None) => return Err(Fault::gone("the server closed it without a greeting")),
            Err(error) => return Err(Fault::gone(error)),
        }
        let session = client.login(user, password).await.map_err(|(error, _)| {
            let fault = of_imap(&error);
            let kind = if fault.kind == FaultKind::Refused { FaultKind::Login } else { fault.kind };
            Fault::new(kind, format!("user {user} cannot log in: {fault}"))
        })?;
        Ok(Self(session))
    }

    /// Looks how many messages there are.
    pub(super) async fn check(&mut self) -> Result<(), Fault> {
        self.select().await.map(drop)
    }

    /// Reads the newest message as a whole.
    pub(super) async fn read_newest(&mut self) -> Result<(), Fault> {
        let newest = self.select().await?;
        if newest == 0 {
            return Ok(());
        }
        let mut parts = self.0.fetch(newest.to_string(), "BODY[]").await.map_err(|error| of_imap(&error))?;
        while let Some(part) = parts.next().await {
            part.map_err(|error| of_imap(&error))?;
        }
        Ok(())
    }

    /// Keeps a message in the inbox.
    pub(super) async fn append(&mut self, letter: &str) -> Result<(), Fault> {
        self.0.append(INBOX, None, None, letter).await.map_err(|error| of_imap(&error))
    }

    /// The number of the newest message, zero where there is none.
    async fn select(&mut self) -> Result<u32, Fault> {
        Ok(self.0.select(INBOX).await.map_err(|error| of_imap(&error))?.exists)
    }
}
