//! The transmission phase: cuts a client's bytes into requests, and keeps account of those in flight.

use std::collections::VecDeque;

use super::options::{Chosen, Head};
use super::{Event, Export, Limits, Op, Request, Violation};
use crate::Outbox;
use crate::protocol::{Command, ErrorCode, REQUEST_BYTES, RequestHeader};

/// What a slot is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    /// Its payload is coming.
    Receiving,
    /// Its payload is coming and will be thrown away.
    Refused(ErrorCode),
    /// The driver has it.
    UnderWay,
    /// Its reply is on its way.
    Replying,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    state: State,
    request: Request,
    cookie: u64,
}

/// Payload being received.
#[derive(Debug, Clone, Copy)]
struct Payload {
    slot: u32,
    at: usize,
    left: usize,
}

/// Requests and replies of one client.
#[derive(Debug)]
pub(super) struct Session {
    rules: Rules,
    max_bytes: u64,
    shutting_down: bool,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Payload of all that is not free, in bytes.
    held_bytes: u64,
    header: [u8; REQUEST_BYTES],
    header_len: usize,
    /// The header must wait until a reply has left.
    is_blocked: bool,
    payload: Option<Payload>,
    /// A write whose payload has come.
    whole: Option<u32>,
    /// Replies on their way, and how many bytes of each.
    leaving: VecDeque<(u32, usize)>,
}

impl Session {
    pub(super) fn new(export: &Export, chosen: Chosen, limits: &Limits) -> Self {
        let request = Request { slot: 0, op: Op::Flush, offset_bytes: 0, len_bytes: 0, fua: false };
        let slots = (0..limits.max_requests.max(1)).map(|slot| Slot {
            state: State::Free,
            request: Request { slot, ..request },
            cookie: 0,
        });
        let slots: Vec<Slot> = slots.collect();
        Self {
            rules: Rules::new(export, chosen, limits.max_payload_bytes),
            max_bytes: limits.max_bytes.max(limits.max_payload_bytes.into()),
            shutting_down: false,
            free: slots.iter().rev().map(|slot| slot.request.slot).collect(),
            slots,
            held_bytes: 0,
            header: [0; REQUEST_BYTES],
            header_len: 0,
            is_blocked: false,
            payload: None,
            whole: None,
            leaving: VecDeque::new(),
        }
    }

    /// From now on requests are answered by NBD_ESHUTDOWN.
    pub(super) fn shut_down(&mut self) {
        self.shutting_down = true;
    }

    /// Requests that the driver has, or has to receive.
    pub(super) fn under_way(&self) -> usize {
        self.slots.len() - self.free.len() - self.leaving.len()
    }

    /// Whether a header is there that must wait for a reply to leave.
    pub(super) fn is_full(&self) -> bool {
        self.is_blocked
    }

    /// Whether the client has said half of something.
    pub(super) fn is_amid(&self) -> bool {
        self.payload.is_some() || (self.header_len > 0 && !self.is_blocked)
    }

    pub(super) fn wanted(&self) -> Option<(u32, usize, usize)> {
        let payload = self.payload?;
        let receives = self.slots[payload.slot as usize].state == State::Receiving;
        receives.then_some((payload.slot, payload.at, payload.left))
    }

    /// `count` bytes of the payload have come, at most as many as are left.
    pub(super) fn received(&mut self, count: usize, outbox: &mut Outbox<u32>) {
        let Some(payload) = &mut self.payload else { return };
        let count = count.min(payload.left);
        (payload.at, payload.left) = (payload.at + count, payload.left - count);
        let slot = payload.slot;
        if payload.left == 0 {
            self.payload = None;
            match self.slots[slot as usize].state {
                State::Refused(code) => self.fail(slot, code, outbox),
                _ => self.whole = Some(slot),
            }
        }
    }

