//! Tests rules of a file, in memory and in Redis.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use rustix::process::Signal;
use test_client::{Process, Redis, TestClient};

use crate::outage::{say, until};
use crate::server::{is_limited, start};

/// The rules `ip` (six failures with two e-mails), `any-shadow` (three events) and `email` (four failures).
const THREE_RULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/claims/three-rules.yaml");

fn failed(client: &mut TestClient, ip: &str, email: &str) -> bool {
    is_limited(client, "LOGIN_FAILED", ip, email)
}

fn decisions(client: &mut TestClient, rule: &str, result: &str) -> u64 {
    let labels = format!("{{rule=\"{rule}\",result=\"{result}\"}}");
    client.metric(&format!("ratelimiter_rule_decisions_total{labels}"))
}

/// The headers of a decision: `Retry-After`, `RateLimit-Policy`.
fn headers(client: &mut TestClient, ip: &str, email: &str) -> (Option<String>, Option<String>) {
    let query = format!(
        "{{ ratelimit(ratelimitInput: {{eventName: LOGIN_SUCCEEDED, ip: \"{ip}\", email: \"{email}\"}}) {{ isRateLimited }} }}"
    );
    let response = client.query(&query);
    assert!(!response.body.contains("email") && !response.body.contains("shadow"));
    let of = |name: &str| response.header(name).map(str::to_owned);
    (of("retry-after"), of("ratelimit-policy"))
}

fn check_three_rules(server: &Process) {
    let mut client = server.client();
    // One e-mail from many addresses: only the rule of e-mails can see it.
    let attacks = (0..4).map(|number| {
        let ip = format!("10.0.1.{number}");
        failed(
            &mut client,
            &ip,
            if number % 2 == 0 { "A@b.se" } else { "a@B.se" },
        )
    });
    assert_eq!(attacks.collect::<Vec<_>>(), [false, false, false, true]);
    assert!(failed(&mut client, "10.0.1.9", "a@b.se"));
    let (retry, policy) = headers(&mut client, "10.0.1.9", "a@b.se");
    assert!(matches!(retry.as_deref(), Some("299" | "300")), "{retry:?}");
    assert_eq!(policy.as_deref(), Some("\"email\";q=3;w=600"));
    // Many e-mails from one address: only the rule of addresses limits.
    let attacks = (0..7).map(|number| failed(&mut client, "10.0.2.1", &format!("{number}@b.se")));
    assert_eq!(
        attacks.collect::<Vec<_>>(),
        [false, false, false, false, false, true, true]
    );
    let (retry, policy) = headers(&mut client, "10.0.2.1", "z@b.se");
    assert!(matches!(retry.as_deref(), Some("89" | "90")), "{retry:?}");
    assert_eq!(policy.as_deref(), Some("\"ip\";q=5;w=600"));
    // A client of both bans gets the first rule of the file.
    let (_, policy) = headers(&mut client, "10.0.2.1", "a@b.se");
    assert_eq!(policy.as_deref(), Some("\"ip\";q=5;w=600"));
    // Successes count for the rule in shadow, which never limits.
    for _ in 0..5 {
        assert!(!is_limited(
            &mut client,
            "LOGIN_SUCCEEDED",
            "10.0.3.1",
            "s@b.se"
        ));
    }
    assert!(decisions(&mut client, "any-shadow", "would_limit") >= 3);
    assert_eq!(decisions(&mut client, "any-shadow", "limited"), 0);
    // Two attacks and a look with both, and two looks at the other ban.
    assert_eq!(decisions(&mut client, "ip", "limited"), 4);
    assert_eq!(decisions(&mut client, "email", "limited"), 4);
    assert_eq!(
        client.metric("ratelimiter_rule_bans_total{rule=\"email\"}"),
        1
    );
    assert_eq!(client.metric("ratelimiter_bans_total"), 2);
}

#[test]
fn the_first_rule_that_bans_decides_and_a_rule_in_shadow_only_counts() {
    let server = start(&["--rules", THREE_RULES, "--workers", "1"]);
    check_three_rules(&server);
    server.signal(Signal::TERM);
    let (_, log) = server.wait_with_log();
    let told = log
        .lines()
        .filter(|line| line.contains("a rule in shadow would have limited"));
    assert_eq!(told.count(), 1, "{log}");
    assert!(log.contains("any-shadow") && !log.contains("b.se"), "{log}");
}

