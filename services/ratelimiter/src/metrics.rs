//! Counters of all workers.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use redis_link::Outage;

use telemetry::metrics::{Buckets, Counts, Scrape};

use crate::clock;
use crate::rule::Decision;

/// Upper bounds of the histogram of store latency, in microseconds.
const BOUNDS_US: [f64; 12] = [
    10.0, 50.0, 100.0, 250.0, 500.0, 1e3, 2.5e3, 5e3, 1e4, 2.5e4, 5e4, 1e5,
];

/// The reasons why the policy decides, from [`redis_link::LinkError::reason`].
const REASONS: [&str; 10] = [
    Outage::NotConnected.reason(),
    Outage::WrongLogin.reason(),
    Outage::Certificate.reason(),
    Outage::NoTls.reason(),
    Outage::NoSentinel.reason(),
    Outage::NoMaster.reason(),
    "timed-out",
    "wrong-server",
    "lost",
    "refused",
];

/// Minimum time between two log lines about one rule in shadow.
const SHADOW_PAUSE: Duration = Duration::from_secs(10);

/// The counters of one rule.
#[derive(Debug, Default)]
pub(crate) struct RuleCounts {
    name: String,
    passed: AtomicU64,
    limited: AtomicU64,
    /// Decisions in shadow that would have limited.
    would_limit: AtomicU64,
    /// Events without a decision, because the store failed.
    undecided: AtomicU64,
    bans: AtomicU64,
    /// Time of the last log line about decisions in shadow.
    told: Mutex<Option<Instant>>,
}

impl RuleCounts {
    /// Creates counters at zero.
    pub(crate) fn of(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// Counts a decision of this rule. `None` if the store failed.
    pub(crate) fn add(&self, decision: Option<&Decision>, is_shadow: bool) {
        let counter = match decision {
            None => &self.undecided,
            Some(decision) if !decision.is_limited => &self.passed,
            Some(_) if is_shadow => &self.would_limit,
            Some(_) => &self.limited,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        if decision.is_some_and(|decision| decision.starts_ban) {
            self.bans.fetch_add(1, Ordering::Relaxed);
        }
        if is_shadow && decision.is_some_and(|decision| decision.is_limited) {
            self.tell_shadow();
        }
    }

    /// Logs decisions in shadow, at most one line per `SHADOW_PAUSE`.
    fn tell_shadow(&self) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_some_and(|told| told.elapsed() < SHADOW_PAUSE) {
            return;
        }
        *told = Some(clock::now());
        let would_have_limited = self.would_limit.load(Ordering::Relaxed);
        let bans = self.bans.load(Ordering::Relaxed);
        tracing::info!(
            rule = self.name,
            would_have_limited,
            bans,
            "a rule in shadow would have limited"
        );
    }
}

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Labels of decisions: the store and the rule.
    store: &'static str,
    rule: String,
    passed: AtomicU64,
    limited: AtomicU64,
    bans: AtomicU64,
    invalid: AtomicU64,
    /// Decisions by the policy, for each of [`REASONS`].
    by_policy: [AtomicU64; REASONS.len()],
    /// Position in [`REASONS`] plus 1 if the last decision was made by the policy. 0 if the store made it.
    last_reason: AtomicUsize,
    /// The counters of the current rules.
    rules: Mutex<Vec<Arc<RuleCounts>>>,
    /// Files of rules that were loaded again, and files that were refused.
    reloads: [AtomicU64; 2],
    requests: AtomicU64,
    gets_refused: AtomicU64,
    /// One bucket more than bounds, for latencies beyond the last bound.
    buckets: [AtomicU64; BOUNDS_US.len() + 1],
    store_us: AtomicU64,
}

impl Metrics {
    /// Creates counters at zero.
    pub(crate) fn of(store: &'static str, rule: String) -> Self {
        Self {
            store,
            rule,
            ..Self::default()
        }
    }