    /// The next event, or none until there are more bytes or fewer requests.
    pub(super) fn take<'b>(
        &mut self,
        input: &mut &'b [u8],
        outbox: &mut Outbox<u32>,
    ) -> Result<Option<Event<'b>>, Violation> {
        loop {
            if let Some(slot) = self.whole.take() {
                let slot = &mut self.slots[slot as usize];
                slot.state = State::UnderWay;
                return Ok(Some(Event::Request(slot.request)));
            }
            if let Some(Payload { slot, at, left }) = self.payload {
                if input.is_empty() {
                    return Ok(None);
                }
                let (bytes, rest) = input.split_at(left.min(input.len()));
                *input = rest;
                let receives = self.slots[slot as usize].state == State::Receiving;
                self.received(bytes.len(), outbox);
                if receives {
                    return Ok(Some(Event::Data { slot, at_bytes: at, bytes }));
                }
                continue;
            }
            let (part, rest) = input.split_at((REQUEST_BYTES - self.header_len).min(input.len()));
            *input = rest;
            self.header[self.header_len..self.header_len + part.len()].copy_from_slice(part);
            self.header_len += part.len();
            if self.header_len < REQUEST_BYTES {
                return Ok(None);
            }
            let header = RequestHeader::decode(&self.header)
                .map_err(|_| Violation::Protocol("a request ends too soon"))?;
            if !header.magic_is_right {
                return Err(Violation::Protocol("a request does not begin as one"));
            }
            if Command::from_code(header.command) == Some(Command::Disconnect) {
                self.header_len = 0;
                return Ok(Some(Event::Goodbye));
            }
            let admitted = self.admit(&header, outbox);
            self.is_blocked = admitted.is_none();
            let Some(event) = admitted else { return Ok(None) };
            self.header_len = 0;
            if event.is_some() {
                return Ok(event);
            }
        }
    }

    /// Gives a request a slot, and says what the driver must do, if anything. None if there is no slot or no room.
    fn admit(&mut self, header: &RequestHeader, outbox: &mut Outbox<u32>) -> Option<Option<Event<'static>>> {
        let shutting_down = if self.shutting_down { Err(ErrorCode::Shutdown) } else { Ok(()) };
        let allowed = shutting_down.and_then(|()| self.rules.check(header));
        let payload = match allowed {
            Ok(Allowed::Do { op: Op::Read | Op::Write, .. }) => u64::from(header.len),
            _ => 0,
        };
        if self.held_bytes + payload > self.max_bytes {
            return None;
        }
        let slot = self.free.pop()?;
        self.held_bytes += payload;
        let (op, fua) = match allowed {
            Ok(Allowed::Do { op, fua }) => (op, fua),
            // What failed holds no payload, whatever it asked for.
            _ => (Op::Flush, false),
        };
        let request = Request { slot, op, offset_bytes: header.offset, len_bytes: header.len, fua };
        self.slots[slot as usize] = Slot { state: State::UnderWay, request, cookie: header.cookie };
        let brings_payload = Command::from_code(header.command) == Some(Command::Write) && header.len > 0;
        if brings_payload {
            self.payload = Some(Payload { slot, at: 0, left: header.len as usize });
        }
        Some(match allowed {
            Ok(Allowed::BlockStatus) => {
                self.reply(slot, &Head::all_data(header.cookie, header.len), 0, outbox);
                None
            }
            Ok(Allowed::Do { op: Op::Write, .. }) => {
                self.slots[slot as usize].state = State::Receiving;
                Some(Event::Room { slot, len_bytes: header.len })
            }
            Ok(Allowed::Do { .. }) => Some(Event::Request(request)),
            Err(code) if brings_payload => {
                self.slots[slot as usize].state = State::Refused(code);
                None
            }
            Err(code) => {
                // The kind of reply goes by the command, which is no longer in the slot.
                let structured =
                    matches!(Command::from_code(header.command), Some(Command::Read | Command::BlockStatus));
                self.fail_as(slot, code, structured, outbox);
                None
            }
        })
    }

    /// Ends a request. Says whether it was one that could be ended.
    pub(super) fn complete(
        &mut self,
        slot: u32,
        result: Result<(), ErrorCode>,
        outbox: &mut Outbox<u32>,
    ) -> bool {
        let Some(entry) = self.slots.get_mut(slot as usize) else { return false };
        let (request, cookie) = (entry.request, entry.cookie);
        match (entry.state, result) {
            (State::UnderWay, Err(code)) => self.fail(slot, code, outbox),
            (State::UnderWay, Ok(())) if request.op == Op::Read => {
                let head = if self.rules.structured() {
                    Head::data(cookie, request.offset_bytes, request.len_bytes)
                } else {
                    Head::simple(cookie, None)
                };
                self.reply(slot, &head, request.len_bytes as usize, outbox);
            }
            (State::UnderWay, Ok(())) => self.reply(slot, &Head::simple(cookie, None), 0, outbox),
            (State::Receiving, Err(code)) if self.payload.is_some_and(|payload| payload.slot == slot) => {
                entry.state = State::Refused(code);
            }
            _ => return false,
        }
        true
    }

    fn fail(&mut self, slot: u32, code: ErrorCode, outbox: &mut Outbox<u32>) {
        let reads = self.slots[slot as usize].request.op == Op::Read;
        self.fail_as(slot, code, reads, outbox);
    }

    fn fail_as(&mut self, slot: u32, code: ErrorCode, structured: bool, outbox: &mut Outbox<u32>) {
        let cookie = self.slots[slot as usize].cookie;
        let structured = structured && self.rules.structured();
        let head = if structured { Head::error(cookie, code) } else { Head::simple(cookie, Some(code)) };
        self.reply(slot, &head, 0, outbox);
    }

    fn reply(&mut self, slot: u32, head: &Head, data_bytes: usize, outbox: &mut Outbox<u32>) {
        self.slots[slot as usize].state = State::Replying;
        outbox.push_header(head.bytes());
        outbox.push_data(slot, data_bytes);
        self.leaving.push_back((slot, head.bytes().len() + data_bytes));
    }

    /// `count` bytes have left: frees the slots whose replies are out.
    pub(super) fn sent(&mut self, mut count: usize, mut on_free: impl FnMut(u32)) {
        while let Some((slot, left)) = self.leaving.front_mut() {
            if count < *left {
                *left -= count;
                return;
            }
            count -= *left;
            let slot = *slot;
            self.leaving.pop_front();
            let entry = &mut self.slots[slot as usize];
            entry.state = State::Free;
            if matches!(entry.request.op, Op::Read | Op::Write) {
                self.held_bytes -= u64::from(entry.request.len_bytes);
            }
            self.free.push(slot);
            self.is_blocked = false;
            on_free(slot);
        }
    }
}

