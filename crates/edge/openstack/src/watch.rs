//! Servers that something is being done with, looked at for all who wait: one question answers several.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use serde::Deserialize;
use virtbench_https::Limit;

use crate::error::OpenStackError;
use crate::fault::FaultKind;
use crate::looks::{Cost, Pace};
use crate::server::Server;
use crate::session::{Call, Session, encoded};
use crate::{server, time};

/// Of the time of each operation that is followed, this share at most is the cloud's for answers to looks: one in twenty.
const SHARE: u32 = 20;
/// For so many operations it has that share at most: a fifth of the time that goes by.
const MOST_SHARES: usize = 4;
/// The longest that a look is put off for that.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// What changed is asked for from so long before the last answer: a change has its time before it can be read.
const OVERLAP: Duration = Duration::from_secs(10);
/// A server that no list of changes has had for so long is asked for by itself.
const STALE: Duration = Duration::from_secs(5);
/// Servers that a list of changes did not have, and that are asked for by themselves, at once.
const MOST_ALONE: usize = 8;

/// How a server was found.
#[derive(Debug, Clone)]
pub(crate) struct Look {
    /// None: it is not there.
    pub server: Option<Server>,
    /// When it was asked for.
    pub asked: Instant,
    /// What each of those who are followed has cost the cloud by it.
    pub each: Duration,
    /// When an answer had it last: a list of changes does not have what stayed as it was.
    told: Instant,
}

#[derive(Debug, Default)]
struct Board {
    looks: HashMap<String, Look>,
    /// By how many each server is followed.
    followed: HashMap<String, usize>,
    is_asking: bool,
    /// The cloud is not asked before.
    next: Option<Instant>,
    /// The cloud's clock when it was asked for changes last.
    since: Option<SystemTime>,
    /// What a look at one server costs, and one at all that changed.
    costs: [Cost; 2],
}

/// A server that somebody waits for.
pub(crate) struct Followed<'a> {
    watch: &'a Watch,
    id: String,
}

impl Drop for Followed<'_> {
    fn drop(&mut self) {
        let mut board = self.watch.board();
        let left = board.followed.get_mut(&self.id).map_or(0, |count| {
            *count -= 1;
            *count
        });
        if left == 0 {
            board.followed.remove(&self.id);
            board.looks.remove(&self.id);
        }
    }
}

impl Followed<'_> {
    /// How the server is, by an answer that was asked for after this moment, by whomever.
    pub fn look(&self, session: &Session, after: Instant, limit: Limit) -> Result<Look, OpenStackError> {
        if let Pace::Steady { .. } = self.watch.pace {
            let asked = Instant::now();
            let server = alone(session, &self.id, limit)?;
            return Ok(Look { server, asked, each: asked.elapsed(), told: asked });
        }
        let mut board = self.watch.board();
        loop {
            if let Some(look) = board.looks.get(&self.id).filter(|look| look.asked >= after) {
                return Ok(look.clone());
            }
            let pause =
                board.next.map_or(Duration::ZERO, |next| next.saturating_duration_since(Instant::now()));
            if limit.left() <= pause {
                let what = "a look at a server".to_owned();
                return Err(OpenStackError::Late { what, limit: limit.length(), last: None });
            }
            if board.is_asking || !pause.is_zero() {
                let pause = if board.is_asking { limit.left() } else { pause };
                let waited = self.watch.changed.wait_timeout(board, pause);
                board = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            board = self.watch.ask(session, board, limit)?;
        }
    }
}

/// What is known of the servers of a run. Threads share it.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    board: Mutex<Board>,
    changed: Condvar,
    /// How often servers are looked at.
    pub pace: Pace,
}

#[derive(Deserialize)]
struct One {
    server: Server,
}