    pub(crate) fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a refused GET that would have changed the state of an address.
    pub(crate) fn get_refused(&self) {
        self.gets_refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a decision with an invalid address or e-mail.
    pub(crate) fn invalid(&self) {
        self.invalid.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn decided(&self, is_limited: bool) {
        let counter = if is_limited {
            &self.limited
        } else {
            &self.passed
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts bans that limit clients.
    pub(crate) fn bans_started(&self, count: u64) {
        // A check first, because all workers share the cache line.
        if count > 0 {
            self.bans.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Replaces the counters of the rules.
    pub(crate) fn set_rules(&self, rules: Vec<Arc<RuleCounts>>) {
        *self.rules.lock().unwrap_or_else(PoisonError::into_inner) = rules;
    }

    /// Counts a file of rules that was read again.
    pub(crate) fn reloaded(&self, is_valid: bool) {
        self.reloads[usize::from(!is_valid)].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a decision by the policy, because the store failed for this reason.
    pub(crate) fn store_failed(&self, reason: &str) {
        let known = REASONS.iter().position(|known| *known == reason);
        // An error without a label of its own is an answer of the store.
        let index = known.unwrap_or(REASONS.len() - 1);
        self.by_policy[index].fetch_add(1, Ordering::Relaxed);
        self.last_reason.store(index + 1, Ordering::Relaxed);
    }

    /// Notes a decision by the store.
    pub(crate) fn store_decided(&self) {
        // A read first, because all workers share the cache line.
        if self.last_reason.load(Ordering::Relaxed) != 0 {
            self.last_reason.store(0, Ordering::Relaxed);
        }
    }

    /// The reason why the policy made the last decision. `None` if the store made it.
    pub(crate) fn policy_decides(&self) -> Option<&'static str> {
        let last = self.last_reason.load(Ordering::Relaxed);
        REASONS.get(last.checked_sub(1)?).copied()
    }

    pub(crate) fn store_took(&self, time: Duration) {
        // 2^64 microseconds are 584,000 years.
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_US.partition_point(|bound| *bound < us as f64);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.store_us.fetch_add(us, Ordering::Relaxed);
    }
}

impl Counts for Metrics {
    fn tell(&self, scrape: &mut Scrape<'_>) -> std::fmt::Result {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        for (name, help, counter) in [
            ("ratelimiter_requests", "HTTP requests", &self.requests),
            (
                "ratelimiter_gets_refused",
                "Requests by GET that were refused because they would have changed something",
                &self.gets_refused,
            ),
            ("ratelimiter_bans", "Bans that were started", &self.bans),
            (
                "ratelimiter_invalid",
                "Decisions refused for their address or e-mail",
                &self.invalid,
            ),
        ] {
            scrape.counter(name, help, read(counter))?;
        }
        scrape.counter(
            "ratelimiter_policy_decisions",
            "Decisions made by the policy for a failed store",
            self.by_policy.iter().map(read).sum(),
        )?;
        let reasons = REASONS.map(|reason| [("reason", reason)]);
        let by_reason = reasons.iter().zip(&self.by_policy);
        scrape.counters(
            "ratelimiter_policy_decisions_by_reason",
            "Decisions made by the policy, by the reason why the store did not make them",
            by_reason.map(|(reason, counter)| (&reason[..], read(counter))),
        )?;
        let labels = |result| {
            [
                ("result", result),
                ("store", self.store),
                ("rule", &self.rule),
            ]
        };
        let (passed, limited) = (labels("passed"), labels("limited"));
        scrape.counters(
            "ratelimiter_decisions",
            "Answers by result, with the store asked and its rule",
            [
                (&passed[..], read(&self.passed)),
                (&limited[..], read(&self.limited)),
            ],
        )?;
        self.tell_rules(scrape)?;
        let counts: Vec<u64> = self.buckets.iter().map(read).collect();
        let buckets = Buckets {
            bounds: &BOUNDS_US,
            counts: &counts,
            // Exact up to 2^53 µs, which is 285 years.
            sum: read(&self.store_us) as f64,
        };
        scrape.histograms(
            "ratelimiter_store_latency_us",
            "Time that the store took, in microseconds",
            [(&[][..], buckets)],
        )
    }
}

impl Metrics {
    fn tell_rules(&self, scrape: &mut Scrape<'_>) -> std::fmt::Result {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let rules = self.rules.lock();
        let rules = rules.unwrap_or_else(PoisonError::into_inner).clone();
        let results = rules.iter().flat_map(|rule| {
            let results = [
                ("passed", &rule.passed),
                ("limited", &rule.limited),
                ("would_limit", &rule.would_limit),
                ("undecided", &rule.undecided),
            ];
            results.map(|(result, counter)| {
                let labels = [("rule", rule.name.as_str()), ("result", result)];
                (labels, read(counter))
            })
        });
        let results: Vec<_> = results.collect();
        scrape.counters(
            "ratelimiter_rule_decisions",
            "Decisions of each rule, in shadow too",
            results.iter().map(|(labels, count)| (&labels[..], *count)),
        )?;
        let bans = rules
            .iter()
            .map(|rule| ([("rule", rule.name.as_str())], read(&rule.bans)));
        let bans: Vec<_> = bans.collect();
        scrape.counters(
            "ratelimiter_rule_bans",
            "Bans that each rule started, or would have started in shadow",
            bans.iter().map(|(labels, count)| (&labels[..], *count)),
        )?;
        let [loaded, refused] = &self.reloads;
        scrape.counters(
            "ratelimiter_rules_reloads",
            "Files of rules that were read again, by result",
            [
                (&[("result", "loaded")][..], read(loaded)),
                (&[("result", "refused")][..], read(refused)),
            ],
        )
    }
}
