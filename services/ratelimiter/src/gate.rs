//! Lets a store decide, and decides by the configured policy if the store fails.

use std::sync::Arc;

use futures_util::future::join_all;

use crate::address::Address;
use crate::clock;
use crate::email::FingerprintKey;
use crate::metrics::Metrics;
use crate::redis_store::{RedisStore, RedisStoreError, RuleEvent};
use crate::rule::{Decision, Event};
use crate::rules::{ActiveRule, LiveRules};

/// Response if the store is unavailable or slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Policy {
    /// Allow every client. Users can log in, and attackers can guess passwords.
    Open,
    /// Refuse every client. Attackers cannot log in, and users cannot either.
    Closed,
}

/// The result of one event for the client.
#[derive(Debug, Clone)]
pub(crate) struct Verdict {
    /// True if the client must be refused.
    pub(crate) is_limited: bool,
    /// Time until the client may try again, in milliseconds. 0 if it is not limited.
    pub(crate) retry_ms: u64,
    /// The events that are left by the rule that decided. `None` if the policy decided.
    pub(crate) left: Option<Left>,
}

/// The events that are left by one rule.
#[derive(Debug, Clone)]
pub(crate) struct Left {
    /// Events in the window that cannot start a ban yet.
    pub(crate) count: u32,
    pub(crate) rule: Arc<ActiveRule>,
}

/// The event of a request.
#[derive(Clone, Copy)]
struct Login<'a> {
    address: Address,
    event: Event,
    email: &'a str,
}

type Outcome = Result<Decision, RedisStoreError>;

/// Time after which a client may try again if the policy refuses it, in milliseconds.
const POLICY_RETRY_MS: u64 = 1_000;

/// Decides events with a store, or by the policy if the store fails.
#[derive(Clone)]
pub(crate) struct Gate {
    /// `None` if each rule has its counters in memory.
    pub(crate) redis: Option<RedisStore>,
    pub(crate) policy: Policy,
    pub(crate) key: FingerprintKey,
    /// Bits of an IPv6 address that share a counter.
    pub(crate) ipv6_prefix: u8,
    /// True if a client with an IPv4 address inside an IPv6 address is counted by its IPv4 address. False as
    /// in the original.
    pub(crate) finds_ipv4: bool,
    pub(crate) rules: Arc<LiveRules>,
    pub(crate) metrics: Arc<Metrics>,
}

impl Gate {
    /// Decides one event.
    pub(crate) async fn decide(&self, address: Address, event: Event, email: &str) -> Verdict {
        // Before the fingerprint, so that all addresses of a network count as one address.
        let address = if self.finds_ipv4 {
            address.carried()
        } else {
            address
        };
        let login = Login {
            address: address.network(self.ipv6_prefix),
            event,
            email,
        };
        let rules = self.rules.current();
        let start = clock::now();
        let outcomes = match &rules[..] {
            // The usual case needs no list of futures.
            [only] => vec![self.ask(only, login).await],
            rules => join_all(rules.iter().map(|rule| self.ask(rule, login))).await,
        };
        self.metrics.store_took(start.elapsed());
        let asked: Vec<_> = rules.iter().zip(outcomes).collect();
        for (rule, outcome) in &asked {
            rule.counts.add(outcome.as_ref().ok(), rule.named.is_shadow);
        }
        let verdict = self.settle(&asked);
        self.metrics.decided(verdict.is_limited);
        verdict
    }

    /// Asks the store for the decision of one rule.
    async fn ask(&self, rule: &ActiveRule, login: Login<'_>) -> Outcome {
        let Login {
            address,
            event,
            email,
        } = login;
        let (subject, other) = rule.named.key.subject(&self.key, address, email);
        if let Some(memory) = &rule.memory {
            return Ok(memory.decide(subject, clock::now_ms(), event, other));
        }
        let redis = self.redis.as_ref();
        let redis = redis.expect("rules without memory have a Redis");
        let event = RuleEvent {
            rule: &rule.named.rule,
            prefix: &rule.named.prefix,
            subject,
            event,
            other,
        };
        redis.decide(event, None).await
    }

    /// The verdict by the first rule that limits. Otherwise the policy decides if a rule has no decision.
    fn settle(&self, asked: &[(&Arc<ActiveRule>, Outcome)]) -> Verdict {
        let mut strictest: Option<Left> = None;
        let mut failed = None;
        let mut limiting = None;
        for (rule, outcome) in asked.iter().filter(|(rule, _)| !rule.named.is_shadow) {
            match outcome {
                Ok(decision) => {
                    self.metrics.bans_started(u64::from(decision.starts_ban));
                    if decision.is_limited {
                        limiting = limiting.or(Some((*rule, decision)));
                        continue;
                    }
                    let allowed = rule.named.rule.failures_allowed();
                    let count = allowed.saturating_sub(decision.failures);
                    if strictest.as_ref().is_none_or(|left| count < left.count) {
                        let rule = Arc::clone(rule);
                        strictest = Some(Left { count, rule });
                    }
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if failed.is_none() {
            self.metrics.store_decided();
        }
        if let Some((rule, decision)) = limiting {
            let rule = Arc::clone(rule);
            return Verdict {
                is_limited: true,
                retry_ms: decision.retry_ms,
                left: Some(Left { count: 0, rule }),
            };
        }
        let Some(error) = failed else {
            return Verdict {
                is_limited: false,
                retry_ms: 0,
                left: strictest,
            };
        };
        // The store's own task logs the loss and the return of the connection. A line for each decision would
        // flood the log.
        self.metrics.store_failed(error.reason());
        let is_limited = self.policy == Policy::Closed;
        Verdict {
            is_limited,
            // The store may be back soon.
            retry_ms: if is_limited { POLICY_RETRY_MS } else { 0 },
            left: None,
        }
    }
}

#[cfg(test)]
mod tests;
