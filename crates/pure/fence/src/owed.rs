//! An answer that is owed: a request can be completed or failed, never dropped.

use std::collections::VecDeque;

use crate::types::{Effect, IoError, RequestId};

/// The duty to answer one request. Dropping it unanswered is a bug, caught where debug assertions are on.
#[derive(Debug)]
#[must_use]
pub(crate) struct Owed(Option<RequestId>);

impl Owed {
    pub(crate) const fn new(request: RequestId) -> Self {
        Self(Some(request))
    }

    pub(crate) fn answer(mut self, effects: &mut VecDeque<Effect>, result: Result<(), IoError>) {
        if let Some(request) = self.0.take() {
            effects.push_back(Effect::Complete { request, result });
        }
    }

    /// The whole fence goes away, as in a power failure: no guest is left to answer.
    pub(crate) fn abandon(mut self) {
        self.0 = None;
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        debug_assert!(
            self.0.is_none() || std::thread::panicking(),
            "request {:?} was dropped unanswered",
            self.0
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "dropped unanswered")]
    fn a_request_dropped_unanswered_is_caught() {
        drop(Owed::new(RequestId(1)));
    }

    #[test]
    fn an_answer_is_given_once() {
        let mut effects = VecDeque::new();
        Owed::new(RequestId(1)).answer(&mut effects, Ok(()));
        assert_eq!(effects, [Effect::Complete { request: RequestId(1), result: Ok(()) }]);
    }
}
