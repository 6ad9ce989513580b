//! Tests that Redis fails under load and returns.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use test_client::{TestClient, now};

use crate::server::{is_limited, start};
use test_client::Redis;

const BANNED: &str = "10.0.0.66";

/// The deadline of the store is 200 ms. The rest is a margin for a busy machine.
const HANG: Duration = Duration::from_secs(5);

fn is_banned(client: &mut TestClient) -> bool {
    is_limited(client, "LOGIN_SUCCEEDED", BANNED, "a@b.se")
}

/// Repeats the check until it holds. Returns the time that it took.
pub(crate) fn until(mut holds: impl FnMut() -> bool) -> Duration {
    let start = now();
    while !holds() {
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "it never came to be"
        );
    }
    start.elapsed()
}

#[test]
fn the_policy_answers_while_redis_is_away_and_bans_outlive_it() {
    let mut redis = Redis::start();
    let url = redis.url();
    let start = |policy: &str| {
        let flags = ["--redis-url", &url, "--store-failure", policy];
        let more = [
            "--store-deadline-ms",
            "200",
            "--ban-seconds",
            "3600",
            "--window-seconds",
            "3600",
        ];
        start(&[&flags[..], &more].concat())
    };
    let (open, closed) = (start("open"), start("closed"));
    let mut client = open.client();
    let attack = until(|| {
        is_limited(&mut client, "LOGIN_FAILED", BANNED, "a@b.se");
        is_limited(&mut client, "LOGIN_FAILED", BANNED, "c@d.se")
    });
    println!("banned after {attack:?}");

    let (stop, slowest_us, asked) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for number in 0..4 {
            let (stop, slowest_us, asked, open) = (&stop, &slowest_us, &asked, &open);
            scope.spawn(move || {
                let (mut client, ip) = (open.client(), format!("10.1.0.{number}"));
                while !stop.load(Ordering::Relaxed) {
                    let start = now();
                    is_limited(&mut client, "LOGIN_FAILED", &ip, "a@b.se");
                    let us = u64::try_from(start.elapsed().as_micros()).unwrap();
                    slowest_us.fetch_max(us, Ordering::Relaxed);
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut strict = closed.client();
            until(|| {
                is_banned(&mut client)
                    && !is_limited(&mut strict, "LOGIN_SUCCEEDED", "10.2.0.1", "a@b.se")
            });
            redis.kill();
            let noticed = until(|| {
                !is_banned(&mut client)
                    && is_limited(&mut strict, "LOGIN_SUCCEEDED", "10.2.0.1", "a@b.se")
            });
            let before = asked.load(Ordering::Relaxed);
            until(|| asked.load(Ordering::Relaxed) > before + 200);
            redis.resume();
            let recovered = until(|| {
                is_banned(&mut client)
                    && !is_limited(&mut strict, "LOGIN_SUCCEEDED", "10.2.0.1", "a@b.se")
            });
            println!("noticed after {noticed:?}, recovered {recovered:?} after Redis was ready");
            assert!(recovered < HANG);
        }));
        stop.store(true, Ordering::Relaxed);
        outcome.unwrap();
    });
    let slowest = Duration::from_micros(slowest_us.load(Ordering::Relaxed));
    println!("the slowest of {asked:?} requests took {slowest:?}");
    assert!(slowest < HANG, "a request hung for {slowest:?}");
    let metrics = client.get("/metrics").body;
    assert!(
        !metrics.contains("ratelimiter_policy_decisions_total 0\n"),
        "{metrics}"
    );
}

#[test]
fn without_redis_from_the_start_the_policy_answers() {
    let mut redis = Redis::start();
    redis.kill();
    let server = start(&["--redis-url", &redis.url(), "--store-failure", "closed"]);
    let mut client = server.client();
    assert!(is_limited(
        &mut client,
        "LOGIN_SUCCEEDED",
        "10.0.0.1",
        "a@b.se"
    ));
    let health = client.get("/.well-known/apollo/server-health");
    assert_eq!(
        (health.status, &*health.body),
        (
            200,
            r#"{"status":"warn","output":"the policy decides, because of the store: not-connected"}"#
        )
    );
}

/// Sends one command to a Redis and returns its response.
fn console(redis: &Redis, command: &str) -> String {
    say(redis.port(), command)
}

/// Sends commands to a Redis or a sentinel on this port. Returns all responses, with that of a last `QUIT`.
pub(crate) fn say(port: u16, commands: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let commands = format!("{commands}\r\nQUIT\r\n");
    stream.write_all(commands.as_bytes()).unwrap();
    let (mut responses, mut part) = (String::new(), [0; 4096]);
    // A sentinel does not know `QUIT`. A server that changes its role closes connections.
    while !responses.contains("unknown command 'QUIT'") {
        match stream.read(&mut part) {
            Ok(length) if length > 0 => {
                responses.push_str(&String::from_utf8_lossy(&part[..length]));
            }
            _ => break,
        }
    }
    responses
}

