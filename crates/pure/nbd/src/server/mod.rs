//! The server's side: one [`Connection`] for each client.
//!
//! The driver's loop:
//! 1. Receive. Bytes whose place is known beforehand ([`Connection::wanted`]) may go straight there
//!    ([`Connection::received`]); all others go through [`Connection::take`], again and again until it gives nothing more.
//! 2. Do what the [`Event`]s ask. When a request is over, call [`Connection::complete`].
//! 3. Send what [`Connection::pieces`] lists, and say how much of it has left ([`Connection::sent`]).
//! 4. Sleep until something happens or [`Connection::next_deadline`]; then call [`Connection::on_timer`].
//!
//! Negotiation knows NBD_OPT_EXPORT_NAME, ABORT, LIST, STARTTLS, INFO, GO, STRUCTURED_REPLY and META_CONTEXT with
//! `base:allocation`; everything else is answered as unsupported. A client holds [`Limits::max_requests`] slots and
//! [`Limits::max_bytes`] of payload at most; beyond that its bytes stay where they are until a reply has left.

mod connection;
mod export;
mod negotiation;
mod options;
mod session;

use thiserror::Error;

pub use connection::Connection;
pub use export::{Export, Limits, ServerConfig, Tls};

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Fill the slot's buffer.
    Read,
    /// Store the slot's buffer.
    Write,
    /// Make stable every write that completed before this, on whichever connection to the export. No range.
    Flush,
    /// The range's contents are no longer needed.
    Trim,
    /// The range shall read as zeros.
    WriteZeroes {
        /// It may give its room back.
        may_trim: bool,
    },
}

/// One request, checked: inside the export, in whole blocks, allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Names it until its reply has left; below [`Limits::max_requests`].
    pub slot: u32,
    /// What to do.
    pub op: Op,
    /// Where, in bytes.
    pub offset_bytes: u64,
    /// How much, in bytes.
    pub len_bytes: u32,
    /// It is complete only when it is stable.
    pub fua: bool,
}

/// What a client's bytes mean.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The client has asked for TLS. Send what is to be sent, then speak TLS from the next byte on and go on with this
    /// connection inside.
    StartTls,
    /// The client has chosen this export, the place in the list that [`Connection::take`] was given. Requests follow.
    Attached {
        /// The export that was chosen, by its place in the list.
        export: usize,
    },
    /// A write begins. Have a buffer for it ready before the next bytes, or [`Connection::complete`] it with an error:
    /// its payload is then thrown away. Without memory for it take no bytes, and say so ([`Connection::hold`]).
    Room {
        /// The request's slot.
        slot: u32,
        /// How large, in bytes.
        len_bytes: u32,
    },
    /// These bytes of a write's payload.
    Data {
        /// The request's slot.
        slot: u32,
        /// Where in the slot's buffer, in bytes.
        at_bytes: usize,
        /// The payload; never reaches beyond the length that [`Event::Room`] said.
        bytes: &'a [u8],
    },
    /// A request is whole. Do it, then [`Connection::complete`].
    Request(Request),
    /// The client says goodbye. When [`Connection::is_over`], close.
    Goodbye,
}

/// Why a connection must be closed at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Violation {
    /// What came is not fixed-newstyle NBD.
    #[error("the client does not speak fixed-newstyle NBD: {0}")]
    Protocol(&'static str),
    /// The client asked for an export by NBD_OPT_EXPORT_NAME, to which the only refusal is to close.
    #[error("the client asked for an export that does not exist, or that it may not have without TLS")]
    NoExport,
    /// More options than a client needs.
    #[error("the client did not come to an end within {0} options")]
    TooManyOptions(u32),
    /// The negotiation took too long.
    #[error("the client did not choose an export in time")]
    Silent,
    /// Half a request, or a reply that is not taken, for too long.
    #[error("the client stopped in the middle of a request or does not take its replies")]
    Stalled,
}
