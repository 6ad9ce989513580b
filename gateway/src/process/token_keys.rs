//! Keeps the keys of tokens fresh: one task per key set, for all workers.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use gateway_extensions::TokenKeys;
use gateway_upstream::Client;

/// Pause between two fetches while there is no key. The gateway is not ready until then.
const RETRY: Duration = Duration::from_secs(1);

/// A key set and its poll interval.
pub(crate) type Polled = (Arc<TokenKeys>, Duration);

/// Fetches the sets without keys before the first token arrives. Waits at most `patience`.
pub(crate) async fn prefetch(client: &Client, sets: &[Polled], patience: Duration) {
    let missing = sets.iter().filter(|(set, _)| set.missing().is_some());
    let asking = join_all(missing.map(|(set, _)| set.refresh(client)));
    // Sets that are still missing are fetched in the background.
    let _ = tokio::time::timeout(patience, asking).await;
}

/// Fetches a set in intervals, until a new configuration replaces the current one.
pub(crate) async fn poll(client: Client, set: Arc<TokenKeys>, interval: Duration, round: Weak<()>) {
    loop {
        let pause = match set.missing() {
            Some(_) => RETRY.min(interval),
            None => interval,
        };
        // A minimum pause, even if the configuration allows zero.
        tokio::time::sleep(pause.max(Duration::from_millis(100))).await;
        if round.strong_count() == 0 {
            return;
        }
        set.refresh(&client).await;
    }
}
