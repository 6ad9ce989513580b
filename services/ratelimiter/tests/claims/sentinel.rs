//! Tests that the limiter follows real sentinels to the master.

use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use test_client::{Process, Redis, Sentinel, TestClient};

use crate::certificates::Authority;
use crate::outage::{say, until};
use crate::server::{is_limited, start};

const HEALTH: &str = "/.well-known/apollo/server-health";

/// A closed port of loopback.
const CLOSED: u16 = 1;

/// Most attacks after a failover until one is limited again. The policy `open` passes the others.
const ATTACKS_MAX: usize = 20_000;

fn limiter(url: &str, flags: &[&str]) -> Process {
    let common = [
        "--redis-url",
        url,
        "--store-deadline-ms",
        "2000",
        "--ban-seconds",
        "3600",
        "--window-seconds",
        "3600",
        "--workers",
        "1",
    ];
    start(&[&common[..], flags].concat())
}

/// A sentinel with the password `watch` for a master with the password `data`.
fn sentinel(master: &Redis, more: &[String]) -> Sentinel {
    let port = master.port();
    let lines = [
        format!("sentinel monitor limits 127.0.0.1 {port} 1"),
        "sentinel auth-pass limits data".to_owned(),
        "sentinel down-after-milliseconds limits 2000".to_owned(),
        "sentinel failover-timeout limits 5000".to_owned(),
        "requirepass watch".to_owned(),
    ];
    // The monitored master is last, because its line needs the settings of TLS.
    Sentinel::start(&[more, &lines].concat())
}

/// Attacks from a new address, because a replica still reads the old bans. True if it was limited.
fn attack(client: &mut TestClient, number: usize) -> bool {
    let address = format!(
        "10.{}.{}.{}",
        number / 62_500,
        number / 250 % 250,
        number % 250
    );
    (0..6).any(|number| {
        let email = format!("{}@b.se", number % 2);
        is_limited(client, "LOGIN_FAILED", &address, &email)
    })
}

