//! Who may come in: the most requests at a time, and in a time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use gateway_config::{RateLimit, RouterShaping};
use http::StatusCode;

use crate::reply::{self, Refusal};

/// The limits of one configuration, shared by all workers.
#[derive(Debug)]
pub(crate) struct Admission {
    concurrency: Option<(usize, Arc<AtomicUsize>)>,
    rate: Option<Rate>,
}

/// A place among the most requests at a time; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Place(Option<Arc<AtomicUsize>>);

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(taken) = &self.0 {
            taken.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Admission {
    pub(crate) fn new(shaping: &RouterShaping) -> Self {
        Self {
            concurrency: shaping
                .concurrency_limit
                .map(|limit| (limit.get(), Arc::default())),
            rate: shaping.global_rate_limit.map(Rate::new),
        }
    }

    /// A place, or the refusal.
    pub(crate) fn enter(&self, now: impl Fn() -> Instant) -> Result<Place, Refusal> {
        let place = match &self.concurrency {
            None => Place(None),
            Some((limit, taken)) => {
                let before = taken.fetch_add(1, Ordering::Relaxed);
                let place = Place(Some(Arc::clone(taken)));
                if before >= *limit {
                    return Err(refusal(
                        "Your request has been concurrency limited",
                        "REQUEST_CONCURRENCY_LIMITED",
                    ));
                }
                place
            }
        };
        match &self.rate {
            Some(rate) if !rate.admits(now()) => Err(refusal(
                "Your request has been rate limited",
                "REQUEST_RATE_LIMITED",
            )),
            _ => Ok(place),
        }
    }
}

fn refusal(message: &str, code: &str) -> Refusal {
    Box::new(reply::error(StatusCode::SERVICE_UNAVAILABLE, message, code))
}

/// So many in such a time, counted from the first of them.
#[derive(Debug)]
pub(crate) struct Rate {
    limit: RateLimit,
    window: Mutex<Option<(Instant, u64)>>,
}

impl Rate {
    pub(crate) fn new(limit: RateLimit) -> Self {
        Self {
            limit,
            window: Mutex::new(None),
        }
    }

    /// Whether one more fits; it is counted when it does.
    pub(crate) fn admits(&self, now: Instant) -> bool {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *window {
            Some((start, count)) if now.duration_since(*start) < self.limit.interval.0 => {
                let fits = *count < self.limit.capacity.get();
                *count += u64::from(fits);
                fits
            }
            empty => {
                *empty = Some((now, 1));
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::{NonZeroU64, NonZeroUsize};
    use std::time::Duration;

    use gateway_config::Written;

    use super::*;
    use crate::clock;

    fn shaping() -> RouterShaping {
        RouterShaping::default()
    }

    #[test]
    fn a_place_is_given_back_when_its_request_ends() {
        let admission = Admission::new(&RouterShaping {
            concurrency_limit: NonZeroUsize::new(1),
            ..shaping()
        });
        let first = admission.enter(clock::now).unwrap();
        let refused = admission.enter(clock::now).unwrap_err();
        assert_eq!(refused.status, 503);
        assert!(String::from_utf8_lossy(&refused.body).contains("REQUEST_CONCURRENCY_LIMITED"));
        drop(first);
        assert!(admission.enter(clock::now).is_ok());
    }

    #[test]
    fn a_new_interval_admits_again() {
        let rate = Rate::new(RateLimit {
            capacity: NonZeroU64::new(2).unwrap(),
            interval: Written(Duration::from_secs(1)),
        });
        let start = clock::now();
        let admitted: Vec<bool> = [0, 10, 20, 999, 1000]
            .iter()
            .map(|ms| rate.admits(start + Duration::from_millis(*ms)))
            .collect();
        assert_eq!(admitted, [true, true, false, false, true]);
    }
}
