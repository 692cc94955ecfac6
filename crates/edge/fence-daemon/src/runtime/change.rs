//! Other disks at work: the loop rests while the devices change, and goes on with another fence.

use virtbench_fence::DiskId;

use super::{Rest, Runtime};
use crate::frontend::vhost_user::VhostUserBlk;
use crate::frontend::{Done, FrontEnd, Host};
use crate::requests::core::{Added, Asked, Change, HAS_CLIENT, Wish};

/// How long what is under way may take: clients wait as long.
const LIMIT_NS: u64 = 20_000_000_000;

impl Runtime {
    /// Takes a step towards what is asked for. True if something was done.
    pub(super) fn look_after_wishes(&mut self) -> bool {
        let asked = self.core.asked.take();
        let is_new = asked.is_some();
        if let Some(Asked { wish, answer }) = asked {
            let done = match wish {
                Wish::Rest { leaves } => match self.begin_rest(leaves) {
                    Ok(()) => {
                        let until = self.core.now.after(LIMIT_NS);
                        self.rest = Some(Rest { answer, until, is_flushed: false });
                        return self.rest_on() || is_new;
                    }
                    refused => refused,
                },
                Wish::GoOn => {
                    self.core.rests = false;
                    Ok(())
                }
                Wish::Change(change) => {
                    self.change(*change);
                    Ok(())
                }
                Wish::End => {
                    self.has_given_up = true;
                    self.stopper.stop();
                    Ok(())
                }
            };
            // Who has left hears nothing.
            let _ = answer.try_send(done);
        }
        self.rest_on() || is_new
    }

    fn begin_rest(&mut self, leaves: Option<DiskId>) -> Result<(), String> {
        if let Some(disk) = leaves
            && self.front_ends.iter().any(|front_end| front_end.has_client(disk))
        {
            return Err(HAS_CLIENT.to_owned());
        }
        if self.core.is_ailing() {
            return Err("a cache keeps what a device does not take: see `virtbench fence status`".to_owned());
        }
        if self.core.is_loss_untold() {
            return Err("a sync of the slow device has lost what was written past a cache: its client has to hear of it at a \
                        flush first"
                .to_owned());
        }
        self.core.rests = true;
        self.core.has_failed_flush = false;
        Ok(())
    }

    /// Goes on towards rest, if somebody waits for that. True if something was done.
    fn rest_on(&mut self) -> bool {
        let Some(rest) = &mut self.rest else { return false };
        let done = if self.core.has_failed_flush || self.core.is_ailing() {
            Err("a device fails: see what the daemon says of it".to_owned())
        } else if !self.core.is_at_rest() {
            if self.core.now < rest.until {
                return false;
            }
            Err("what is under way was not over within 20 s".to_owned())
        } else if !rest.is_flushed {
            rest.is_flushed = true;
            self.core.flush_all();
            return true;
        } else {
            Ok(())
        };
        self.core.rests = done.is_ok();
        let answer = self.rest.take().map(|rest| rest.answer);
        // Without anybody to go on with it, requests are taken again.
        if answer.is_none_or(|answer| answer.try_send(done).is_err()) {
            self.core.rests = false;
        }
        true
    }

    fn change(&mut self, change: Change) {
        let Change { fence, write_through, moved, added, figures } = change;
        self.core.go_over_to(fence, write_through, figures);
        for place in 0..self.front_ends.len() {
            let mut host = Host { front_end: place, core: &mut self.core, ring: &mut self.ring };
            let front_end = &mut self.front_ends[place];
            let is_gone =
                front_end.serves().is_some_and(|disk| moved.get(disk.index()).is_none_or(Option::is_none));
            if is_gone {
                front_end.leave(&mut host);
                *front_end = Box::new(Departed);
            } else {
                front_end.renumber(&moved, &mut host);
            }
        }
        if let Some(added) = added {
            self.add(added);
        }
        self.core.rests = false;
    }

    fn add(&mut self, added: Added) {
        let Added { served, listener } = added;
        self.each(|front_end, _| front_end.disk_added(&served));
        let Some(listener) = listener else { return };
        let mut front_end = VhostUserBlk::new(listener, served);
        let place = self.front_ends.len();
        let mut host = Host { front_end: place, core: &mut self.core, ring: &mut self.ring };
        front_end.start(&mut host);
        self.front_ends.push(Box::new(front_end));
    }
}

/// Keeps the place of a front end whose disk is gone: those behind it keep theirs.
struct Departed;

impl FrontEnd for Departed {
    fn start(&mut self, _host: &mut Host<'_>) {}

    fn ready(&mut self, _token: u64, _host: &mut Host<'_>) {}

    fn completed(&mut self, _done: Done, _host: &mut Host<'_>) {}
}
