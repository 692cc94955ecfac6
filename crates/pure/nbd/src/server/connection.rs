//! One client, from greeting to goodbye.

use super::negotiation::{Negotiation, Progress};
use super::session::Session;
use super::{Event, Export, Limits, ServerConfig, Violation};
use crate::protocol::ErrorCode;
use crate::{Outbox, Piece};

/// Answers to options that may wait to be sent before no more options are taken, in bytes.
const MAX_UNSENT_BYTES: usize = 64 << 10;

#[derive(Debug)]
enum Phase {
    Negotiating(Negotiation),
    Serving(Session),
}

/// The server's side of one connection: a client's bytes in, events out; completions in, bytes out. `now_ns` is any
/// clock that does not go back.
#[derive(Debug)]
pub struct Connection {
    limits: Limits,
    phase: Phase,
    outbox: Outbox<u32>,
    /// Bytes of negotiation that have not left.
    greeting_bytes: usize,
    began_ns: u64,
    /// When the client last did something, or the first thing began to wait for it.
    moved_ns: u64,
    is_leaving: bool,
    is_held: bool,
}

impl Connection {
    /// For a client that has connected just now.
    #[must_use]
    pub fn new(config: &ServerConfig, now_ns: u64) -> Self {
        let mut outbox = Outbox::default();
        let phase = Phase::Negotiating(Negotiation::new(config, &mut outbox));
        let greeting_bytes = bytes_of(&outbox);
        Self {
            limits: config.limits,
            phase,
            outbox,
            greeting_bytes,
            began_ns: now_ns,
            moved_ns: now_ns,
            is_leaving: false,
            is_held: false,
        }
    }