/// A Redis name that leads to another server after a failover. Open connections stay where they are.
fn switch(to: &Arc<Mutex<String>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let to = Arc::clone(to);
    thread::spawn(move || {
        while let Ok((client, _)) = listener.accept() {
            let Ok(server) = TcpStream::connect(&*to.lock().unwrap()) else {
                continue;
            };
            for (from, into) in [(&client, &server), (&server, &client)] {
                let (mut from, mut into) = (from.try_clone().unwrap(), into.try_clone().unwrap());
                thread::spawn(move || {
                    let _ended = std::io::copy(&mut from, &mut into);
                    let _closed = into.shutdown(std::net::Shutdown::Both);
                });
            }
        }
    });
    format!("redis://{address}")
}

fn address_of(redis: &Redis) -> String {
    redis.url().strip_prefix("redis://").unwrap().to_owned()
}

#[test]
fn after_a_failover_the_limiter_follows_the_name_to_the_new_master() {
    let (old, new) = (Redis::start(), Redis::start());
    let to = Arc::new(Mutex::new(address_of(&old)));
    let name = switch(&to);
    let server = start(&[
        "--redis-url",
        &name,
        "--store-failure",
        "open",
        "--store-deadline-ms",
        "200",
        "--ban-seconds",
        "3600",
    ]);
    let mut client = server.client();
    // Each attack comes from a new address, because a replica still reads the old bans.
    let mut attacks = 0;
    let mut attack = |client: &mut TestClient| {
        attacks += 1;
        let address = format!("10.3.{}.{}", attacks / 250, attacks % 250);
        (0..20).any(|number| {
            let email = format!("{number}@b.se");
            is_limited(client, "LOGIN_FAILED", &address, &email)
        })
    };
    until(|| attack(&mut client));
    // The old master becomes a replica of the new one, and refuses to write.
    let new_address = address_of(&new);
    let (host, port) = new_address.rsplit_once(':').unwrap();
    let said = console(&old, &format!("REPLICAOF {host} {port}"));
    assert!(said.contains("OK"), "{said}");
    *to.lock().unwrap() = new_address.clone();
    let took = until(|| attack(&mut client));
    println!("limited again {took:?} after the failover");
    assert!(took < HANG);
    let metrics = client.get("/metrics").body;
    assert!(
        !metrics
            .contains("ratelimiter_policy_decisions_by_reason_total{reason=\"wrong-server\"} 0\n"),
        "{metrics}"
    );
    let health = client.get("/.well-known/apollo/server-health");
    assert_eq!(&*health.body, r#"{"status":"pass"}"#);
}

/// A frozen Redis is noticed by the time that it is silent, even if decisions are rare.
#[test]
fn a_redis_that_is_silent_is_given_up_by_time_and_not_by_decisions() {
    let (old, new) = (Redis::start(), Redis::start());
    let to = Arc::new(Mutex::new(address_of(&old)));
    let name = switch(&to);
    let server = start(&[
        "--redis-url",
        &name,
        "--workers",
        "1",
        "--store-deadline-ms",
        "1000",
    ]);
    let mut client = server.client();
    until(|| !client.get("/metrics").body.is_empty());
    is_limited(&mut client, "LOGIN_SUCCEEDED", "10.0.0.1", "a@b.se");
    old.freeze();
    *to.lock().unwrap() = address_of(&new);
    // One decision finds the silence. Sixteen decisions would take 16 s.
    let took = until(|| {
        is_limited(&mut client, "LOGIN_SUCCEEDED", "10.0.0.1", "a@b.se");
        let health = client.get("/.well-known/apollo/server-health").body;
        health == r#"{"status":"pass"}"#
    });
    assert!(took < HANG, "{took:?}");
}

#[test]
fn a_redis_that_is_full_is_told_to_the_log() {
    let redis = Redis::start();
    let url = redis.url();
    let server = start(&["--redis-url", &url, "--workers", "1"]);
    let mut client = server.client();
    is_limited(&mut client, "LOGIN_FAILED", "10.0.0.1", "a@b.se");
    let address = url.strip_prefix("redis://").unwrap();
    let mut console = TcpStream::connect(address).unwrap();
    console.write_all(b"CONFIG SET maxmemory 1\r\n").unwrap();
    let mut done = [0; 5];
    console.read_exact(&mut done).unwrap();
    assert_eq!(&done, b"+OK\r\n");
    for _ in 0..20 {
        is_limited(&mut client, "LOGIN_FAILED", "10.0.0.1", "a@b.se");
    }
    server.signal(Signal::TERM);
    let (_, log) = server.wait_with_log();
    let told: Vec<_> = log
        .lines()
        .filter(|line| line.contains("Redis refuses commands"))
        .collect();
    assert!(
        told.len() == 1 && told[0].contains("maxmemory"),
        "once and not for each: {log}"
    );
}
