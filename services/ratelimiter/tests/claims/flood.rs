//! Tests that no failure is lost among many at once, on any instance.

use std::thread;

use test_client::Process;

use crate::server::{self, is_limited};
use test_client::Redis;

/// Number of forgiven failures, without the current failure.
const FAILURES_MAX: usize = 999;
const CONNECTIONS: usize = 10;
const PER_CONNECTION: usize = 250;

/// Sends 10,000 failed logins, distributed over the servers. Returns the number of "limited" responses.
fn limited_of_ten_thousand(servers: &[Process]) -> usize {
    let per_server = 10_000 / servers.len() / PER_CONNECTION;
    assert!(per_server >= CONNECTIONS);
    let run = |server: &Process, connection: usize| {
        let mut client = server.client();
        let email = |k: usize| ["a@b.se", "c@d.se"][(k + connection) % 2];
        (0..PER_CONNECTION)
            .filter(|k| is_limited(&mut client, "LOGIN_FAILED", "10.0.0.1", email(*k)))
            .count()
    };
    thread::scope(|scope| {
        let threads: Vec<_> = servers
            .iter()
            .flat_map(|server| (0..per_server).map(move |connection| (server, connection)))
            .map(|(server, connection)| scope.spawn(move || run(server, connection)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    })
}

fn flags(more: &[&str]) -> Vec<String> {
    let max = FAILURES_MAX.to_string();
    // No count may expire on a slow, busy machine.
    [
        "--failures-max",
        &max,
        "--window-seconds",
        "3600",
        "--ban-seconds",
        "3600",
    ]
    .iter()
    .chain(more)
    .map(|word| (*word).to_owned())
    .collect()
}

fn start(flags: &[String]) -> Process {
    let words: Vec<_> = flags.iter().map(String::as_str).collect();
    server::start(&words)
}

#[test]
fn ten_thousand_failures_over_four_instances_are_all_counted() {
    let redis = Redis::start();
    let flags = flags(&["--redis-url", &redis.url(), "--store-deadline-ms", "60000"]);
    let servers: Vec<_> = (0..4).map(|_| start(&flags)).collect();
    let limited = limited_of_ten_thousand(&servers);
    assert_eq!(limited, 10_000 - (FAILURES_MAX + 1));
    let bans = servers.iter().filter(|server| {
        let metrics = server.client().get("/metrics").body;
        metrics.contains("\nratelimiter_bans_total 1\n")
    });
    assert_eq!(bans.count(), 1, "one instance started the one ban");
}

#[test]
fn ten_thousand_failures_in_memory_are_all_counted() {
    let server = [start(&flags(&["--workers", "4"]))];
    assert_eq!(
        limited_of_ten_thousand(&server),
        10_000 - (FAILURES_MAX + 1)
    );
}
