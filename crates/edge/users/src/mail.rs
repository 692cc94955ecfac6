//! Mail that users send over SMTP and read over IMAP.

use std::time::Duration;

use async_imap::{Client, Session};
use async_smtp::{Envelope, SendableEmail, SmtpClient, SmtpTransport};
use futures_util::StreamExt;
use tokio::io::{AsyncBufReadExt, BufReader, BufStream};
use tokio::net::TcpStream;
use virtbench_units::Random;

use crate::address::Address;
use crate::draws::{Stream, Weighted, stream};
use crate::service::{Fault, FaultKind, Service, ServiceUser, within};

/// Where the number of a mailbox stands in the name of its user.
const NUMBER: &str = "{}";

/// How often users do each, beside the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MailMix {
    /// Send a message to another mailbox, over a connection of its own.
    pub send: u32,
    /// Look how many messages there are: the inbox is selected.
    pub check: u32,
    /// Read the newest message; nothing is read of an empty inbox.
    pub read: u32,
    /// Keep a message in the inbox, as a client does with what it has sent.
    pub append: u32,
}

impl Default for MailMix {
    fn default() -> Self {
        Self { send: 2, check: 4, read: 3, append: 1 }
    }
}

/// Whose mail it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    smtp: Address,
    imap: Address,
    user: String,
    password: String,
    mailboxes: u32,
    domain: String,
    message: String,
    weights: Weighted,
    /// Whether anything but sending is done, for which a mailbox is open.
    has_mailboxes: bool,
}

impl Mail {
    /// Users of the servers at both addresses. `user` is the name of each, in which `{}` stands for the number of the mailbox, from
    /// 1 to `mailboxes`; all have one password. Those who only send need no server of mailboxes. Mail goes to NAME@`domain`, its text
    /// has `message_bytes` bytes.
    ///
    /// # Errors
    /// Several mailboxes of one name, none, or a mix of nothing.
    pub fn new(
        (smtp, imap): (Address, Address),
        (user, password): (&str, String),
        mailboxes: u32,
        domain: &str,
        (message_bytes, mix): (usize, MailMix),
    ) -> Result<Self, String> {
        if mailboxes == 0 || (mailboxes > 1 && !user.contains(NUMBER)) {
            return Err(format!(
                "{mailboxes} mailboxes need a name with {NUMBER} for their number: user{NUMBER}"
            ));
        }
        let weights = [mix.send, mix.check, mix.read, mix.append];
        if weights.iter().all(|weight| *weight == 0) {
            return Err("a mix has something to do".into());
        }
        Ok(Self {
            smtp,
            imap,
            user: user.to_owned(),
            password,
            mailboxes,
            domain: domain.to_owned(),
            message: text(message_bytes),
            weights: Weighted::new(weights),
            has_mailboxes: weights[1..].iter().any(|weight| *weight > 0),
        })
    }

    /// The name of the user of mailbox number `mailbox`, from 0.
    fn name(&self, mailbox: u32) -> String {
        self.user.replace(NUMBER, &(mailbox + 1).to_string())
    }

    /// The address of mail to that user.
    fn address(&self, mailbox: u32) -> String {
        let name = self.name(mailbox);
        if name.contains('@') { name } else { format!("{name}@{}", self.domain) }
    }

    /// A message from one mailbox to another.
    fn letter(&self, from: u32, to: u32, number: u64) -> String {
        format!(
            "From: <{}>\r\nTo: <{}>\r\nSubject: message {number}\r\nMessage-ID: <{from}.{to}.{number}@virtbench>\r\n\r\n{}",
            self.address(from),
            self.address(to),
            self.message
        )
    }
}

/// Lines of text, so many bytes with their ends.
fn text(bytes: usize) -> String {
    const LINE: &str = "The quick brown fox jumps over the lazy dog, and nobody wakes it.\r\n";
    let mut text = LINE.repeat(bytes / LINE.len());
    text.push_str(&"x".repeat(bytes % LINE.len()));
    text
}

