use proptest::prelude::*;

use super::*;

/// The default limits of the original.
pub(crate) const DEFAULT: Rule = Rule {
    ban_ms: 90_000,
    window_ms: 6_000,
    failures_max: 4,
    emails_max: 1,
    mode: Mode::Fixed,
    inclusive: false,
    counts: CountedResults::Failed,
};

fn failures(rule: &Rule, events: &[(u64, u64)]) -> Vec<bool> {
    let mut state = State::default();
    let limited = |(now, email): &(u64, u64)| {
        let decision = rule.decide(&mut state, *now, Event::Failed, *email);
        decision.is_limited
    };
    events.iter().map(limited).collect()
}

#[test]
fn the_sixth_failure_with_a_second_email_starts_the_ban() {
    let events: Vec<_> = (0..7).map(|k| (k * 100, k % 2)).collect();
    let limited = failures(&DEFAULT, &events);
    assert_eq!(limited, [false, false, false, false, false, true, true]);
}

#[test]
fn one_email_is_never_banned() {
    let events: Vec<_> = (0..100).map(|k| (k, 7)).collect();
    assert!(!failures(&DEFAULT, &events).contains(&true));
}

#[test]
fn a_failure_exactly_one_window_old_does_not_count() {
    let burst = |last: u64| {
        let events = [(0, 0), (1, 1), (2, 0), (3, 1), (4, 0), (last, 1)];
        failures(&DEFAULT, &events)[5]
    };
    assert!(burst(5_999));
    assert!(!burst(6_000));
}

#[test]
fn a_ban_ends_on_time_and_nothing_prolongs_it() {
    let mut state = State::default();
    for k in 0..6 {
        DEFAULT.decide(&mut state, k, Event::Failed, k % 2);
    }
    let during = DEFAULT.decide(&mut state, 90_004, Event::Failed, 1);
    assert!(during.is_limited && !during.starts_ban);
    assert!(
        DEFAULT
            .decide(&mut state, 90_004, Event::Succeeded, 1)
            .is_limited
    );
    assert!(
        !DEFAULT
            .decide(&mut state, 90_005, Event::Succeeded, 1)
            .is_limited
    );
    // Another Y + 2 failures are needed.
    let again: Vec<_> = (0..6)
        .map(|k| {
            DEFAULT
                .decide(&mut state, 90_005 + k, Event::Failed, k % 2)
                .starts_ban
        })
        .collect();
    assert_eq!(again, [false, false, false, false, false, true]);
}

#[test]
fn an_old_email_counts_only_in_the_original() {
    let original = Rule {
        mode: Mode::Original,
        ..DEFAULT
    };
    let after = |pause: u64| -> Vec<(u64, u64)> {
        let typos = (0..6).map(|k| (pause + k, 2));
        std::iter::once((0, 1)).chain(typos).collect()
    };
    // In the original's mode, another e-mail minutes ago turns one user's typing errors into a ban.
    assert!(!failures(&DEFAULT, &after(60_000))[6]);
    assert!(failures(&original, &after(60_000))[6]);
    // Until the record has expired.
    assert!(!failures(&original, &after(360_000))[6]);
}

#[test]
fn inclusive_bans_at_the_stated_numbers() {
    let stated = Rule {
        inclusive: true,
        ..DEFAULT
    };
    let limited = failures(&stated, &[(0, 7), (1, 7), (2, 7), (3, 7)]);
    assert_eq!(limited, [false, false, false, true]);
}

fn any_rule() -> impl Strategy<Value = Rule> {
    let mode = prop_oneof![Just(Mode::Fixed), Just(Mode::Original)];
    (
        0..2_000_u64,
        0..1_000_u64,
        0..8_u32,
        0..4_u32,
        mode,
        any::<bool>(),
    )
        .prop_map(
            |(ban_ms, window_ms, failures_max, emails_max, mode, inclusive)| Rule {
                counts: CountedResults::Failed,
                ban_ms,
                window_ms,
                failures_max,
                emails_max,
                mode,
                inclusive,
            },
        )
}

