//! Users of mail, on servers that know just enough of SMTP and IMAP; real ones are in the recipe `mail`.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use virtbench_record::{UsersOutcome, UsersPlan, UsersService};
use virtbench_users::{Address, Aim, Mail, MailMix, UsersError, run};

/// A server of lines, whose threads end with the test's process: `answer` gets each line and what has come so far.
fn server(greeting: &'static str, answer: fn(&str, &mut BufReader<TcpStream>) -> String) -> Address {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = Address::parse(&listener.local_addr().unwrap().to_string(), 1).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let (mut reader, mut writer) = (BufReader::new(stream.try_clone().unwrap()), stream);
                let mut line = String::new();
                let _ = writer.write_all(greeting.as_bytes());
                while reader.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
                    let answer = answer(line.trim_end(), &mut reader);
                    if writer.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                    line.clear();
                }
            });
        }
    });
    address
}

/// Knows `user1`, is busy when `user2` is to get mail, and nobody else.
fn smtp(line: &str, reader: &mut BufReader<TcpStream>) -> String {
    let mut text = String::new();
    match line.get(..4) {
        Some("RCPT") if line.contains("user2") => "451 4.3.0 <user2@mail.test>: try later\r\n".into(),
        Some("RCPT") if !line.contains("user1") => "550 5.1.1 <user3@mail.test>: unknown\r\n".into(),
        Some("DATA") => {
            let mut sent = "354 go on\r\n".to_owned();
            reader.get_mut().write_all(sent.as_bytes()).unwrap();
            sent.clear();
            while text != ".\r\n" {
                text.clear();
                reader.read_line(&mut text).unwrap();
            }
            "250 2.0.0 taken\r\n".into()
        }
        Some("QUIT") => "221 bye\r\n".into(),
        _ => "250 fine\r\n".into(),
    }
}

/// Has three messages, and keeps none of user 3.
fn imap(line: &str, reader: &mut BufReader<TcpStream>) -> String {
    let mut words = line.split(' ');
    let (tag, command) = (words.next().unwrap(), words.next().unwrap());
    let said = match command {
        "LOGIN" if !line.contains("bench") => {
            return format!("{tag} NO [AUTHENTICATIONFAILED] wrong password\r\n");
        }
        "SELECT" => "* 3 EXISTS\r\n* 0 RECENT\r\n* FLAGS (\\Seen)\r\n",
        "FETCH" if line.contains(" 3 ") => "* 3 FETCH (BODY[] {5}\r\nhello)\r\n",
        "APPEND" => {
            let bytes = line.rsplit_once('{').unwrap().1.trim_end_matches(['}', '+']).parse().unwrap();
            let mut text = vec![0; bytes];
            reader.get_mut().write_all(b"+ go on\r\n").unwrap();
            reader.read_exact(&mut text).unwrap();
            let mut rest = String::new();
            reader.read_line(&mut rest).unwrap();
            match String::from_utf8(text).unwrap().contains("To: <user3@") {
                true => return format!("{tag} NO [OVERQUOTA] full\r\n"),
                false => "",
            }
        }
        _ => "",
    };
    format!("{said}{tag} OK done\r\n")
}

fn plan(users: u32) -> UsersPlan {
    UsersPlan {
        service: UsersService::Mail,
        users,
        threads: 1,
        ramp_up_ns: 0,
        time_ns: 1_000_000_000,
        rate: None,
        think_ns: Some(5_000_000),
        timeout_ns: 5_000_000_000,
        seed: 1,
    }
}

fn applied(password: &str, mix: MailMix) -> Result<UsersOutcome, UsersError> {
    applied_to(server("* OK ready\r\n", imap), password, mix)
}

fn applied_to(mailboxes: Address, password: &str, mix: MailMix) -> Result<UsersOutcome, UsersError> {
    let servers = (server("220 mail.test ESMTP\r\n", smtp), mailboxes);
    let mail = Mail::new(servers, ("user{}", password.into()), 3, "mail.test", (2_000, mix)).unwrap();
    run(&mail, &Aim::default(), &plan(3), &AtomicBool::new(false), &mut |_| {})
}

#[test]
fn mail_is_sent_and_read_and_refusals_are_counted_by_kind() {
    let outcome = applied("bench", MailMix { send: 3, check: 1, read: 1, append: 3 }).unwrap();
    assert_eq!(outcome.server.as_deref(), Some("mail.test ESMTP"));
    for kind in ["send", "check", "read", "append"] {
        assert!(outcome.operations[kind].completed > 5, "{kind}: {outcome:?}");
    }
    let kinds: Vec<&str> = outcome.error_kinds.keys().map(String::as_str).collect();
    assert_eq!(kinds, ["IMAP NO [OVERQUOTA] full", "SMTP 451 4.3.0 : try later", "SMTP 550 5.1.1 : unknown"]);
    assert!(outcome.operations["send"].failed > 5 && outcome.operations["append"].failed > 5, "{outcome:?}");
    assert_eq!((outcome.operations["check"].failed, outcome.operations["read"].failed), (0, 0));
}

#[test]
fn who_only_sends_needs_no_mailbox() {
    let nobody = Address::parse("127.0.0.1:1", 1).unwrap();
    let outcome = applied_to(nobody, "", MailMix { send: 1, check: 0, read: 0, append: 0 }).unwrap();
    assert!(outcome.operations["send"].completed > 5, "{outcome:?}");
}

#[test]
fn a_wrong_password_is_told_before_anything_is_measured() {
    let refused = applied("other", MailMix::default()).unwrap_err().to_string();
    assert!(refused.contains("user user1 cannot log in") && refused.contains("wrong password"), "{refused}");
}

/// The first connection is greeted and let in, and the others wait for ever.
#[test]
fn users_who_never_get_their_connections_are_stopped() {
    static GREETED: AtomicBool = AtomicBool::new(false);
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let mailboxes = Address::parse(&listener.local_addr().unwrap().to_string(), 1).unwrap();
    thread::spawn(move || {
        let mut silent = Vec::new();
        for mut stream in listener.incoming().flatten() {
            if GREETED.swap(true, Ordering::Relaxed) {
                silent.push(stream);
                continue;
            }
            stream.write_all(b"* OK ready\r\n").unwrap();
            let mut reader = BufReader::new(stream);
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let tag = line.split(' ').next().unwrap();
            reader.get_mut().write_all(format!("{tag} OK in\r\n").as_bytes()).unwrap();
        }
    });
    let smtp = server("220 mail.test ESMTP\r\n", smtp);
    let shape = (2_000, MailMix::default());
    let mail = Mail::new((smtp, mailboxes), ("user{}", "bench".into()), 3, "mail.test", shape).unwrap();
    let stop = AtomicBool::new(false);
    let ended = thread::scope(|scope| {
        scope.spawn(|| {
            while !GREETED.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(10));
            }
            thread::sleep(Duration::from_millis(200));
            stop.store(true, Ordering::Relaxed);
        });
        run(&mail, &Aim::default(), &plan(3), &stop, &mut |_| {})
    });
    assert!(matches!(ended, Err(UsersError::Stopped)), "{ended:?}");
}