/// Command flags (NBD_CMD_FLAG_*).
mod cmd {
    pub(super) const FUA: u16 = 1;
    pub(super) const NO_HOLE: u16 = 1 << 1;
    pub(super) const DF: u16 = 1 << 2;
    pub(super) const REQ_ONE: u16 = 1 << 3;
}

/// What an export allows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    size_bytes: u64,
    min_block_bytes: u32,
    read_only: bool,
    max_payload_bytes: u32,
    structured: bool,
    allocation: bool,
}

/// A request that is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allowed {
    /// For the driver.
    Do { op: Op, fua: bool },
    /// Answered here: the whole range is data.
    BlockStatus,
}

impl Rules {
    pub(super) fn new(export: &Export, chosen: Chosen, max_payload_bytes: u32) -> Self {
        Self {
            size_bytes: export.size_bytes,
            min_block_bytes: export.min_block_bytes.max(1),
            read_only: export.read_only,
            max_payload_bytes,
            structured: chosen.structured,
            allocation: chosen.allocation,
        }
    }

    /// Whether reads are answered by structured replies.
    pub(super) fn structured(&self) -> bool {
        self.structured
    }

    /// Says what to do, or with what the request fails (proto.md, "Request types" and "Error values").
    pub(super) fn check(&self, header: &RequestHeader) -> Result<Allowed, ErrorCode> {
        let command = Command::from_code(header.command).ok_or(ErrorCode::Inval)?;
        self.check_flags(command, header.flags)?;
        let op = match command {
            Command::Read => Op::Read,
            Command::Write => Op::Write,
            Command::Flush => Op::Flush,
            Command::Trim => Op::Trim,
            Command::WriteZeroes => Op::WriteZeroes { may_trim: header.flags & cmd::NO_HOLE == 0 },
            Command::BlockStatus if self.allocation => {
                self.check_range(header, ErrorCode::Inval)?;
                return Ok(Allowed::BlockStatus);
            }
            Command::BlockStatus | Command::Disconnect => return Err(ErrorCode::Inval),
        };
        let changes = !matches!(op, Op::Read | Op::Flush);
        if changes && self.read_only {
            return Err(ErrorCode::Perm);
        }
        match op {
            Op::Flush if header.offset != 0 || header.len != 0 => return Err(ErrorCode::Inval),
            Op::Flush => {}
            Op::Write | Op::WriteZeroes { .. } => self.check_range(header, ErrorCode::NoSpc)?,
            Op::Read | Op::Trim => self.check_range(header, ErrorCode::Inval)?,
        }
        if matches!(op, Op::Read | Op::Write) && header.len > self.max_payload_bytes {
            return Err(ErrorCode::Inval);
        }
        Ok(Allowed::Do { op, fua: changes && header.flags & cmd::FUA != 0 })
    }

    fn check_flags(&self, command: Command, flags: u16) -> Result<(), ErrorCode> {
        let mut known = cmd::FUA;
        match command {
            Command::WriteZeroes => known |= cmd::NO_HOLE,
            Command::Read if self.structured => known |= cmd::DF,
            Command::BlockStatus => known |= cmd::REQ_ONE,
            _ => {}
        }
        if flags & !known == 0 { Ok(()) } else { Err(ErrorCode::Inval) }
    }

    fn check_range(&self, header: &RequestHeader, beyond: ErrorCode) -> Result<(), ErrorCode> {
        let block = u64::from(self.min_block_bytes);
        let len = u64::from(header.len);
        if len == 0 || !header.offset.is_multiple_of(block) || !len.is_multiple_of(block) {
            return Err(ErrorCode::Inval);
        }
        match header.offset.checked_add(len) {
            Some(end) if end <= self.size_bytes => Ok(()),
            _ => Err(beyond),
        }
    }
}