#[test]
fn decisions_continue_on_the_master_that_a_failover_chose() {
    let data = ["--requirepass", "data", "--masterauth", "data"];
    let old = Redis::start_with(&data);
    let port = old.port().to_string();
    let new = Redis::start_with(&[&data[..], &["--replicaof", "127.0.0.1", &port]].concat());
    until(|| say(new.port(), "AUTH data\r\nINFO replication").contains("master_link_status:up"));
    let sentinel = sentinel(&old, &[]);
    // The first sentinel is dead.
    let url = format!(
        "redis+sentinel://:data@127.0.0.1:{CLOSED},127.0.0.1:{}/limits/3",
        sentinel.port()
    );
    let server = limiter(&url, &["--redis-sentinel-password", "watch"]);
    let mut client = server.client();
    let mut attacks = 0;
    let mut attacked = |client: &mut TestClient| {
        attacks += 1;
        attack(client, attacks)
    };
    until(|| attacked(&mut client));
    assert_eq!(client.get(HEALTH).body, r#"{"status":"pass"}"#);
    // The sentinel refuses until it knows that the replica is good.
    until(|| {
        thread::park_timeout(Duration::from_millis(200));
        let said = say(sentinel.port(), "AUTH watch\r\nSENTINEL FAILOVER limits");
        said.matches("+OK").count() == 2
    });
    until(|| say(new.port(), "AUTH data\r\nROLE").contains("master"));
    // The old master still answers as a master for some ten seconds, until the sentinel demotes it.
    // Only the limiter uses the database of its URL.
    let is_followed = || say(new.port(), "AUTH data\r\nCLIENT LIST").contains(" db=3 ");
    let begin = test_client::now();
    until(|| {
        thread::park_timeout(Duration::from_millis(50));
        is_followed()
    });
    let was_demoted = say(old.port(), "AUTH data\r\nROLE").contains("slave");
    let again = (0..ATTACKS_MAX).position(|_| attacked(&mut client));
    let took = begin.elapsed();
    println!(
        "limited again {took:?} after the failover, at attack {again:?}, old demoted: {was_demoted}"
    );
    assert!(again.is_some(), "{}", client.get("/metrics").body);
    assert_eq!(client.get(HEALTH).body, r#"{"status":"pass"}"#);
    server.signal(Signal::TERM);
    let (_, log) = server.wait_with_log();
    let connected = format!("127.0.0.1:{}", new.port());
    let is_of_new = |line: &str| line.contains("connected to Redis") && line.contains(&connected);
    assert!(log.lines().any(is_of_new), "{log}");
    assert!(log.contains("the sentinels chose another master"), "{log}");
}

/// Checks that the policy decides for this reason. Returns the log.
fn assert_refused(url: &str, flags: &[&str], reason: &str) -> String {
    let server = limiter(url, &[&["--store-failure", "closed"], flags].concat());
    let mut client = server.client();
    let expected = format!("because of the store: {reason}\"");
    until(|| {
        is_limited(&mut client, "LOGIN_SUCCEEDED", "10.0.0.1", "a@b.se")
            && client.get(HEALTH).body.contains(&expected)
    });
    let metric = format!("ratelimiter_policy_decisions_by_reason_total{{reason=\"{reason}\"}}");
    assert!(client.metric(&metric) > 0, "{metric}");
    server.signal(Signal::TERM);
    server.wait_with_log().1
}

#[test]
fn sentinels_that_cannot_help_leave_the_decision_to_the_policy() {
    let master = Redis::start_with(&["--requirepass", "data"]);
    let sentinel = sentinel(&master, &[]);
    let port = sentinel.port();
    let login = ["--redis-sentinel-password", "watch"];
    let dead = format!("redis+sentinel://:data@127.0.0.1:{CLOSED}/limits");
    let log = assert_refused(&dead, &login, "no-sentinel");
    assert!(log.contains("no sentinel answers"), "{log}");
    let unknown = format!("redis+sentinel://:data@127.0.0.1:{port}/other");
    let log = assert_refused(&unknown, &login, "no-master");
    assert!(log.contains("does not know `other`"), "{log}");
    let url = format!("redis+sentinel://:data@127.0.0.1:{port}/limits");
    let log = assert_refused(&url, &["--redis-sentinel-password", "no"], "wrong-login");
    assert!(log.contains("it refuses the login"), "{log}");
    let wrong = format!("redis+sentinel://:no@127.0.0.1:{port}/limits");
    assert_refused(&wrong, &login, "wrong-login");
}

/// A sentinel that is late still names the old master, which is a replica now.
#[test]
fn a_replica_that_a_sentinel_names_is_not_used() {
    let master = Redis::start_with(&["--requirepass", "data"]);
    let sentinel = sentinel(&master, &[]);
    let said = say(master.port(), "AUTH data\r\nREPLICAOF 127.0.0.1 1");
    assert!(said.contains("OK"), "{said}");
    let url = format!(
        "redis+sentinel://:data@127.0.0.1:{}/limits",
        sentinel.port()
    );
    let log = assert_refused(&url, &["--redis-sentinel-password", "watch"], "no-master");
    assert!(
        log.contains("expected a master, found the role `slave`"),
        "{log}"
    );
}

#[test]
fn sentinels_and_the_master_can_have_tls() {
    let authority = Authority::new("right");
    let identity = authority.identity(&["127.0.0.1"]);
    let settings = authority.settings(&identity, "optional");
    let (mut flags, mut lines) = (Vec::new(), vec!["tls-replication yes".to_owned()]);
    for (name, value) in &settings {
        flags.extend([format!("--{name}"), value.clone()]);
        lines.push(format!("{name} {value}"));
    }
    flags.extend(["--requirepass".to_owned(), "data".to_owned()]);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let master = Redis::start_with(&flags);
    let sentinel = sentinel(&master, &lines);
    let url = format!(
        "rediss+sentinel://:data@127.0.0.1:{}/limits",
        sentinel.port()
    );
    let ca = authority.file();
    let flags = ["--redis-ca-file", &ca, "--redis-sentinel-password", "watch"];
    let server = limiter(&url, &flags);
    let mut client = server.client();
    let mut attacks = 0;
    until(|| {
        attacks += 1;
        attack(&mut client, attacks)
    });
    let wrong = Authority::new("wrong");
    let other = wrong.file();
    let flags = [
        "--redis-ca-file",
        &other,
        "--redis-sentinel-password",
        "watch",
    ];
    let log = assert_refused(&url, &flags, "certificate");
    assert!(log.contains("UnknownIssuer"), "{log}");
}
