//! The health check: whether the process is alive, and whether it should get more requests.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gateway_config::Readiness;
use http::StatusCode;

use crate::http::reply::{self, Reply};
use crate::process::token_keys::Polled;

/// Counts answers of overload and decides whether they are too many. Shared by all workers; only
/// answers of 503 and 504, and the check itself, take its lock.
#[derive(Debug)]
pub(crate) struct Health {
    allowed: u64,
    sampling: Duration,
    unready: Duration,
    /// Apart from the rest, because every request looks at it.
    is_stopping: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    window: Option<(Instant, u64)>,
    unready_until: Option<Instant>,
    /// Sources of the schema that are missing, and why.
    missing: Vec<(String, String)>,
    /// Keys of tokens; without them, every token is refused.
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

    /// Notes an answer of 503 or 504.
    pub(crate) fn overloaded(&self, now: Instant) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // A fixed window, which costs two numbers. A sliding one would need a queue of times, for a
        // limit that is a rough one anyway.
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
            // Each further answer of overload extends the time.
            state.unready_until = Some(now + self.unready);
        }
    }

    /// From now on the gateway is not ready: it is about to stop.
    pub(crate) fn stopping(&self) {
        // Relaxed: it guards no other memory.
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    /// Whether it is about to stop.
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

    /// From now on exactly these sources of the schema are missing.
    pub(crate) fn missing(&self, sources: Vec<(String, String)>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.missing = sources;
    }

    /// From now on these are the keys of tokens.
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

    /// The answer to a check. `query` is what follows the question mark.
    pub(crate) fn answer(&self, query: Option<&str>, now: Instant) -> Reply {
        let asks_ready = query.is_some_and(|query| {
            query
                // `get` instead of an index: the client's bytes may put a character's middle there.
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
