//! Users of a service: they think, ask, wait for the answer, and every response time is kept.
//!
//! [`run`] applies a load of [`virtbench_record::UsersPlan`] to anything that is a [`Service`]: pages of a web server
//! ([`Web`]), keys and values ([`KeyValue`]), mail ([`Mail`]). Users are tasks of a few threads. A closed loop asks again once the
//! answer is there, after a time to think; an open loop keeps to intended starts, from which response times count.
//!
//! What a driver of another kind needs as well stands for itself: the [`LoadCourse`] of a load, its threads ([`run_threads`]),
//! [`IntendedStarts`], [`Alarm`], the seconds of its series ([`series`]).

mod address;
mod alarm;
mod course;
mod draws;
mod driver;
mod driver_use;
mod ended;
mod error;
mod fault;
mod intended;
mod key_value;
mod local_process;
mod local_service;
mod mail;
mod outcome;
mod run;
mod seconds;
mod service;
mod shared;
mod tally;
mod thread_use;
mod threads;
mod unfinished;
mod user;
mod web;

pub use address::Address;
pub use alarm::Alarm;
pub use course::LoadCourse;
pub use driver_use::{DriverUse, ThreadUse};
pub use ended::Ended;
pub use error::UsersError;
pub use fault::{Fault, FaultKind};
pub use intended::IntendedStarts;
pub use key_value::KeyValue;
pub use local_process::{free_port, ordinary_command, ordinary_folder, until_it_listens};
pub use local_service::{LocalKind, LocalService};
pub use mail::{Mail, MailMix};
pub use outcome::is_saturated;
pub use run::{Aim, run};
pub use seconds::{LoadEvent, Seconds, percentile, series};
pub use service::{Service, ServiceUser};
pub use thread_use::{observe, runtime, until_begin, within_grace};
pub use threads::{Start, ThreadsError, run_threads};
pub use unfinished::unfinished_words;
pub use web::{Page, Web};