impl Service for Mail {
    type User = MailUser;

    fn kinds(&self) -> Vec<String> {
        ["send", "check", "read", "append"].map(str::to_owned).into()
    }

    async fn prepare(&self, limit: Duration) -> Result<Option<String>, Fault> {
        let greeting = within(limit, self::greeting(&self.smtp)).await?;
        if self.has_mailboxes {
            within(limit, Mailbox::open(&self.imap, &self.name(0), &self.password)).await?;
        }
        Ok(Some(greeting).filter(|words| !words.is_empty()))
    }

    fn login(&self) -> &'static str {
        "check --user, and --password or --password-file"
    }

    fn user(&self, number: u32, seed: u64) -> MailUser {
        MailUser {
            mail: self.clone(),
            mailbox: number % self.mailboxes,
            sent: u64::from(number) << 32,
            random: stream(seed, number, Stream::Choice),
            open: None,
        }
    }
}

/// A user with a mailbox.
pub struct MailUser {
    mail: Mail,
    mailbox: u32,
    sent: u64,
    random: Random,
    /// Nothing while an answer is awaited, so that a user who stops waiting has no connection.
    open: Option<Mailbox>,
}

impl MailUser {
    async fn mailbox(&mut self) -> Result<Mailbox, Fault> {
        match self.open.take() {
            Some(open) => Ok(open),
            None => {
                let name = self.mail.name(self.mailbox);
                Mailbox::open(&self.mail.imap, &name, &self.mail.password).await
            }
        }
    }

    fn next_letter(&mut self, to: u32) -> String {
        self.sent += 1;
        self.mail.letter(self.mailbox, to, self.sent)
    }
}

impl ServiceUser for MailUser {
    async fn connect(&mut self) -> Result<(), Fault> {
        if self.mail.has_mailboxes {
            self.open = Some(self.mailbox().await?);
        }
        Ok(())
    }

    fn choose(&mut self) -> usize {
        self.mail.weights.choose(&mut self.random)
    }

    async fn perform(&mut self, kind: usize) -> Result<(), Fault> {
        if kind == 0 {
            let to = u32::try_from(self.random.below(self.mail.mailboxes.into())).unwrap_or(0);
            let letter = self.next_letter(to);
            let (from, to) = (self.mail.address(self.mailbox), self.mail.address(to));
            return send(&self.mail.smtp, &from, &to, letter).await;
        }
        let letter = (kind == 3).then(|| self.next_letter(self.mailbox));
        let mut mailbox = self.mailbox().await?;
        match (kind, letter) {
            (_, Some(letter)) => mailbox.append(&letter).await?,
            (1, None) => mailbox.check().await?,
            _ => mailbox.read_newest().await?,
        }
        self.open = Some(mailbox);
        Ok(())
    }
}

/// As much of what a server says is kept, in characters.
const MOST_CHARACTERS: usize = 120;

/// What is wrong with a message or its delivery.
fn of_smtp(error: &async_smtp::error::Error) -> Fault {
    use async_smtp::error::Error;
    match error {
        Error::Transient(response) | Error::Permanent(response) => {
            let first = response.message.first().map_or("", String::as_str);
            Fault::new(FaultKind::Refused, format!("SMTP {} {}", response.code, general(first)))
        }
        Error::Io(error) => Fault::gone(error),
        error => Fault::new(FaultKind::Protocol, format!("SMTP: {error}")),
    }
}

/// What is wrong with a mailbox.
fn of_imap(error: &async_imap::error::Error) -> Fault {
    use async_imap::error::Error;
    match error {
        Error::Bad(words) => Fault::new(FaultKind::Refused, format!("IMAP BAD {}", general(told(words)))),
        Error::No(words) => Fault::new(FaultKind::Refused, format!("IMAP NO {}", general(told(words)))),
        Error::Io(error) => Fault::gone(error),
        Error::ConnectionLost => Fault::gone("the server closed it"),
        error => Fault::new(FaultKind::Protocol, format!("IMAP: {error}")),
    }
}

