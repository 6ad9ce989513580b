//! Opens lost WebSockets to subgraphs again.
//!
//! When a subgraph restarts, it loses all its WebSockets at once. So each attempt waits for a random time,
//! and only some of them run at a time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gateway_telemetry::random_bytes;
use gateway_upstream::UpstreamEndpoint;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum number of running attempts per address. Further attempts wait in the order of their arrival.
const ATTEMPTS_AT_ONCE: usize = 16;

/// The attempts of all workers.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    addresses: Mutex<HashMap<String, Arc<Semaphore>>>,
    waiting: AtomicUsize,
}

/// A running attempt, until this value is dropped.
#[derive(Debug)]
pub(crate) struct AttemptPermit {
    _permit: OwnedSemaphorePermit,
}

/// A waiting attempt, until this value is dropped.
struct Waits<'a>(&'a AtomicUsize);

impl Attempts {
    /// Waits until an attempt at this address may run.
    pub(crate) async fn acquire(&self, endpoint: &UpstreamEndpoint) -> AttemptPermit {
        let attempts = self.at(endpoint);
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waits = Waits(&self.waiting);
        let permit = attempts.acquire_owned().await;
        AttemptPermit {
            _permit: permit.expect("it is never closed"),
        }
    }

    fn at(&self, endpoint: &UpstreamEndpoint) -> Arc<Semaphore> {
        let address = match endpoint.socket() {
            Some(socket) => socket.display().to_string(),
            None => format!("{:?} {}", endpoint.uri().host(), endpoint.port()),
        };
        // A panic elsewhere leaves only complete entries.
        let addresses = self.addresses.lock();
        let mut addresses = addresses.unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = addresses.get(&address) {
            return Arc::clone(known);
        }
        // Scripts can create any number of addresses. Addresses without attempts are removed.
        addresses.retain(|_, attempts| Arc::strong_count(attempts) > 1);
        let attempts = Arc::new(Semaphore::new(ATTEMPTS_AT_ONCE));
        addresses.insert(address, Arc::clone(&attempts));
        attempts
    }

    /// Number of waiting attempts.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The pause before an attempt: a random time between half of `delay` and all of it.
pub(crate) fn pause(delay: Duration) -> Duration {
    part(delay, u32::from_ne_bytes(random_bytes()))
}

/// Half of `delay`, plus a fraction of the other half, in units of 2^-32.
fn part(delay: Duration, of_half: u32) -> Duration {
    let half = delay / 2;
    let rest = half.mul_f64(f64::from(of_half) / f64::from(u32::MAX));
    // Rounding must not make it longer than `delay`.
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
        let endpoint = |text| UpstreamEndpoint::parse(text, Policy::default()).unwrap();
        let one = endpoint("http://localhost:1/a");
        let same = endpoint("http://localhost:1/b");
        let other = endpoint("http://localhost:2/a");
        let attempts = Attempts::default();
        let take = |it: &UpstreamEndpoint| attempts.acquire(it).now_or_never();
        let mut permits: Vec<_> = std::iter::from_fn(|| take(&one)).collect();
        assert_eq!(permits.len(), ATTEMPTS_AT_ONCE);
        assert!(take(&same).is_none());
        assert!(take(&other).is_some());
        let mut first = pin!(attempts.acquire(&same));
        assert!(first.as_mut().now_or_never().is_none());
        let mut second = Box::pin(attempts.acquire(&one));
        assert!(second.as_mut().now_or_never().is_none());
        assert_eq!(attempts.waiting(), 2);
        permits.pop();
        assert!(second.as_mut().now_or_never().is_none());
        permits.extend(first.as_mut().now_or_never());
        assert_eq!((permits.len(), attempts.waiting()), (ATTEMPTS_AT_ONCE, 1));
        // An attempt that no longer waits does not block the next one.
        drop(second);
        assert_eq!(attempts.waiting(), 0);
        permits.clear();
        assert!(take(&other).is_some());
        assert_eq!(attempts.addresses.lock().unwrap().len(), 2);
        let third = endpoint("http://localhost:3");
        assert!(take(&third).is_some());
        assert_eq!(attempts.addresses.lock().unwrap().len(), 1);
    }
}