    /// Says what the next bytes mean, and cuts them off `input`. None when there must first be more bytes, or when
    /// something must first be sent ([`Connection::is_full`]): what is left of `input` is then to be given again.
    ///
    /// # Errors
    /// The connection must be closed. What is in flight must still be awaited, its buffers are the driver's.
    pub fn take<'b>(
        &mut self,
        now_ns: u64,
        exports: &[Export],
        input: &mut &'b [u8],
    ) -> Result<Option<Event<'b>>, Violation> {
        let before = input.len();
        let event = self.next_event(exports, input);
        if input.len() != before {
            self.moved_ns = now_ns;
        }
        event
    }

    fn next_event<'b>(
        &mut self,
        exports: &[Export],
        input: &mut &'b [u8],
    ) -> Result<Option<Event<'b>>, Violation> {
        loop {
            if self.is_leaving || self.is_full() {
                return Ok(None);
            }
            let negotiation = match &mut self.phase {
                Phase::Serving(session) => {
                    let event = session.take(input, &mut self.outbox)?;
                    self.is_leaving = event == Some(Event::Goodbye);
                    return Ok(event);
                }
                Phase::Negotiating(negotiation) => negotiation,
            };
            let step = negotiation.step(exports, input, &mut self.outbox)?;
            self.greeting_bytes = bytes_of(&self.outbox);
            match step {
                Progress::Hungry => return Ok(None),
                Progress::Answered => {}
                // An attacker between client and server could have put it there.
                Progress::StartTls if !input.is_empty() => {
                    return Err(Violation::Protocol("something follows NBD_OPT_STARTTLS in the open"));
                }
                Progress::StartTls => return Ok(Some(Event::StartTls)),
                Progress::Goodbye => {
                    self.is_leaving = true;
                    return Ok(Some(Event::Goodbye));
                }
                Progress::Chosen(chosen) => {
                    let Some(export) = exports.get(chosen.export) else { return Err(Violation::NoExport) };
                    self.phase = Phase::Serving(Session::new(export, chosen, &self.limits));
                    return Ok(Some(Event::Attached { export: chosen.export }));
                }
            }
        }
    }

    /// Whether no bytes are taken until some have been sent.
    #[must_use]
    pub fn is_full(&self) -> bool {
        match &self.phase {
            Phase::Negotiating(_) => self.greeting_bytes > MAX_UNSENT_BYTES,
            Phase::Serving(session) => session.is_full(),
        }
    }

    /// Where the client's next bytes belong if they are payload of a write: slot, offset in its buffer, how many.
    #[must_use]
    pub fn wanted(&self) -> Option<(u32, usize, usize)> {
        match &self.phase {
            Phase::Negotiating(_) => None,
            Phase::Serving(session) => session.wanted(),
        }
    }

    /// Notes that `count` bytes, at most as many as [`Connection::wanted`] said, were put there directly.
    pub fn received(&mut self, now_ns: u64, count: usize) {
        if let Phase::Serving(session) = &mut self.phase
            && count > 0
        {
            session.received(count, &mut self.outbox);
            self.moved_ns = now_ns;
        }
    }

    /// A request is over: its reply will be sent, for a read with its buffer's data. For a write whose payload has not
    /// come, an error has that thrown away. Says whether the slot held such a request.
    pub fn complete(&mut self, now_ns: u64, slot: u32, result: Result<(), ErrorCode>) -> bool {
        let Phase::Serving(session) = &mut self.phase else { return false };
        if self.outbox.is_empty() {
            self.moved_ns = now_ns;
        }
        session.complete(slot, result, &mut self.outbox)
    }

    /// What is to be sent, in order; `of` is the slot whose buffer holds the data.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'_, u32>> {
        self.outbox.pieces()
    }

    /// Whether there is something to be sent.
    #[must_use]
    pub fn has_output(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Notes that the first `count` bytes have left. `on_free` is told each slot that is free from now on, and with it
    /// its buffer.
    pub fn sent(&mut self, now_ns: u64, count: usize, on_free: impl FnMut(u32)) {
        if count == 0 {
            return;
        }
        self.moved_ns = now_ns;
        self.outbox.sent(count);
        let of_negotiation = count.min(self.greeting_bytes);
        self.greeting_bytes -= of_negotiation;
        if let Phase::Serving(session) = &mut self.phase {
            session.sent(count - of_negotiation, on_free);
        }
    }

    /// From now on everything asked for is refused, because the server is going down.
    pub fn shut_down(&mut self) {
        match &mut self.phase {
            Phase::Negotiating(negotiation) => negotiation.shut_down(),
            Phase::Serving(session) => session.shut_down(),
        }
    }

    /// Whether the driver takes no bytes for now, for reasons of its own: a client that has said half of something is not
    /// to blame for that.
    pub fn hold(&mut self, now_ns: u64, is_held: bool) {
        if self.is_held && !is_held && self.outbox.is_empty() {
            self.moved_ns = now_ns;
        }
        self.is_held = is_held;
    }

    /// Whether the client has said goodbye: what it asked for before that is still to be done.
    #[must_use]
    pub const fn is_leaving(&self) -> bool {
        self.is_leaving
    }

    /// Requests that have not been completed, a write whose payload is coming among them.
    #[must_use]
    pub fn under_way(&self) -> usize {
        match &self.phase {
            Phase::Negotiating(_) => 0,
            Phase::Serving(session) => session.under_way(),
        }
    }

    /// Whether the client has said goodbye and everything is done and sent.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_leaving && self.under_way() == 0 && self.outbox.is_empty()
    }

    /// When [`Connection::on_timer`] must be called unless something happens before.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        match &self.phase {
            Phase::Negotiating(_) => Some(self.began_ns.saturating_add(self.limits.negotiation_ns)),
            Phase::Serving(session) if session.is_amid() && !self.is_held || !self.outbox.is_empty() => {
                Some(self.moved_ns.saturating_add(self.limits.stall_ns))
            }
            Phase::Serving(_) => None,
        }
    }

    /// Time has passed.
    ///
    /// # Errors
    /// The client took too long: close the connection.
    pub fn on_timer(&self, now_ns: u64) -> Result<(), Violation> {
        match (self.next_deadline(), &self.phase) {
            (Some(deadline_ns), Phase::Negotiating(_)) if deadline_ns <= now_ns => Err(Violation::Silent),
            (Some(deadline_ns), Phase::Serving(_)) if deadline_ns <= now_ns => Err(Violation::Stalled),
            _ => Ok(()),
        }
    }
}

fn bytes_of(outbox: &Outbox<u32>) -> usize {
    let len = |piece: Piece<'_, u32>| match piece {
        Piece::Header(bytes) => bytes.len(),
        Piece::Data { len, .. } => len,
    };
    outbox.pieces().map(len).sum()
}
