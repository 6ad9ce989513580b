//! The health check: reports if the process is alive, and if it should get more requests.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gateway_config::Readiness;
use http::{HeaderValue, StatusCode};

use crate::http::reply::{self, Reply};
use crate::process::token_keys::Polled;

/// Counts overload responses and decides if there are too many. All workers share it. Only responses with 503
/// or 504, and the health check itself, take its lock.
#[derive(Debug)]
pub(crate) struct Health {
    allowed: u64,
    sampling: Duration,
    unready: Duration,
    /// Separate, because every request reads it.
    is_stopping: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    window: Option<(Instant, u64)>,
    unready_until: Option<Instant>,
    /// Missing sources of the schema, with the reasons.
    missing: Vec<(String, String)>,
    /// Key sets of tokens. Without keys, every token is rejected.
    keys: Vec<Polled>,
}

impl Health {
    pub(crate) fn new(readiness: &Readiness) -> Self {
        let sampling = readiness.interval.sampling.0;
        Self {
            allowed: readiness.allowed,
            sampling,
            unready: readiness.interval.unready.map_or(sampling * 2, |it| it.0),
            is_stopping: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    /// Counts a response with status 503 or 504.
    pub(crate) fn overloaded(&self, now: Instant) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // A fixed window needs two numbers. A sliding window would need a queue of times, but the limit is
        // only a rough one.
        let count = match &mut state.window {
            Some((start, count)) if now.duration_since(*start) < self.sampling => {
                *count += 1;
                *count
            }
            window => {
                *window = Some((now, 1));
                1
            }
        };
        if count > self.allowed {
            // Each further overload response extends the time.
            state.unready_until = Some(now + self.unready);
        }
    }

    /// Marks the gateway as stopping. From now on it is not ready.
    pub(crate) fn stopping(&self) {
        // Relaxed: the flag guards no other memory.
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    /// True if the gateway is about to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    fn is_ready(&self, now: Instant) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        !self.is_stopping()
            && state.missing.is_empty()
            && state.keys.iter().all(|(set, _)| set.missing().is_none())
            && state.unready_until.is_none_or(|until| now >= until)
    }

    /// The health in Hasura's form: readiness in a word. It has no names of sources, because every client may
    /// ask for it.
    pub(crate) fn brief(&self, now: Instant) -> Reply {
        let (status, text) = if self.is_ready(now) {
            (StatusCode::OK, "OK")
        } else {
            (StatusCode::INTERNAL_SERVER_ERROR, "ERROR")
        };
        let media = HeaderValue::from_static("text/plain; charset=utf-8");
        reply::with_body(status, media, text)
    }

    /// Replaces the list of missing sources.
    pub(crate) fn missing(&self, sources: Vec<(String, String)>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.missing = sources;
    }

    /// Replaces the key sets of tokens.
    pub(crate) fn keys(&self, keys: Vec<Polled>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.keys = keys;
    }

    fn body(&self, word: &str) -> String {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = state.missing.iter();
        let keys = state.keys.iter().filter_map(|(set, _)| {
            let reason = set.missing()?;
            Some((format!("keys at {}", set.url()), reason.into()))
        });
        let missing: serde_json::Map<String, serde_json::Value> = missing
            .map(|(name, reason)| (name.clone(), reason.as_str().into()))
            .chain(keys)
            .collect();
        if missing.is_empty() {
            return format!(r#"{{"status":"{word}"}}"#);
        }
        serde_json::json!({"status": word, "missing_sources": missing}).to_string()
    }

    /// The response to a health check. `query` is the part of the URL after the question mark.
    pub(crate) fn answer(&self, query: Option<&str>, now: Instant) -> Reply {
        let asks_ready = query.is_some_and(|query| {
            query
                // `get` instead of an index, because in client input this position may be in the middle of a
                // character.
                .get(..5)
                .is_some_and(|start| start.eq_ignore_ascii_case("ready"))
        });
        let (status, body) = if asks_ready && !self.is_ready(now) {
            (StatusCode::SERVICE_UNAVAILABLE, self.body("DOWN"))
        } else {
            (StatusCode::OK, self.body("UP"))
        };
        Reply {
            body: body.into(),
            ..reply::empty(status)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::clock;

    #[test]
    fn too_many_overloads_make_it_unready_for_a_while() {
        let health = Health::new(&Readiness {
            allowed: 2,
            ..Readiness::default()
        });
        let start = clock::now();
        let status = |seconds| {
            let now = start + Duration::from_secs(seconds);
            health.answer(Some("READY"), now).status.as_u16()
        };
        for _ in 0..2 {
            health.overloaded(start);
        }
        assert_eq!(status(0), 200);
        health.overloaded(start);
        assert_eq!(status(0), 503);
        assert_eq!(health.answer(None, start).status, 200);
        assert_eq!(health.answer(Some("live"), start).status, 200);
        assert_eq!(status(9), 503);
        assert_eq!(status(10), 200);
    }

    #[test]
    fn who_is_about_to_stop_is_not_ready() {
        let health = Health::new(&Readiness::default());
        health.stopping();
        let answer = health.answer(Some("ready="), clock::now());
        assert_eq!(answer.status, 503);
        assert_eq!(answer.body, r#"{"status":"DOWN"}"#);
        assert!(answer.headers.is_empty());
    }
}
