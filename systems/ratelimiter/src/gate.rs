//! Lets a store decide, and decides by the configured policy if the store fails.

use std::sync::Arc;

use crate::address::Address;
use crate::clock;
use crate::email::FingerprintKey;
use crate::memory::MemoryStore;
use crate::metrics::Metrics;
use crate::redis_store::RedisStore;
use crate::rule::{Decision, Event};

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
    pub(crate) metrics: Arc<Metrics>,
}

impl Gate {
    /// True if the client must be refused.
    pub(crate) async fn is_limited(&self, address: Address, event: Event, email: &str) -> bool {
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
        let decision = match decided {
            Ok(decision) => {
                self.metrics.store_decided();
                decision
            }
            Err(error) => {
                // The store's own task logs the loss and the return of the connection. A line for each
                // decision would flood the log.
                self.metrics.store_failed(error.reason());
                Decision {
                    is_limited: self.policy == Policy::Closed,
                    starts_ban: false,
                }
            }
        };
        self.metrics.decided(decision);
        decision.is_limited
    }
}
