//! Tests TLS to a real Redis, with generated certificates.

use std::process::Command;

use rustix::process::Signal;
use test_client::{Process, Redis, TestClient};

use crate::certificates::{Authority, Identity};
use crate::outage::until;
use crate::server::{is_limited, start};

const HEALTH: &str = "/.well-known/apollo/server-health";

/// A Redis with TLS and a password.
fn redis(authority: &Authority, identity: &Identity, clients: &str) -> Redis {
    let settings = authority.settings(identity, clients);
    let mut flags: Vec<String> = Vec::new();
    for (name, value) in settings {
        flags.extend([format!("--{name}"), value]);
    }
    flags.extend(["--requirepass".to_owned(), "p@ss".to_owned()]);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    Redis::start_with(&flags)
}

fn limiter(url: &str, flags: &[&str]) -> Process {
    let common = [
        "--redis-url",
        url,
        "--store-failure",
        "closed",
        "--store-deadline-ms",
        "30000",
        "--workers",
        "1",
    ];
    start(&[&common[..], flags].concat())
}

fn succeeded(client: &mut TestClient) -> bool {
    is_limited(client, "LOGIN_SUCCEEDED", "10.0.0.1", "a@b.se")
}

/// Checks that Redis decides.
fn assert_decides(server: &Process) {
    let mut client = server.client();
    until(|| !succeeded(&mut client));
    let limited: Vec<bool> = (0..6)
        .map(|number| {
            let email = format!("{}@b.se", number % 2);
            is_limited(&mut client, "LOGIN_FAILED", "10.0.0.2", &email)
        })
        .collect();
    assert_eq!(limited, [false, false, false, false, false, true]);
    assert_eq!(client.get(HEALTH).body, r#"{"status":"pass"}"#);
}

/// Checks that the policy decides for this reason. Returns the log.
fn assert_refused(server: Process, reason: &str) -> String {
    let mut client = server.client();
    let expected = format!("because of the store: {reason}\"");
    until(|| succeeded(&mut client) && client.get(HEALTH).body.contains(&expected));
    let metric = format!("ratelimiter_policy_decisions_by_reason_total{{reason=\"{reason}\"}}");
    assert!(client.metric(&metric) > 0, "{metric}");
    server.signal(Signal::TERM);
    let (_, log) = server.wait_with_log();
    assert!(!log.contains("p@ss"), "{log}");
    log
}

#[test]
fn the_right_authority_reaches_a_redis_with_tls_and_a_password() {
    let authority = Authority::new("right");
    let redis = redis(
        &authority,
        &authority.identity(&["localhost", "127.0.0.1"]),
        "no",
    );
    let ca = authority.file();
    let port = redis.port();
    let by_address = format!("rediss://:p%40ss@127.0.0.1:{port}/1");
    assert_decides(&limiter(&by_address, &["--redis-ca-file", &ca]));
    let by_name = format!("rediss://localhost:{port}/2");
    let flags = [
        "--redis-ca-file",
        &ca,
        "--redis-username",
        "default",
        "--redis-password",
        "p@ss",
    ];
    assert_decides(&limiter(&by_name, &flags));
    let wrong = format!("rediss://:wrong@localhost:{port}");
    let log = assert_refused(limiter(&wrong, &["--redis-ca-file", &ca]), "wrong-login");
    assert!(log.contains("it refuses the login"), "{log}");
}

#[test]
fn another_authority_and_another_name_are_refused() {
    let (right, wrong) = (Authority::new("right"), Authority::new("wrong"));
    let named = redis(&right, &right.identity(&["127.0.0.1"]), "no");
    let url = format!("rediss://:p%40ss@127.0.0.1:{}", named.port());
    let log = assert_refused(
        limiter(&url, &["--redis-ca-file", &wrong.file()]),
        "certificate",
    );
    assert!(
        log.contains("its certificate is refused") && log.contains("UnknownIssuer"),
        "{log}"
    );
    // The system does not trust the authority of a test either.
    let log = assert_refused(limiter(&url, &[]), "certificate");
    assert!(log.contains("UnknownIssuer"), "{log}");
    // The authority is right, and the certificate is for another name.
    let url = format!("rediss://:p%40ss@localhost:{}", named.port());
    let log = assert_refused(
        limiter(&url, &["--redis-ca-file", &right.file()]),
        "certificate",
    );
    assert!(
        log.contains("not valid for name") && log.contains("localhost"),
        "{log}"
    );
}

#[test]
fn a_port_without_tls_is_told() {
    let (authority, redis) = (Authority::new("right"), Redis::start());
    let url = redis.url().replace("redis://", "rediss://");
    let log = assert_refused(
        limiter(&url, &["--redis-ca-file", &authority.file()]),
        "no-tls",
    );
    assert!(log.contains("expected the port of Redis with TLS"), "{log}");
}

#[test]
fn a_redis_can_ask_for_a_certificate_of_the_client() {
    let authority = Authority::new("right");
    let redis = redis(&authority, &authority.identity(&["127.0.0.1"]), "yes");
    let url = format!("rediss://:p%40ss@127.0.0.1:{}", redis.port());
    let ca = authority.file();
    let log = assert_refused(limiter(&url, &["--redis-ca-file", &ca]), "certificate");
    assert!(log.contains("it wants another client certificate"), "{log}");
    let client = authority.identity(&["limiter"]);
    let flags = [
        "--redis-ca-file",
        &ca,
        "--redis-cert-file",
        &client.certificate,
        "--redis-key-file",
        &client.key,
    ];
    assert_decides(&limiter(&url, &flags));
}

#[test]
fn settings_of_tls_that_cannot_be_used_stop_the_start() {
    let authority = Authority::new("right");
    let key = authority.identity(&["127.0.0.1"]).key;
    let ca = authority.file();
    for (words, expected) in [
        (
            ["--redis-url=rediss://a", &*format!("--redis-ca-file={key}")],
            "it has no certificate",
        ),
        (
            ["--redis-url=rediss://a", "--redis-ca-file=none.pem"],
            "cannot read `none.pem` of --redis-ca-file",
        ),
        (
            ["--redis-url=redis://a", &*format!("--redis-ca-file={ca}")],
            "expected a URL that starts with rediss://",
        ),
        (
            ["--redis-url=rediss://a#insecure", "--workers=1"],
            "always checked",
        ),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ratelimiter"));
        let output = command.args(["--port=0"]).args(words).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains(expected), "{words:?}: {told}");
    }
}
