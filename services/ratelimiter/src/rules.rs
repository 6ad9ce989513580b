//! The rules that decide, and their exchange while the service runs.
//!
//! Without a file there is one rule, the seed's. Every rule counts each event for itself. The first rule of the
//! file that limits an event decides it. A rule in shadow counts and never limits.

pub(crate) mod file;

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use crate::address::Address;
use crate::email::FingerprintKey;
use crate::memory::MemoryStore;
use crate::metrics::{Metrics, RuleCounts};
use crate::rule::{CountedResults, Rule};
use crate::subject::Subject;

use file::RulesError;

/// The name of the seed's rule, in headers and metrics.
pub(crate) const SEED: &str = "login";

/// The subject that a rule counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleKey {
    /// The address. The rule may also count its different e-mails.
    Ip,
    /// The e-mail. The rule may also count its different addresses.
    Email,
    /// The e-mail at an address.
    Both,
}

impl RuleKey {
    /// The counter of an event, and the fingerprint for the number of different e-mails or addresses.
    pub(crate) fn subject(
        self,
        fingerprints: &FingerprintKey,
        address: Address,
        email: &str,
    ) -> (Subject, u64) {
        match self {
            Self::Ip => (address.into(), fingerprints.fingerprint(address, email)),
            // The fingerprint of an address alone: the empty text is no e-mail.
            Self::Email => (
                fingerprints.subject(None, email),
                fingerprints.fingerprint(address, ""),
            ),
            Self::Both => (fingerprints.subject(Some(address), email), 0),
        }
    }
}

/// A rule with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedRule {
    pub(crate) name: String,
    pub(crate) key: RuleKey,
    pub(crate) rule: Rule,
    /// True if the rule counts and never limits.
    pub(crate) is_shadow: bool,
    /// The part of its keys in Redis before the subject. Counters survive a reload if it is equal.
    pub(crate) prefix: String,
}

impl NamedRule {
    /// The seed's rule, with the keys that it has in Redis.
    pub(crate) fn seed(rule: Rule) -> Self {
        Self {
            name: SEED.to_owned(),
            key: RuleKey::Ip,
            rule,
            is_shadow: false,
            prefix: "rl:".to_owned(),
        }
    }

    /// A rule of a file.
    pub(crate) fn of_file(name: String, key: RuleKey, rule: Rule, is_shadow: bool) -> Self {
        let results = match rule.counts {
            CountedResults::Failed => "failed",
            CountedResults::Succeeded => "succeeded",
            CountedResults::Any => "any",
        };
        let of = match key {
            RuleKey::Ip => "ip",
            RuleKey::Email => "email",
            RuleKey::Both => "both",
        };
        // Another event or another key gives a count another meaning, so it begins at zero.
        let prefix = format!("rl:{name}:{results}:{of}:");
        Self {
            name,
            key,
            rule,
            is_shadow,
            prefix,
        }
    }
}

/// A rule with its counters.
#[derive(Debug)]
pub(crate) struct ActiveRule {
    pub(crate) named: NamedRule,
    pub(crate) counts: Arc<RuleCounts>,
    /// `None` if the counters are in Redis.
    pub(crate) memory: Option<Arc<MemoryStore>>,
}

/// The rules in their order of decision.
pub(crate) type RuleSet = Vec<Arc<ActiveRule>>;

/// The current rules of all workers.
#[derive(Debug)]
pub(crate) struct LiveRules {
    current: RwLock<Arc<RuleSet>>,
    /// Subjects of each rule in memory. `None` if the counters are in Redis.
    entries_max: Option<usize>,
    metrics: Arc<Metrics>,
    /// The file of the rules. `None` for the seed's rule.
    file: Option<PathBuf>,
}

impl LiveRules {
    /// Reads the file, or takes the seed's rule without a file.
    pub(crate) fn open(
        file: Option<&Path>,
        seed: Rule,
        entries_max: Option<usize>,
        metrics: Arc<Metrics>,
    ) -> Result<Self, RulesError> {
        let named = match file {
            Some(path) => file::read(path)?,
            None => vec![NamedRule::seed(seed)],
        };
        let rules = Self {
            current: RwLock::default(),
            entries_max,
            metrics,
            file: file.map(Path::to_owned),
        };
        rules.replace(named);
        Ok(rules)
    }

    pub(crate) fn current(&self) -> Arc<RuleSet> {
        let current = self.current.read();
        // A panic elsewhere leaves the list valid.
        Arc::clone(&current.unwrap_or_else(PoisonError::into_inner))
    }

    /// The file of the rules. `None` for the seed's rule, which cannot change.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Reads the file again. After a wrong file, the old rules stay.
    pub(crate) fn reload(&self, path: &Path) {
        match file::read(path) {
            Ok(named) => {
                let count = named.len();
                self.replace(named);
                self.metrics.reloaded(true);
                tracing::info!(rules = count, "reloaded the rules");
            }
            Err(error) => {
                self.metrics.reloaded(false);
                let error = error.in_one_line();
                tracing::warn!(error, "refused the file of rules, and kept the old rules");
            }
        }
    }