/// What an IMAP server says, without the names that the client's crate gives to its parts.
fn told(words: &str) -> &str {
    words.split_once("info: Some(\"").map_or(words, |(_, told)| told.trim_end_matches("\")"))
}

/// Words without addresses, which differ from message to message.
fn general(words: &str) -> String {
    let mut is_inside = false;
    let kept = words.chars().filter(|letter| {
        is_inside = *letter == '<' || (is_inside && *letter != '>');
        !is_inside && *letter != '>'
    });
    kept.take(MOST_CHARACTERS).collect::<String>().trim().to_owned()
}

/// The mailbox that everybody has.
const INBOX: &str = "INBOX";

/// A connection of a user who is logged in.
struct Mailbox(Session<TcpStream>);

impl Mailbox {
    /// Connects and logs in.
    async fn open(address: &Address, user: &str, password: &str) -> Result<Self, Fault> {
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
    async fn check(&mut self) -> Result<(), Fault> {
        self.select().await.map(drop)
    }

    /// Reads the newest message as a whole.
    async fn read_newest(&mut self) -> Result<(), Fault> {
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
    async fn append(&mut self, letter: &str) -> Result<(), Fault> {
        self.0.append(INBOX, None, None, letter).await.map_err(|error| of_imap(&error))
    }

    /// The number of the newest message, zero where there is none.
    async fn select(&mut self) -> Result<u32, Fault> {
        Ok(self.0.select(INBOX).await.map_err(|error| of_imap(&error))?.exists)
    }
}

/// Of a greeting, so many bytes are read.
const MOST_GREETING: u64 = 1_000;

/// How the server greets.
async fn greeting(address: &Address) -> Result<String, Fault> {
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
async fn send(address: &Address, from: &str, to: &str, letter: String) -> Result<(), Fault> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn mail(user: &str, mailboxes: u32) -> Result<Mail, String> {
        let address = Address::parse("127.0.0.1:25", 25).unwrap();
        let shape = (1_000, MailMix::default());
        Mail::new((address.clone(), address), (user, "x".into()), mailboxes, "example.org", shape)
    }

    #[test]
    fn mailboxes_have_numbered_users() {
        let many = mail("user{}", 3).unwrap();
        assert_eq!((many.name(0).as_str(), many.address(2).as_str()), ("user1", "user3@example.org"));
        assert_eq!(mail("a@b.org", 1).unwrap().address(0), "a@b.org");
        assert!(mail("user", 2).unwrap_err().contains("user{}") && mail("user{}", 0).is_err());
        assert_eq!(many.user(4, 1).mailbox, 1, "users share mailboxes where there are more of them");
    }

    #[test]
    fn a_letter_has_a_head_and_as_many_bytes_as_were_asked_for() {
        let letter = mail("user{}", 3).unwrap().letter(0, 1, 7);
        let (head, text) = letter.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("To: <user2@example.org>") && head.contains("Subject: message 7"), "{head}");
        assert_eq!(text.len(), 1_000);
        assert!(text.split("\r\n").all(|line| line.len() < 80));
    }

    #[test]
    fn faults_are_told_without_addresses() {
        assert_eq!(general("5.1.1 <a@b.org>: user unknown"), "5.1.1 : user unknown");
        assert_eq!(general(&"x".repeat(500)).len(), MOST_CHARACTERS);
        let gone = of_imap(&async_imap::error::Error::ConnectionLost);
        assert_eq!(gone.kind, FaultKind::Gone);
        let no = of_imap(&async_imap::error::Error::No("code: None, info: Some(\"[AUTH] failed\")".into()));
        assert_eq!((no.kind, no.words.as_str()), (FaultKind::Refused, "IMAP NO [AUTH] failed"));
    }
}
