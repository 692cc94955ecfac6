//! What a device that fails could not do is done again once its time has come.

use super::Partition;
use super::commit_state::Trouble;
use crate::ports::Ports;
use crate::types::{IoError, Op, Time};

impl Partition {
    /// A block could not be written back.
    pub(super) fn write_back_failed(&mut self, now: Time, error: IoError, ports: &mut Ports) {
        self.errors += 1;
        let begins = self.write_back.trouble.is_none();
        let trouble = Trouble::after(self.write_back.trouble, now, error);
        self.write_back.trouble = Some(trouble);
        ports.wake_at(trouble.retry_at);
        if begins {
            self.let_reads_in(now, ports);
        }
    }

    /// Entries could not be written to the log.
    pub(super) fn log_failed(&mut self, now: Time, error: IoError, ports: &mut Ports) {
        self.errors += 1;
        let trouble = Trouble::after(self.commit.trouble, now, error);
        self.commit.trouble = Some(trouble);
        ports.wake_at(trouble.retry_at);
    }

    /// Reads need no room: they do not wait for the slow device to take something.
    fn let_reads_in(&mut self, now: Time, ports: &mut Ports) {
        for _ in 0..self.halted.len() {
            let Some((index, request)) = self.halted.pop_front() else { return };
            if request.op == Op::Read && !self.settling {
                self.admit(now, index, request, ports);
            } else {
                self.halted.push_back((index, request));
            }
        }
    }

    /// Whether a dirty block may be written back now: of a device that fails, one for a try.
    pub(super) fn may_write_back(&self, now: Time) -> bool {
        self.write_back
            .trouble
            .is_none_or(|trouble| now >= trouble.retry_at && self.write_back.under_way == 0)
    }

    /// Why requests that change something are refused for now, whether there is room for them or not.
    pub(super) fn refusal(&self, has_room: bool) -> Option<IoError> {
        let long =
            |trouble: Option<Trouble>| trouble.filter(|trouble| trouble.is_long).map(|trouble| trouble.error);
        let no_room = || if has_room { None } else { long(self.write_back.trouble) };
        self.broken.or_else(|| long(self.commit.trouble)).or_else(no_room)
    }

    /// The time may have come to try again.
    pub(crate) fn retry(&mut self, now: Time, ports: &mut Ports) {
        if let Some(trouble) = self.commit.trouble {
            if now >= trouble.retry_at {
                let later = trouble.later(now);
                self.commit.trouble = Some(later);
                if later.is_long {
                    self.fail_waiters(later.error, ports);
                }
                self.write_log_again(now, ports);
            }
            // Until it is written, or has failed again.
            ports.wake_at(self.commit.trouble.map_or(now, |trouble| trouble.retry_at));
        }
        self.maintain(now, ports);
        if let Some(trouble) = self.write_back.trouble {
            if now >= trouble.retry_at {
                // Either one is under way by now, or there is none to be written.
                self.write_back.trouble = Some(trouble.later(now));
                self.maintain(now, ports);
            }
            ports.wake_at(self.write_back.trouble.map_or(now, |trouble| trouble.retry_at));
        }
    }
}
