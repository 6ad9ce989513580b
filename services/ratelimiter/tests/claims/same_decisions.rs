//! Tests that both stores make equal decisions for equal events.

use std::cell::Cell;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use ratelimiter::address::Address;
use ratelimiter::memory::MemoryStore;
use ratelimiter::redis_store::{RedisStore, RuleEvent};
use ratelimiter::rule::{CountedResults, Decision, Event, Mode, Rule};
use redis_link::Link;
use tokio::runtime::{Builder, Runtime};

use test_client::Redis;

/// (pause before it in ms, true if the login failed, e-mail, true for the second of two addresses)
type Step = (u64, bool, u64, bool);

/// At least 30 s, so that keys do not expire by Redis's own clock during the test.
fn any_rule() -> impl Strategy<Value = Rule> {
    let mode = prop_oneof![Just(Mode::Fixed), Just(Mode::Original)];
    let counts = prop_oneof![
        Just(CountedResults::Failed),
        Just(CountedResults::Succeeded),
        Just(CountedResults::Any)
    ];
    let times = (30_000..60_000_u64, 30_000..60_000_u64);
    (times, 0..6_u32, 0..4_u32, mode, any::<bool>(), counts).prop_map(
        |((ban_ms, window_ms), failures_max, emails_max, mode, inclusive, counts)| Rule {
            ban_ms,
            window_ms,
            failures_max,
            emails_max,
            mode,
            inclusive,
            counts,
        },
    )
}

fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    let pause = prop_oneof![
        4 => 0..2_000_u64,
        2 => 5_000..40_000_u64,
        // The ends of windows and bans.
        1 => prop_oneof![Just(30_000), Just(60_000), Just(2_000_000), Just(4_000_000)],
    ];
    let step = (pause, prop::bool::weighted(0.9), 0..4_u64, any::<bool>());
    proptest::collection::vec(step, 1..60)
}

#[test]
fn memory_and_redis_decide_the_same() {
    let redis = Redis::start();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let cases = Cell::new(0_u32);
    let mut runner = TestRunner::new(Config {
        cases: 150,
        failure_persistence: None,
        ..Config::default()
    });
    let outcome = runner.run(&(any_rule(), any_steps()), |(rule, steps)| {
        // Addresses that no other case uses.
        cases.set(cases.get() + 1);
        let pair = [cases.get() * 2, cases.get() * 2 + 1].map(|number| {
            let text = std::net::Ipv4Addr::from_bits(number).to_string();
            Address::parse(&text).unwrap()
        });
        let by_redis = decide_by_redis(&runtime, &redis.url(), rule, pair, &steps);
        let memory = MemoryStore::new(rule, 1_000);
        let mut now = 1_000_000_000;
        for (place, (pause, failed, email, second)) in steps.iter().enumerate() {
            now += pause;
            let decision = memory.decide(
                pair[usize::from(*second)].into(),
                now,
                event(*failed),
                *email,
            );
            prop_assert_eq!(decision, by_redis[place], "at step {}", place);
        }
        Ok(())
    });
    outcome.unwrap();
}

fn decide_by_redis(
    runtime: &Runtime,
    url: &str,
    rule: Rule,
    pair: [Address; 2],
    steps: &[Step],
) -> Vec<Decision> {
    let deadline = Duration::from_secs(60);
    runtime.block_on(async {
        let store = RedisStore::new(Link::new(url).unwrap(), deadline);
        store.connect();
        assert!(store.ready(deadline).await);
        let (mut now, mut decisions) = (1_000_000_000, Vec::new());
        for (pause, failed, email, second) in steps {
            now += pause;
            let address = pair[usize::from(*second)];
            let of = RuleEvent {
                rule: &rule,
                prefix: "rl:",
                subject: address.into(),
                event: event(*failed),
                other: *email,
            };
            decisions.push(store.decide(of, Some(now)).await.unwrap());
        }
        decisions
    })
}

fn event(failed: bool) -> Event {
    if failed {
        Event::Failed
    } else {
        Event::Succeeded
    }
}
