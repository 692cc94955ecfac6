//! A client made of anybody's bytes: the server ends the connection or serves on, within its bounds, and never panics.
//!
//! Bytes choose among steps. Most steps say something well-formed, so that what lies behind it is reached too. The fuzz
//! target `nbd` feeds the same function.

#![allow(dead_code, clippy::cast_possible_truncation)]

use virtbench_nbd::ErrorCode;
use virtbench_nbd::server::{Tls, Violation};

use super::memory_server::{MemoryServer, config};
use super::speech::*;

/// Bytes that end in zeros.
struct Source<'a>(std::slice::Iter<'a, u8>);

impl Source<'_> {
    fn byte(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    /// Small numbers mostly; now and then one near the end of what there is.
    fn number(&mut self) -> u64 {
        match self.byte() {
            255 => u64::MAX - u64::from(self.byte()),
            254 => 1 << (self.byte() % 64),
            253 => 65536 - u64::from(self.byte()),
            odd if odd % 16 == 15 => u64::from(odd),
            small => u64::from(small % 16) * 512,
        }
    }

    fn bytes(&mut self) -> Vec<u8> {
        let len = usize::from(self.byte());
        (0..len).map(|_| self.byte()).collect()
    }

    fn name(&mut self) -> &'static str {
        ["disk", "disk", "frozen", "floppy", ""][usize::from(self.byte() % 5)]
    }
}

/// Plays a client to its end or the end of the bytes. With `hello`, the handshake is already in progress.
pub fn play(bytes: &[u8]) {
    let mut source = Source(bytes.iter());
    let tls = [Tls::Off, Tls::Offered, Tls::Required, Tls::Off][usize::from(source.byte() % 4)];
    let mut server = MemoryServer::new(&config(tls));
    let mut ended = Ok(());
    while source.0.len() > 0 && ended.is_ok() {
        ended = step(&mut source, &mut server);
        // Output is bounded: requests with their payload, or answers to options.
        let unsent: usize = server
            .connection
            .pieces()
            .map(|piece| match piece {
                virtbench_nbd::Piece::Header(bytes) => bytes.len(),
                virtbench_nbd::Piece::Data { len, .. } => len,
            })
            .sum();
        assert!(unsent < (64 << 10) + 16384 + 4096, "{unsent} bytes wait to be sent");
    }
    // Whatever happened, what is in flight can be finished.
    while !server.under_way.is_empty() {
        server.complete(0, Ok(()));
    }
    if ended.is_ok() {
        let _ = server.settle();
    }
}

fn step(source: &mut Source<'_>, server: &mut MemoryServer) -> Result<(), Violation> {
    server.now_ns += 1;
    let said = match source.byte() % 20 {
        0 => {
            let place = usize::from(source.byte());
            let result = if source.byte() < 64 { Err(ErrorCode::Io) } else { Ok(()) };
            if !server.under_way.is_empty() {
                server.complete(place % server.under_way.len(), result);
            }
            return Ok(());
        }
        1 => return server.send(usize::from(source.byte()) * 16),
        2 => return server.settle(),
        3 => {
            server.now_ns = server.now_ns.saturating_add(source.number() % 100_000);
            return server.connection.on_timer(server.now_ns);
        }
        4 => {
            if let Some((slot, ..)) = server.connection.wanted() {
                server.connection.complete(server.now_ns, slot, Err(ErrorCode::NoMem));
            }
            return Ok(());
        }
        5 => {
            server.connection.shut_down();
            return Ok(());
        }
        6 => source.bytes(),
        7 => hello(),
        8 => vec![0, 0, 0, source.byte()],
        9 => option(u32::from(source.byte() % 12), &source.bytes()),
        10 => option(u32::from(source.byte() % 12), &[]),
        11 => go(GO, source.name(), &[3]),
        12 => go(INFO, source.name(), &[1, 2, 3, 99]),
        13 => contexts(SET_META_CONTEXT, source.name(), &["base:allocation", "x"]),
        14 => contexts(LIST_META_CONTEXT, source.name(), &[]),
        15 => [hello(), option(STRUCTURED_REPLY, &[]), go(GO, "disk", &[])].concat(),
        16 => {
            let (offset, len) = (source.number(), source.number() % 9000);
            write(u16::from(source.byte() % 3), source.number(), offset, &vec![source.byte(); len as usize])
        }
        17 => {
            // The header of a write whose payload may never come.
            request(0, WRITE, source.number(), source.number(), source.number() as u32)
        }
        18 => [hello(), option(EXPORT_NAME, source.name().as_bytes())].concat(),
        _ => {
            let (flags, command) = (u16::from(source.byte() % 32), u16::from(source.byte() % 9));
            request(flags, command, source.number(), source.number(), source.number() as u32)
        }
    };
    // In two pieces, the second of which may go straight to a buffer.
    let cut = usize::from(source.byte()) % (said.len() + 1);
    server.receive(&said[..cut], false)?;
    server.receive(&said[cut..], source.byte() < 128)
}
