//! Sending a message.

use async_smtp::{Envelope, SendableEmail, SmtpClient, SmtpTransport};
use tokio::io::{AsyncBufReadExt, BufReader, BufStream};

use super::fault::of_smtp;
use crate::address::Address;
use crate::fault::{Fault, FaultKind};

/// Of a greeting, so many bytes are read.
const MOST_GREETING: u64 = 1_000;

/// How the server greets.
pub(super) async fn greeting(address: &Address) -> Result<String, Fault> {
    use tokio::io::AsyncReadExt;
    let mut line = String::new();
    let stream = address.connect().await?;
    BufReader::new(stream.take(MOST_GREETING)).read_line(&mut line).await.map_err(Fault::gone)?;
    match line.split_at_checked(4) {
        Some(("220 " | "220-", words)) => Ok(words.trim().to_owned()),
        _ => Err(Fault::new(
            FaultKind::Protocol,
            format!("{address} greets by {:?}, not as SMTP does", line.trim()),
        )),
    }
}

/// Sends a message over a connection of its own, and says goodbye.
pub(super) async fn send(address: &Address, from: &str, to: &str, letter: String) -> Result<(), Fault> {
    let unusable = |words: String| Fault::new(FaultKind::Protocol, words);
    let parsed =
        |text: &str| text.parse().map_err(|error| unusable(format!("{text} is no address: {error}")));
    let envelope = Envelope::new(Some(parsed(from)?), vec![parsed(to)?])
        .map_err(|error| unusable(format!("{error}")))?;
    let stream = BufStream::new(address.connect().await?);
    // With it each command is a packet of its own, so that answers wait for acknowledgements that are kept back for 40 ms.
    let client = SmtpClient::new().pipelining(false);
    let mut transport = SmtpTransport::new(client, stream).await.map_err(|error| of_smtp(&error))?;
    transport.send(SendableEmail::new(envelope, letter)).await.map_err(|error| of_smtp(&error))?;
    transport.quit().await.map_err(|error| of_smtp(&error))
}
