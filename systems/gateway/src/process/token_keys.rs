//! Keeps the keys of tokens fresh: one task for each set, for all workers.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use gateway_extensions::TokenKeys;
use gateway_upstream::Client;

/// Time between two tries while there is no key at all: the gateway is not ready until then.
const RETRY: Duration = Duration::from_secs(1);

/// A set of keys and the time between two readings.
pub(crate) type Polled = (Arc<TokenKeys>, Duration);

/// Asks for the sets that have no key, before the first token arrives, for no longer than `patience`.
pub(crate) async fn prefetch(client: &Client, sets: &[Polled], patience: Duration) {
    let missing = sets.iter().filter(|(set, _)| set.missing().is_some());
    let asking = join_all(missing.map(|(set, _)| set.refresh(client)));
    // What has not come by then is asked for again in the background.
    let _ = tokio::time::timeout(patience, asking).await;
}

/// Asks for a set again and again, until another configuration has replaced the one it belongs to.
pub(crate) async fn poll(client: Client, (set, interval): Polled, round: Weak<()>) {
    loop {
        let pause = match set.missing() {
            Some(_) => RETRY.min(interval),
            None => interval,
        };
        // Not without any pause, whatever the configuration says.
        tokio::time::sleep(pause.max(Duration::from_millis(100))).await;
        if round.strong_count() == 0 {
            return;
        }
        set.refresh(&client).await;
    }
}
