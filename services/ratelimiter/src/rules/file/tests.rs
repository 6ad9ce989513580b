use super::*;

const SEED_AS_A_RULE: &str = "
rules:
  - name: login
    event: LOGIN_FAILED
    key: ip
    window: 6s
    count: 6
    different: 2
    ban: 90s
";

fn told(text: &str) -> String {
    parse(Path::new("rules.yaml"), text)
        .unwrap_err()
        .to_string()
}

/// The file above with one change.
fn changed(from: &str, to: &str) -> String {
    assert!(SEED_AS_A_RULE.contains(from), "{from}");
    SEED_AS_A_RULE.replace(from, to)
}

#[test]
fn the_seed_can_be_written_as_a_rule() {
    let rules = parse(Path::new("rules.yaml"), SEED_AS_A_RULE).unwrap();
    let [rule] = &rules[..] else {
        panic!("{rules:?}");
    };
    let seed = crate::rule::tests::DEFAULT;
    assert_eq!((rule.key, rule.is_shadow), (RuleKey::Ip, false));
    assert_eq!(
        (rule.rule.ban_ms, rule.rule.window_ms),
        (seed.ban_ms, seed.window_ms)
    );
    assert_eq!(rule.rule.failures_allowed(), seed.failures_allowed());
    for first in 0..2 {
        let decide = |rule: &Rule| {
            let mut state = crate::rule::State::default();
            (0..7_u64)
                .map(|at| {
                    let event = crate::rule::Event::Failed;
                    rule.decide(&mut state, at, event, (first + at) % 2)
                        .is_limited
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(decide(&rule.rule), decide(&seed));
    }
}

#[test]
fn mistakes_are_told_by_name_with_the_expected_form() {
    for (text, expected) in [
        (String::new(), "found an empty file"),
        ("rules: []".to_owned(), "the list is empty"),
        ("rule: []".to_owned(), "unknown key `rule`"),
        (changed("count", "counts"), "did you mean `count`?"),
        (
            changed("count: 6", "count: 0"),
            "expected at least 1, found `0`",
        ),
        (changed("count: 6", "count: many"), "`many`"),
        (changed("    count: 6\n", ""), "the key `count` is missing"),
        (
            changed("6s", "6"),
            "expected a whole number and a unit (ms, s), such as 500ms, found `6`",
        ),
        (
            changed("90s", "0s"),
            "expected a time from 1000ms to 31536000s, found `0s`",
        ),
        (
            changed("LOGIN_FAILED", "LOGIN_FAILD"),
            "did you mean `LOGIN_FAILED`?",
        ),
        (changed("key: ip", "key: phone"), "`ip-and-email`"),
        (
            changed("name: login", "name: Login 1"),
            "`Login 1` is not a name of a rule",
        ),
        (
            changed("different: 2", "different: 7"),
            "expected at most 6, the `count`",
        ),
        (
            changed("key: ip", "key: ip-and-email"),
            "`different` has no meaning",
        ),
        (
            changed("ban: 90s", "ban: 90s\n    shadow: perhaps"),
            "`perhaps`",
        ),
        (changed("ban: 90s", "ban:"), "ban"),
        (
            format!(
                "{SEED_AS_A_RULE}{}",
                SEED_AS_A_RULE.replace("\nrules:\n", "")
            ),
            "two rules have the name `login`",
        ),
    ] {
        let told = told(&text);
        assert!(told.contains(expected), "{text}\n{told}");
        assert!(told.contains("rules.yaml"), "{told}");
    }
}

#[test]
fn one_reading_finds_all_mistakes_and_the_log_has_them_in_one_line() {
    let text = changed("count: 6", "count: 0").replace("90s", "soon");
    let error = RulesError::from(parse(Path::new("rules.yaml"), &text).unwrap_err());
    let line = error.in_one_line();
    assert!(
        line.contains("rules.yaml:7: expected at least 1, found `0`"),
        "{line}"
    );
    assert!(
        line.contains("rules.yaml:9") && !line.contains('\n'),
        "{line}"
    );
}

#[test]
fn the_committed_schema_is_the_schema_of_the_structs() {
    generated::assert_schema("ratelimiter-rules", &schema());
}