    /// Removes the expired states of every rule in memory.
    pub(crate) fn sweep(&self, now: u64) {
        for rule in self.current().iter() {
            if let Some(store) = &rule.memory {
                store.sweep(now);
            }
        }
    }

    fn replace(&self, named: Vec<NamedRule>) {
        // Only the start and the reloading task call this, so no other list appears meanwhile. Workers decide
        // while the stores change.
        let old = self.current();
        let rules = named.into_iter().map(|named| self.active(named, &old));
        let rules: RuleSet = rules.collect();
        let counts = rules.iter().map(|rule| Arc::clone(&rule.counts));
        self.metrics.set_rules(counts.collect());
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(rules);
    }

    /// The rule with the counters of an old rule that counted the same.
    fn active(&self, named: NamedRule, old: &RuleSet) -> Arc<ActiveRule> {
        let counts = old.iter().find(|old| old.named.name == named.name);
        let counts = counts.map(|old| Arc::clone(&old.counts));
        let kept = old.iter().find(|old| old.named.prefix == named.prefix);
        let memory = match kept.and_then(|old| old.memory.as_ref()) {
            Some(store) => {
                store.replace_rule(named.rule);
                Some(Arc::clone(store))
            }
            None => self
                .entries_max
                .map(|most| Arc::new(MemoryStore::new(named.rule, most))),
        };
        Arc::new(ActiveRule {
            counts: counts.unwrap_or_else(|| Arc::new(RuleCounts::of(&named.name))),
            memory,
            named,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Event;
    use crate::rule::tests::DEFAULT;

    fn live() -> LiveRules {
        let metrics = Arc::new(Metrics::of("memory", "file".to_owned()));
        LiveRules::open(None, DEFAULT, Some(1_000), metrics).unwrap()
    }

    fn named(name: &str, counts: CountedResults, failures_max: u32) -> NamedRule {
        let rule = Rule {
            failures_max,
            emails_max: 1,
            inclusive: true,
            counts,
            ..DEFAULT
        };
        NamedRule::of_file(name.to_owned(), RuleKey::Ip, rule, false)
    }

    fn is_limited(live: &LiveRules, event: Event) -> bool {
        let rules = live.current();
        let store = rules[0].memory.as_ref().unwrap();
        let subject = Subject::Address(Address::parse("10.0.0.1").unwrap());
        store.decide(subject, 1, event, 1).is_limited
    }

    #[test]
    fn the_seed_keeps_its_keys() {
        let seed = NamedRule::seed(DEFAULT);
        let subject = Subject::Address(Address::parse("::ffff:10.0.0.1").unwrap());
        assert_eq!(format!("{}{{{subject}}}", seed.prefix), "rl:{10.0.0.1}");
    }

    #[test]
    fn new_limits_keep_the_counts_and_another_event_begins_at_zero() {
        let live = live();
        live.replace(vec![named("a", CountedResults::Failed, 5)]);
        assert!(!is_limited(&live, Event::Failed));
        assert!(!is_limited(&live, Event::Failed));
        let more = vec![
            named("a", CountedResults::Failed, 3),
            named("b", CountedResults::Failed, 3),
        ];
        live.replace(more);
        assert!(is_limited(&live, Event::Failed));
        live.replace(vec![named("a", CountedResults::Any, 3)]);
        assert!(!is_limited(&live, Event::Succeeded));
    }

    #[test]
    fn subjects_of_different_rules_differ() {
        let key = FingerprintKey::from_text("secret");
        let [one, two] = ["10.0.0.1", "10.0.0.2"].map(|text| Address::parse(text).unwrap());
        let of = |rule: RuleKey, address, email| rule.subject(&key, address, email);
        assert_eq!(
            of(RuleKey::Ip, one, "a@b.se").0,
            of(RuleKey::Ip, one, "c@d.se").0
        );
        assert_ne!(
            of(RuleKey::Ip, one, "a@b.se").1,
            of(RuleKey::Ip, one, "c@d.se").1
        );
        assert_eq!(
            of(RuleKey::Email, one, "A@b.se").0,
            of(RuleKey::Email, two, "a@b.se").0
        );
        assert_ne!(
            of(RuleKey::Email, one, "a@b.se").1,
            of(RuleKey::Email, two, "a@b.se").1
        );
        assert_ne!(
            of(RuleKey::Both, one, "a@b.se").0,
            of(RuleKey::Both, two, "a@b.se").0
        );
        assert_ne!(
            of(RuleKey::Both, one, "a@b.se").0,
            of(RuleKey::Email, one, "a@b.se").0
        );
    }
}
