//! Users of a service: they think, ask, wait for the answer, and every response time is kept.
//!
//! [`run`] applies a load of [`virtbench_record::UsersPlan`] to anything that is a [`Service`]: pages of a web server
//! ([`Web`]), keys and values ([`KeyValue`]), mail ([`Mail`]). Users are tasks of a few threads. A closed loop asks again once the
//! answer is there, after a time to think; an open loop keeps to intended starts, from which response times count.
//!
//! What a driver of another kind needs as well stands for itself: the [`LoadCourse`] of a load, its threads ([`run_threads`]),
//! [`IntendedStarts`], [`Alarm`], the seconds of its series ([`series`]).

mod address;
mod course;
mod draws;
mod driver;
mod intended;
mod key_value;
mod local_service;
mod mail;
mod outcome;
mod service;
mod shared;
mod tally;
mod threads;
mod user;
mod web;

pub use address::Address;
pub use course::LoadCourse;
pub use intended::{Alarm, Ended, IntendedStarts};
pub use key_value::KeyValue;
pub use local_service::{
    LocalKind, LocalService, free_port, ordinary_command, ordinary_folder, until_it_listens,
};
pub use mail::{Mail, MailMix};
pub use outcome::{Aim, is_saturated, run, unfinished_words};
pub use service::{Fault, FaultKind, Service, ServiceUser, UsersError};
pub use tally::{LoadEvent, Seconds, percentile, series};
pub use threads::{
    DriverUse, Start, ThreadUse, ThreadsError, observe, run_threads, runtime, until_begin, within_grace,
};
pub use web::{Page, Web};
