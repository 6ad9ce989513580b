//! The headers that say when a client may try again.
//!
//! `Retry-After` is of RFC 9110, section 10.2.3. `RateLimit` and `RateLimit-Policy` are of
//! draft-ietf-httpapi-ratelimit-headers, with the policy `login`.

use std::sync::{Arc, Mutex, PoisonError};

use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::gate::Verdict;
use crate::rule::Rule;

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The strictest of several verdicts. A request can contain several events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Advice {
    /// Time until the client may try again, in milliseconds. 0 if no event was limited.
    retry_ms: u64,
    left: Option<u32>,
}

impl Advice {
    pub(crate) fn add(&mut self, other: Advice) {
        self.retry_ms = self.retry_ms.max(other.retry_ms);
        self.left = match (self.left, other.left) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }

    /// Writes the headers of a response.
    pub(crate) fn write(self, rule: &Rule, headers: &mut HeaderMap) {
        let number =
            |text: String| HeaderValue::from_str(&text).expect("digits are a header value");
        if self.retry_ms > 0 {
            let retry = seconds(self.retry_ms);
            headers.insert(header::RETRY_AFTER, number(retry.to_string()));
        }
        let Some(left) = self.left else {
            return;
        };
        let window = seconds(rule.window_ms);
        let quota = rule.failures_allowed();
        let policy = format!("\"login\";q={quota};w={window}");
        headers.insert(RATE_LIMIT_POLICY, number(policy));
        let reset = match self.retry_ms {
            0 => window,
            retry => seconds(retry),
        };
        headers.insert(RATE_LIMIT, number(format!("\"login\";r={left};t={reset}")));
    }
}

/// Whole seconds, rounded up, so that no client tries too early.
fn seconds(ms: u64) -> u64 {
    ms.div_ceil(1_000)
}

/// Collects the verdicts of one request while it is executed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally(Arc<Mutex<Advice>>);

impl Tally {
    pub(crate) fn add(&self, verdict: Verdict) {
        let advice = Advice {
            retry_ms: verdict.retry_ms,
            left: verdict.left,
        };
        // A panic elsewhere leaves the value valid.
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .add(advice);
    }

    pub(crate) fn advice(&self) -> Advice {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::tests::DEFAULT;

    fn headers(verdicts: &[(u64, Option<u32>)]) -> Vec<String> {
        let tally = Tally::default();
        for (retry_ms, left) in verdicts {
            tally.add(Verdict {
                is_limited: *retry_ms > 0,
                retry_ms: *retry_ms,
                left: *left,
            });
        }
        let mut headers = HeaderMap::new();
        tally.advice().write(&DEFAULT, &mut headers);
        let headers = headers.iter();
        headers
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect()
    }

    #[test]
    fn the_strictest_verdict_of_a_request_counts() {
        let policy = "ratelimit-policy: \"login\";q=5;w=6";
        assert!(headers(&[]).is_empty());
        assert_eq!(
            headers(&[(0, Some(5)), (0, Some(3))]),
            [policy, "ratelimit: \"login\";r=3;t=6"]
        );
        assert_eq!(
            headers(&[(0, Some(5)), (89_001, Some(0))]),
            ["retry-after: 90", policy, "ratelimit: \"login\";r=0;t=90"]
        );
        // The policy knows no counts.
        assert_eq!(headers(&[(1_000, None)]), ["retry-after: 1"]);
    }
}
