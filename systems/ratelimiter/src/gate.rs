//! Lets a store decide, and decides by the configured policy if the store fails.

use std::sync::Arc;

use crate::address::Address;
use crate::clock;
use crate::email::FingerprintKey;
use crate::memory::MemoryStore;
use crate::metrics::Metrics;
use crate::redis_store::RedisStore;
use crate::rule::{Decision, Event, Rule};

/// Response if the store is unavailable or slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Policy {
    /// Allow every client. Users can log in, and attackers can guess passwords.
    Open,
    /// Refuse every client. Attackers cannot log in, and users cannot either.
    Closed,
}

/// The store of the counts.
#[derive(Clone)]
pub(crate) enum Store {
    /// In the memory of this process.
    Memory(Arc<MemoryStore>),
    /// In Redis, shared with other instances.
    Redis(RedisStore),
}

/// The result of one event for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// True if the client must be refused.
    pub(crate) is_limited: bool,
    /// Time until the client may try again, in milliseconds. 0 if it is not limited.
    pub(crate) retry_ms: u64,
    /// Failures in the window that cannot start a ban yet. `None` if the policy decided.
    pub(crate) left: Option<u32>,
}

/// Time after which a client may try again if the policy refuses it, in milliseconds.
const POLICY_RETRY_MS: u64 = 1_000;

/// Decides events with a store, or by the policy if the store fails.
#[derive(Clone)]
pub(crate) struct Gate {
    pub(crate) store: Store,
    pub(crate) policy: Policy,
    pub(crate) key: FingerprintKey,
    /// Bits of an IPv6 address that share a counter.
    pub(crate) ipv6_prefix: u8,
    /// True if a client with an IPv4 address inside an IPv6 address is counted by its IPv4 address. False as
    /// in the original.
    pub(crate) finds_ipv4: bool,
    pub(crate) rule: Rule,
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
        let address = address.network(self.ipv6_prefix);
        let email = self.key.fingerprint(address, email);
        let start = clock::now();
        let decided = match &self.store {
            Store::Memory(store) => Ok(store.decide(address, clock::now_ms(), event, email)),
            Store::Redis(store) => store.decide(address, event, email).await,
        };
        self.metrics.store_took(start.elapsed());
        let (decision, left) = match decided {
            Ok(decision) => {
                self.metrics.store_decided();
                let left = match decision.is_limited {
                    true => 0,
                    false => self
                        .rule
                        .failures_allowed()
                        .saturating_sub(decision.failures),
                };
                (decision, Some(left))
            }
            Err(error) => {
                // The store's own task logs the loss and the return of the connection. A line for each
                // decision would flood the log.
                self.metrics.store_failed(error.reason());
                let is_limited = self.policy == Policy::Closed;
                let decision = Decision {
                    is_limited,
                    starts_ban: false,
                    // The store may be back soon.
                    retry_ms: if is_limited { POLICY_RETRY_MS } else { 0 },
                    failures: 0,
                };
                (decision, None)
            }
        };
        self.metrics.decided(decision);
        Verdict {
            is_limited: decision.is_limited,
            retry_ms: decision.retry_ms,
            left,
        }
    }
}
