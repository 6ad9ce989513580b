//! Admission of requests: limits on running requests and on requests per interval.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use gateway_config::{RateLimit, RouterShaping};
use http::StatusCode;

use crate::http::reply::{self, Refusal};

/// The limits of one configuration, shared by all workers.
#[derive(Debug)]
pub(crate) struct Admission {
    concurrency: Option<(usize, Arc<AtomicUsize>)>,
    rate: Option<Rate>,
}

/// A permit for one running request. Dropping it returns it.
#[derive(Debug)]
pub(crate) struct Permit(Option<Arc<AtomicUsize>>);

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(admitted) = &self.0 {
            admitted.fetch_sub(1, Ordering::Relaxed);
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

    /// Rejects a request that would get no permit now, before memory is spent on its body. It takes no
    /// permit, because a client that sends its body slowly must not occupy one.
    pub(crate) fn look(&self, now: impl Fn() -> Instant) -> Result<(), Refusal> {
        if let Some((limit, admitted)) = &self.concurrency
            && admitted.load(Ordering::Relaxed) >= *limit
        {
            return Err(concurrency_limited());
        }
        match &self.rate {
            Some(rate) if !rate.has_room(now()) => Err(rate_limited()),
            _ => Ok(()),
        }
    }

    /// Takes a permit, or rejects the request.
    pub(crate) fn enter(&self, now: impl Fn() -> Instant) -> Result<Permit, Refusal> {
        let permit = match &self.concurrency {
            None => Permit(None),
            Some((limit, admitted)) => {
                // Counted first. If the request is rejected, dropping the permit subtracts it again. With a
                // comparison first, two workers could both take the last permit. Relaxed, because the count
                // orders no other memory.
                let before = admitted.fetch_add(1, Ordering::Relaxed);
                let permit = Permit(Some(Arc::clone(admitted)));
                if before >= *limit {
                    return Err(concurrency_limited());
                }
                permit
            }
        };
        // After the concurrency check, so that a request rejected there does not use up the interval. The
        // clock is read only if there is a rate.
        match &self.rate {
            Some(rate) if !rate.admits(now()) => Err(rate_limited()),
            _ => Ok(permit),
        }
    }
}

fn concurrency_limited() -> Refusal {
    refusal(
        "Your request has been concurrency limited",
        "REQUEST_CONCURRENCY_LIMITED",
    )
}

fn rate_limited() -> Refusal {
    refusal("Your request has been rate limited", "REQUEST_RATE_LIMITED")
}

fn refusal(message: &str, code: &str) -> Refusal {
    Box::new(reply::error(StatusCode::SERVICE_UNAVAILABLE, message, code))
}

/// A maximum number of requests per interval. An interval starts with its first request.
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

    /// True if one more request would be admitted.
    fn has_room(&self, now: Instant) -> bool {
        let window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        window.is_none_or(|(start, count)| {
            now.duration_since(start) >= self.limit.interval.0 || count < self.limit.capacity.get()
        })
    }

    /// True if this request is admitted. Only admitted requests are counted.
    pub(crate) fn admits(&self, now: Instant) -> bool {
        // No code panics while it holds this lock, and each write is complete, so a poisoned value is valid.
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
    use crate::process::clock;

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
        assert!(admission.look(clock::now).is_err());
        drop(first);
        for _ in 0..2 {
            assert!(admission.look(clock::now).is_ok());
        }
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
            .map(|ms| {
                let now = start + Duration::from_millis(*ms);
                let has_room = rate.has_room(now);
                let is_admitted = rate.admits(now);
                assert_eq!(has_room, is_admitted);
                is_admitted
            })
            .collect();
        assert_eq!(admitted, [true, true, false, false, true]);
    }
}
