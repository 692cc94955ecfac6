//! Waiting for something, but no longer than until measuring has ended.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::sync::watch;

/// Tells the tasks of a thread when measuring has ended.
#[derive(Debug, Clone)]
pub struct Ended(watch::Receiver<bool>);

impl Ended {
    /// What the tasks of a thread have, and what its observer sets.
    #[must_use]
    pub fn new() -> (watch::Sender<bool>, Self) {
        let (end, ended) = watch::channel(false);
        (end, Self(ended))
    }

    /// Waits for a future; nothing where measuring ends first.
    pub async fn unless<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let mut ended = self.0.clone();
        let ended = pin!(ended.wait_for(|ended| *ended));
        match select(pin!(future), ended).await {
            Either::Left((done, _)) => Some(done),
            Either::Right(_) => None,
        }
    }

    /// Waits for a future; nothing where measuring has ended so long before.
    pub async fn with_grace<T>(&self, future: impl Future<Output = T>, grace: Duration) -> Option<T> {
        let over = pin!(async {
            self.wait().await;
            tokio::time::sleep(grace).await;
        });
        match select(pin!(future), over).await {
            Either::Left((done, _)) => Some(done),
            Either::Right(_) => None,
        }
    }

    /// Sleeps for some nanoseconds; whether measuring still goes on.
    pub async fn sleep(&self, ns: u64) -> bool {
        ns == 0 || self.unless(tokio::time::sleep(Duration::from_nanos(ns))).await.is_some()
    }

    /// Waits until measuring has ended.
    pub async fn wait(&self) {
        let _ = self.0.clone().wait_for(|ended| *ended).await;
    }
}
