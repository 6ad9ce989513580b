//! The headers that say when a client may try again.
//!
//! `Retry-After` is of RFC 9110, section 10.2.3. `RateLimit` and `RateLimit-Policy` are of
//! draft-ietf-httpapi-ratelimit-headers. The name of the policy is the name of the rule that decided, `login`
//! without a file of rules.

use std::sync::{Arc, Mutex, PoisonError};

use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::gate::{Left, Verdict};

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The strictest of several verdicts. A request can contain several events.
#[derive(Debug, Clone, Default)]
pub(crate) struct Advice {
    /// Time until the client may try again, in milliseconds. 0 if no event was limited.
    retry_ms: u64,
    left: Option<Left>,
}

impl Advice {
    pub(crate) fn add(&mut self, other: Advice) {
        let is_longer = other.retry_ms > self.retry_ms;
        self.retry_ms = self.retry_ms.max(other.retry_ms);
        let is_stricter = match (&self.left, &other.left) {
            // Of two bans, the longer one is stricter.
            (Some(one), Some(other)) if one.count == other.count => is_longer,
            (Some(one), Some(other)) => other.count < one.count,
            (one, _) => one.is_none(),
        };
        if is_stricter {
            self.left = other.left;
        }
    }

    /// Writes the headers of a response.
    pub(crate) fn write(self, headers: &mut HeaderMap) {
        let number =
            |text: String| HeaderValue::from_str(&text).expect("digits and names of rules fit");
        if self.retry_ms > 0 {
            let retry = seconds(self.retry_ms);
            headers.insert(header::RETRY_AFTER, number(retry.to_string()));
        }
        let Some(left) = self.left else {
            return;
        };
        let named = &left.rule.named;
        let (name, count) = (&named.name, left.count);
        let window = seconds(named.rule.window_ms);
        let quota = named.rule.failures_allowed();
        let policy = format!("\"{name}\";q={quota};w={window}");
        headers.insert(RATE_LIMIT_POLICY, number(policy));
        let reset = match self.retry_ms {
            0 => window,
            retry => seconds(retry),
        };
        headers.insert(
            RATE_LIMIT,
            number(format!("\"{name}\";r={count};t={reset}")),
        );
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
        let advice = self.0.lock();
        advice.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::RuleCounts;
    use crate::rule::tests::DEFAULT;
    use crate::rules::{ActiveRule, NamedRule};

    fn rule(name: &str, window_ms: u64) -> Arc<ActiveRule> {
        let mut named = NamedRule::seed(DEFAULT);
        name.clone_into(&mut named.name);
        named.rule.window_ms = window_ms;
        Arc::new(ActiveRule {
            counts: Arc::new(RuleCounts::of(name)),
            memory: None,
            named,
        })
    }

    fn headers_of(verdicts: Vec<Verdict>) -> Vec<String> {
        let tally = Tally::default();
        for verdict in verdicts {
            tally.add(verdict);
        }
        let mut headers = HeaderMap::new();
        tally.advice().write(&mut headers);
        let headers = headers.iter();
        headers
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect()
    }

    fn headers(verdicts: &[(u64, Option<u32>)]) -> Vec<String> {
        let login = rule("login", 6_000);
        let verdicts = verdicts.iter().map(|(retry_ms, left)| Verdict {
            is_limited: *retry_ms > 0,
            retry_ms: *retry_ms,
            left: left.map(|count| Left {
                count,
                rule: Arc::clone(&login),
            }),
        });
        headers_of(verdicts.collect())
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
        // The policy has no counts.
        assert_eq!(headers(&[(1_000, None)]), ["retry-after: 1"]);
    }

    #[test]
    fn the_rule_of_the_longest_ban_is_named() {
        let ban = |name: &str, retry_ms| Verdict {
            is_limited: true,
            retry_ms,
            left: Some(Left {
                count: 0,
                rule: rule(name, 60_000),
            }),
        };
        let policy = "ratelimit-policy: \"long\";q=5;w=60";
        let limit = "ratelimit: \"long\";r=0;t=9";
        let expected = ["retry-after: 9", policy, limit];
        assert_eq!(
            headers_of(vec![ban("short", 1_000), ban("long", 9_000)]),
            expected
        );
        assert_eq!(
            headers_of(vec![ban("long", 9_000), ban("short", 1_000)]),
            expected
        );
    }
}