impl Watch {
    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a server looked at, with all others that are, until the value is dropped.
    pub fn follow<'a>(&'a self, id: &str) -> Followed<'a> {
        *self.board().followed.entry(id.to_owned()).or_default() += 1;
        Followed { watch: self, id: id.to_owned() }
    }

    /// Asks for all that are followed, with the board let go meanwhile.
    fn ask<'a>(
        &'a self,
        session: &Session,
        mut board: MutexGuard<'a, Board>,
        limit: Limit,
    ) -> Result<MutexGuard<'a, Board>, OpenStackError> {
        board.is_asking = true;
        let ids: Vec<String> = board.followed.keys().cloned().collect();
        let known: Vec<bool> = ids
            .iter()
            .map(|id| board.looks.get(id).is_some_and(|look| look.told.elapsed() < STALE))
            .collect();
        let since = board.since;
        drop(board);
        let asked = Instant::now();
        let found = match (&ids[..], since) {
            ([id], _) => alone(session, id, limit).map(|server| (vec![(id.clone(), server)], since)),
            (ids, since) => changes(session, ids, &known, since, limit),
        };
        let answered_in = asked.elapsed();
        let mut board = self.board();
        board.is_asking = false;
        let cost = board.costs[usize::from(ids.len() > 1)].of(answered_in);
        board.next = Some(Instant::now() + pause(cost, board.followed.len()).min(LONGEST_PAUSE));
        self.changed.notify_all();
        let each = cost / u32::try_from(ids.len().clamp(1, MOST_SHARES)).unwrap_or(1);
        let (found, since) = found?;
        board.since = since;
        let mut found: HashMap<String, Option<Server>> = found.into_iter().collect();
        for id in ids {
            // What a list of changes does not have is as it was.
            let (server, told) = match (found.remove(&id), board.looks.get(&id)) {
                (Some(server), _) => (server, asked),
                (None, Some(look)) => (look.server.clone(), look.told),
                (None, None) => continue,
            };
            if board.followed.contains_key(&id) {
                board.looks.insert(id, Look { server, asked, each, told });
            }
        }
        Ok(board)
    }
}

/// How long nobody looks after a look that costs so much, for so many operations.
fn pause(cost: Duration, followed: usize) -> Duration {
    let shares = u32::try_from(followed.clamp(1, MOST_SHARES)).unwrap_or(1);
    (SHARE * cost / shares).saturating_sub(cost)
}

type Found = (Vec<(String, Option<Server>)>, Option<SystemTime>);

/// One server by itself.
pub(crate) fn alone(session: &Session, id: &str, limit: Limit) -> Result<Option<Server>, OpenStackError> {
    match session.get::<One>(&Call::get(format!("servers/{}", encoded(id))), limit) {
        Ok((one, _)) => Ok(Some(one.server).filter(|server| !server.is_gone())),
        Err(error) if error.fault() == Some(FaultKind::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Those of these that changed lately, removed ones too, and those that nothing is known of.
fn changes(
    session: &Session,
    ids: &[String],
    known: &[bool],
    since: Option<SystemTime>,
    limit: Limit,
) -> Result<Found, OpenStackError> {
    let mut found = HashMap::new();
    let mut clock = since;
    if let Some(since) = since {
        let path = format!("servers/detail?changes-since={}", encoded(&time::written(since - OVERLAP)));
        let reading = server::each(session, &Call::get(path), limit, |server: Server| {
            if ids.contains(&server.id) {
                found.insert(server.id.clone(), Some(server).filter(|server| !server.is_gone()));
            }
        })?;
        clock = reading.date.or(clock);
    }
    let unknown = ids.iter().zip(known).filter(|(id, known)| !**known && !found.contains_key(*id));
    let unknown: Vec<&String> = unknown.map(|(id, _)| id).take(MOST_ALONE).collect();
    for id in unknown {
        found.insert(id.clone(), alone(session, id, limit)?);
    }
    if clock.is_none() {
        // The next time, changes can be asked for by the cloud's own clock.
        let call = Call::get("");
        clock = session.through_outages(&call, limit)?.date;
    }
    Ok((found.into_iter().collect(), clock))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_cost_a_twentieth_of_the_operations_time_and_a_fifth_of_all_time_at_most() {
        let ms = Duration::from_millis;
        assert_eq!((pause(ms(20), 0), pause(ms(20), 1), pause(ms(20), 2)), (ms(380), ms(380), ms(180)));
        assert_eq!((pause(ms(20), 4), pause(ms(20), 64)), (ms(80), ms(80)));
    }
}