#[test]
fn rules_in_redis_have_keys_of_their_own_and_the_seed_keeps_its_key() {
    let redis = Redis::start();
    let url = redis.url();
    let common = ["--redis-url", &url, "--store-deadline-ms", "30000"];
    let server = start(&[&common[..], &["--rules", THREE_RULES]].concat());
    check_three_rules(&server);
    let keys = say(redis.port(), "KEYS rl:ip:failed:ip:{10.0.2.1}");
    assert!(keys.starts_with("*1"), "{keys}");
    let keys = say(redis.port(), "KEYS rl:email:failed:email:{*}");
    assert!(!keys.starts_with("*0") && !keys.contains("b.se"), "{keys}");
    let keys = say(redis.port(), "KEYS rl:{*}");
    assert!(keys.starts_with("*0"), "{keys}");
    let seed = start(&common);
    failed(&mut seed.client(), "10.0.9.9", "a@b.se");
    let keys = say(redis.port(), "KEYS rl:{*}");
    assert!(
        keys.starts_with("*1") && keys.contains("rl:{10.0.9.9}"),
        "{keys}"
    );
}

/// A file of rules that a test changes.
struct File(tempfile::TempDir);

impl File {
    fn new(text: &str) -> Self {
        let file = Self(tempfile::tempdir().unwrap());
        file.write(text);
        file
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("rules.yaml")
    }

    fn write(&self, text: &str) {
        fs::write(self.path(), text).unwrap();
    }
}

fn one_rule(count: u32) -> String {
    format!(
        "rules:\n- {{name: one, event: LOGIN_FAILED, key: ip, window: 600s, count: {count}, ban: 600s}}\n"
    )
}

fn reloads(client: &mut TestClient, result: &str) -> u64 {
    let metric = format!("ratelimiter_rules_reloads_total{{result=\"{result}\"}}");
    client.metric(&metric)
}

#[test]
fn a_reload_keeps_the_counts_and_refuses_a_wrong_file() {
    let file = File::new(&one_rule(10));
    let path = file.path();
    let redis = Redis::start();
    let url = redis.url();
    for flags in [
        &[][..],
        &["--redis-url", &url, "--store-deadline-ms", "30000"],
    ] {
        file.write(&one_rule(10));
        let rules = ["--rules", path.to_str().unwrap()];
        let mut server = start(&[&rules[..], flags].concat());
        let mut client = server.client();
        for _ in 0..4 {
            assert!(!failed(&mut client, "10.0.0.1", "a@b.se"));
        }
        file.write(&one_rule(0));
        server.signal(Signal::HUP);
        let line = server.wait_for("refused the file of rules").to_string();
        assert!(
            line.contains("rules.yaml:2: expected at least 1, found `0`"),
            "{line}"
        );
        until(|| reloads(&mut client, "refused") == 1);
        assert!(
            !failed(&mut client, "10.0.0.1", "a@b.se"),
            "the old rule stays"
        );
        file.write(&one_rule(6));
        server.signal(Signal::HUP);
        server.wait_for("reloaded the rules");
        until(|| reloads(&mut client, "loaded") == 1);
        // The sixth failure of all, and the first one since the reload.
        assert!(failed(&mut client, "10.0.0.1", "a@b.se"), "{flags:?}");
        assert_eq!(decisions(&mut client, "one", "passed"), 5);
        assert_eq!(decisions(&mut client, "one", "limited"), 1);
    }
}

fn run(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ratelimiter"));
    command.args(words).output().unwrap()
}

#[test]
fn a_wrong_file_stops_the_start_and_can_be_checked_before() {
    let file = File::new(&one_rule(0));
    let path = file.path();
    let path = path.to_str().unwrap();
    for words in [
        &["--port=0", "--rules", path][..],
        &["--rules", path, "--check"],
    ] {
        let output = run(words);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains("expected at least 1, found `0`"), "{told}");
        assert!(output.stdout.is_empty());
    }
    file.write(&one_rule(1));
    let output = run(&["--rules", path, "--check"]);
    assert!(output.status.success());
    let told = String::from_utf8_lossy(&output.stdout);
    assert_eq!(told, "rules: 1, mistakes: 0\n");
    let output = run(&["--port=0", "--rules=none.yaml"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        told.contains("cannot read the rules in `none.yaml`"),
        "{told}"
    );
}

#[test]
fn without_redis_the_policy_decides_for_all_rules() {
    let mut redis = Redis::start();
    redis.kill();
    let flags = [
        "--redis-url",
        &redis.url(),
        "--rules",
        THREE_RULES,
        "--store-failure",
        "closed",
    ];
    let server = start(&flags);
    let mut client = server.client();
    assert!(failed(&mut client, "10.0.0.1", "a@b.se"));
    assert_eq!(decisions(&mut client, "ip", "undecided"), 1);
    assert_eq!(decisions(&mut client, "any-shadow", "undecided"), 1);
    let by_policy = "ratelimiter_policy_decisions_by_reason_total{reason=\"not-connected\"}";
    assert_eq!(client.metric(by_policy), 1);
}
