//! Faults of mail servers, in words that like faults have in common.

use crate::fault::{Fault, FaultKind};

/// As much of what a server says is kept, in characters.
const MOST_CHARACTERS: usize = 120;

/// What is wrong with a message or its delivery.
pub(super) fn of_smtp(error: &async_smtp::error::Error) -> Fault {
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
pub(super) fn of_imap(error: &async_imap::error::Error) -> Fault {
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

#[cfg(test)]
mod tests {
    use super::*;

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