/// The rule with unlimited lists: every failure and every e-mail is kept.
fn decide_uncut(rule: &Rule, state: &mut State, now: u64, email: u64) -> bool {
    if state.banned_until > now {
        return true;
    }
    let windowed = |then: u64| now - then < rule.window_ms;
    if rule.mode == Mode::Original && now - state.touched >= rule.window_ms * 60 {
        state.emails.clear();
    }
    let prior = state.times.iter().filter(|then| windowed(**then)).count();
    state.times.push(now);
    state.emails.push((email, now));
    state.touched = now;
    let counts = |(_, seen): &&(u64, u64)| {
        // The current e-mail counts even in a window of zero length.
        rule.mode == Mode::Original || windowed(*seen) || *seen == now
    };
    let distinct: std::collections::HashSet<u64> = state
        .emails
        .iter()
        .filter(counts)
        .map(|(email, _)| *email)
        .collect();
    let (y, n) = (rule.failures_max as usize, rule.emails_max as usize);
    let exceeded = if rule.inclusive {
        prior + 1 >= y && distinct.len() >= n
    } else {
        prior > y && distinct.len() > n
    };
    if exceeded {
        *state = State {
            banned_until: now + rule.ban_ms,
            ..State::default()
        };
    }
    exceeded
}

proptest! {
    #[test]
    fn cutting_the_lists_changes_no_decision(
        rule in any_rule().prop_filter("a window", |rule| rule.window_ms > 0),
        events in proptest::collection::vec((0..300_u64, 0..5_u64), 1..200),
    ) {
        let (mut cut, mut uncut, mut now) = (State::default(), State::default(), 1);
        for (pause, email) in events {
            now += pause;
            let expected = decide_uncut(&rule, &mut uncut, now, email);
            let decision = rule.decide(&mut cut, now, Event::Failed, email);
            prop_assert_eq!(decision.is_limited, expected);
            prop_assert!(cut.times.len() <= rule.failures_max as usize + 1);
            prop_assert!(cut.emails.len() <= rule.emails_max as usize + 1);
        }
    }

    #[test]
    fn bans_start_at_least_a_ban_apart(
        rule in any_rule(),
        events in proptest::collection::vec((0..50_u64, 0..5_u64), 1..300),
    ) {
        let (mut state, mut now, mut last_start) = (State::default(), 0, None);
        for (pause, email) in events {
            now += pause;
            if rule.decide(&mut state, now, Event::Failed, email).starts_ban {
                if let Some(before) = last_start {
                    prop_assert!(now - before >= rule.ban_ms);
                }
                last_start = Some(now);
            }
        }
    }

    #[test]
    fn a_flood_is_limited_all_but_the_forgiven(
        failures_max in 0..20_u32, emails_max in 0..5_u32, surplus in 0..50_u64,
    ) {
        let emails_max = emails_max.min(failures_max + 1);
        let rule = Rule { failures_max, emails_max, ..DEFAULT };
        let count = u64::from(failures_max) + 2 + surplus;
        let events: Vec<_> = (0..count).map(|k| (9, k % (u64::from(emails_max) + 1))).collect();
        let limited = failures(&rule, &events).into_iter().filter(|limited| *limited).count();
        prop_assert_eq!(limited as u64, count - (u64::from(failures_max) + 1));
    }

    #[test]
    fn no_more_emails_than_forgiven_means_no_ban(
        rule in any_rule().prop_filter("exclusive", |rule| !rule.inclusive && rule.emails_max > 0),
        events in proptest::collection::vec((0..300_u64, 0..8_u64), 1..200),
    ) {
        let mut now = 0;
        let events: Vec<_> = events.into_iter().map(|(pause, email)| {
            now += pause;
            (now, email % u64::from(rule.emails_max))
        }).collect();
        prop_assert!(!failures(&rule, &events).contains(&true));
    }
}
