use redis_link::Outage;

use super::*;
use crate::rule::tests::DEFAULT;
use crate::rules::LiveRules;

fn gate(policy: Policy) -> Gate {
    let metrics = Arc::new(Metrics::of("memory", "file".to_owned()));
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/claims/three-rules.yaml");
    let rules = LiveRules::open(Some(&path), DEFAULT, Some(1_000), Arc::clone(&metrics));
    Gate {
        redis: None,
        policy,
        key: FingerprintKey::from_text("secret"),
        ipv6_prefix: 64,
        finds_ipv4: true,
        rules: Arc::new(rules.unwrap()),
        metrics,
    }
}

fn decision(retry_ms: u64) -> Outcome {
    Ok(Decision {
        is_limited: retry_ms > 0,
        starts_ban: false,
        retry_ms,
        failures: 1,
    })
}

fn lost() -> Outcome {
    Err(RedisStoreError::NotConnected(Outage::NoMaster))
}

/// (true if limited, time to the next try, the name of the rule in the headers)
fn settled(policy: Policy, outcomes: [Outcome; 3]) -> (bool, u64, Option<String>) {
    let gate = gate(policy);
    let rules = gate.rules.current();
    let asked: Vec<_> = rules.iter().zip(outcomes).collect();
    let verdict = gate.settle(&asked);
    let name = verdict.left.map(|left| left.rule.named.name.clone());
    (verdict.is_limited, verdict.retry_ms, name)
}

#[test]
fn the_first_rule_that_limits_decides_and_a_shadow_never_does() {
    let some = |name: &str| Some(name.to_owned());
    let of = |outcomes| settled(Policy::Open, outcomes);
    assert_eq!(
        of([decision(7), decision(8), decision(9)]),
        (true, 7, some("ip"))
    );
    assert_eq!(
        of([decision(0), decision(8), decision(9)]),
        (true, 9, some("email"))
    );
    assert!(!of([decision(0), decision(8), decision(0)]).0);
    // The rule with the fewest events left is in the headers.
    assert_eq!(
        of([decision(0), decision(0), decision(0)]),
        (false, 0, some("email"))
    );
}

#[test]
fn the_policy_decides_if_a_rule_has_no_decision_and_no_other_rule_limits() {
    for (policy, is_limited) in [(Policy::Open, false), (Policy::Closed, true)] {
        let of = |outcomes| settled(policy, outcomes);
        let retry = if is_limited { POLICY_RETRY_MS } else { 0 };
        assert_eq!(
            of([decision(0), decision(0), lost()]),
            (is_limited, retry, None)
        );
        // The gate remembers a known ban. A rule in shadow without a decision limits no client.
        assert!(of([lost(), decision(0), decision(5)]).0);
        assert!(!of([decision(0), lost(), decision(0)]).0);
    }
}
