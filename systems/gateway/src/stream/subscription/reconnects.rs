//! When WebSockets to subgraphs that were lost are opened again.
//!
//! A subgraph that starts anew has lost all of them at once. So each waits for a time of its own, and only
//! some of them are opened at a time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gateway_telemetry::random_bytes;
use gateway_upstream::Endpoint;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Attempts that are under way at one address; the others wait in the order in which they came.
const ATTEMPTS_AT_ONCE: usize = 16;

/// The attempts of all workers.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    addresses: Mutex<HashMap<String, Arc<Semaphore>>>,
    waiting: AtomicUsize,
}

/// An attempt that is under way until this is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    _permit: OwnedSemaphorePermit,
}

/// One who waits, until this is dropped.
struct Waits<'a>(&'a AtomicUsize);

impl Attempts {
    /// Waits until it is the turn of an attempt at this address.
    pub(crate) async fn turn(&self, endpoint: &Endpoint) -> Turn {
        let attempts = self.at(endpoint);
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waits = Waits(&self.waiting);
        let permit = attempts.acquire_owned().await;
        Turn {
            _permit: permit.expect("it is never closed"),
        }
    }

    fn at(&self, endpoint: &Endpoint) -> Arc<Semaphore> {
        let address = match endpoint.socket() {
            Some(socket) => socket.display().to_string(),
            None => format!("{:?} {}", endpoint.uri().host(), endpoint.port()),
        };
        // A panic elsewhere leaves whole entries.
        let addresses = self.addresses.lock();
        let mut addresses = addresses.unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = addresses.get(&address) {
            return Arc::clone(known);
        }
        // Scripts may make as many addresses as they like: those without an attempt are forgotten.
        addresses.retain(|_, attempts| Arc::strong_count(attempts) > 1);
        let attempts = Arc::new(Semaphore::new(ATTEMPTS_AT_ONCE));
        addresses.insert(address, Arc::clone(&attempts));
        attempts
    }

    /// How many wait for their turn.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The pause before an attempt: between half of this time and all of it.
pub(crate) fn pause(delay: Duration) -> Duration {
    part(delay, u32::from_ne_bytes(random_bytes()))
}

/// Half of a time, and this part of the other half, in 2^32ths.
fn part(delay: Duration, of_half: u32) -> Duration {
    let half = delay / 2;
    let rest = half.mul_f64(f64::from(of_half) / f64::from(u32::MAX));
    // Rounding must not make it longer.
    half.saturating_add(rest).min(delay)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt as _;
    use gateway_upstream::Policy;

    use super::*;

    #[test]
    fn pauses_are_between_half_of_the_delay_and_all_of_it() {
        let delay = Duration::from_secs(1);
        assert_eq!(part(delay, 0), Duration::from_millis(500));
        assert_eq!(part(delay, u32::MAX), delay);
        assert_eq!(pause(Duration::ZERO), Duration::ZERO);
        assert!(part(Duration::MAX, u32::MAX) <= Duration::MAX);
        let pauses: Vec<_> = (0..100).map(|_| pause(delay)).collect();
        assert!(pauses.iter().all(|it| (delay / 2..=delay).contains(it)));
        assert!(pauses.iter().any(|it| *it != pauses[0]));
    }

    #[test]
    fn so_many_are_under_way_at_one_address_and_the_others_wait_in_their_order() {
        let endpoint = |text| Endpoint::parse(text, Policy::default()).unwrap();
        let one = endpoint("http://localhost:1/a");
        let same = endpoint("http://localhost:1/b");
        let other = endpoint("http://localhost:2/a");
        let attempts = Attempts::default();
        let take = |it: &Endpoint| attempts.turn(it).now_or_never();
        let mut turns: Vec<_> = std::iter::from_fn(|| take(&one)).collect();
        assert_eq!(turns.len(), ATTEMPTS_AT_ONCE);
        assert!(take(&same).is_none());
        assert!(take(&other).is_some());
        let mut first = pin!(attempts.turn(&same));
        assert!(first.as_mut().now_or_never().is_none());
        let mut second = Box::pin(attempts.turn(&one));
        assert!(second.as_mut().now_or_never().is_none());
        assert_eq!(attempts.waiting(), 2);
        turns.pop();
        assert!(second.as_mut().now_or_never().is_none());
        turns.extend(first.as_mut().now_or_never());
        assert_eq!((turns.len(), attempts.waiting()), (ATTEMPTS_AT_ONCE, 1));
        // Who waits no longer is in no one's way.
        drop(second);
        assert_eq!(attempts.waiting(), 0);
        turns.clear();
        assert!(take(&other).is_some());
        assert_eq!(attempts.addresses.lock().unwrap().len(), 2);
        let third = endpoint("http://localhost:3");
        assert!(take(&third).is_some());
        assert_eq!(attempts.addresses.lock().unwrap().len(), 1);
    }
}
