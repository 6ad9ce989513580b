//! A barrier for generators: each waits for all, they compare clocks, and agree on a start time.
//!
//! The first generator listens and the others connect to it. They exchange one line of JSON in each
//! direction. Apart from that, all generators are equal. If one leaves, the barrier fails for all, since a
//! load without one part is not the planned load.
//!
//! Clocks are compared as in NTP: many requests, and the request with the shortest round trip counts. Half of
//! its duration is the maximum error.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use load::Job;
use model::{Load, Shard};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::environment::{self, instant};

/// Read and write timeout. It is long because the other generator may prove and settle meanwhile.
const SILENT_MOST: Duration = Duration::from_secs(180);
/// Pause between two attempts to connect.
const TRY_AGAIN: Duration = Duration::from_millis(25);
/// Pause between two looks for a connection.
const LISTEN_AGAIN: Duration = Duration::from_millis(10);
/// Time limit of one attempt to connect.
const CONNECT: Duration = Duration::from_secs(1);
/// Time without an answer of the network after which its packets are dropped and not late.
const DROPPED_AFTER: Duration = Duration::from_secs(20);
/// Number of requests in one comparison of clocks.
const QUESTIONS: usize = 64;
/// Time from the agreement of generators on a common start to the start of a load without connections. Messages
/// between pods take a millisecond, and the threads of a load 10 ms. The rest is for a busy node.
const LEAD: Duration = Duration::from_millis(200);
/// More time for each connection that a generator opens before the load. Without TLS a connection took 45 us where
/// measured, and a handshake takes several times that.
const LEAD_OF_CONNECTION: Duration = Duration::from_micros(200);
/// The longest line in bytes. It carries one generator's report of a round.
const LINE_MOST: u64 = 32 << 20;

/// The difference between the clock of a generator and the clock of the first generator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClockOffset {
    /// Lead of the first generator's clock, in nanoseconds.
    pub(crate) ahead_ns: i64,
    /// Maximum error of the lead, in nanoseconds: half of the shortest round trip.
    pub(crate) error_ns: u64,
}

/// The generators of one round, as seen by one of them.
pub struct GeneratorBarrier {
    shard: Shard,
    lines: Lines,
    clock: ClockOffset,
}

enum Lines {
    /// The only generator.
    Alone,
    /// The first generator, with one connection to each other generator, in their order.
    First(Vec<Line>),
    /// Any other generator, with its connection to the first.
    Other(Box<Line>),
}

/// A connection to another generator.
struct Line {
    to: BufReader<TcpStream>,
    /// The name in error messages.
    name: String,
}

/// The first line from a generator.
#[derive(Serialize, Deserialize)]
struct Hello {
    /// A secret that only the generators of this round share.
    token: String,
    shard: Shard,
}

/// The addresses and the secret of a barrier.
pub struct BarrierAddress<'a> {
    /// Listen address of the first generator.
    pub listen: SocketAddr,
    /// Address of the first generator for the other generators.
    pub(crate) connect: SocketAddr,
    /// A secret that only the generators of this round share.
    pub token: &'a str,
    /// Time limit for all generators to connect.
    pub within: Duration,
}

/// The listen address of the first generator: all addresses of its pod. `connect` is the address of its
/// Service. Both have the first family of the cluster.
pub(crate) fn listen(connect: SocketAddr) -> SocketAddr {
    let any = match connect.is_ipv6() {
        true => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        false => IpAddr::from(Ipv4Addr::UNSPECIFIED),
    };
    SocketAddr::new(any, connect.port())
}

impl GeneratorBarrier {
    /// Waits until all generators are connected, and compares clocks.
    ///
    /// # Errors
    /// When one does not connect in time.
    pub fn join(shard: Shard, place: &BarrierAddress<'_>) -> Result<GeneratorBarrier, String> {
        if shard.is_whole() {
            return Ok(GeneratorBarrier {
                shard,
                lines: Lines::Alone,
                clock: ClockOffset::default(),
            });
        }
        let deadline = instant() + place.within;
        if shard.index() > 0 {
            let mut first = connect(shard, place, deadline)?;
            let clock = first.ask_for_time()?;
            return Ok(GeneratorBarrier {
                shard,
                lines: Lines::Other(Box::new(first)),
                clock,
            });
        }
        let mut others = accept_all(shard, place, deadline)?;
        for other in &mut others {
            other.tell_time()?;
        }
        Ok(GeneratorBarrier {
            shard,
            lines: Lines::First(others),
            clock: ClockOffset::default(),
        })
    }

    /// The shard of this generator.
    pub fn shard(&self) -> Shard {
        self.shard
    }

    /// The difference between the clock of this generator and the clock of the first.
    pub(crate) fn clock(&self) -> ClockOffset {
        self.clock
    }

    /// Sends a value to all generators, and returns the values of all, in their order. Each generator thereby
    /// waits for all.
    ///
    /// # Errors
    /// When one leaves or is silent for too long.
    pub(crate) fn exchange<T>(&mut self, own: &T) -> Result<Vec<T>, String>
    where
        T: Serialize + DeserializeOwned + Clone,
    {
        match &mut self.lines {
            Lines::Alone => Ok(vec![own.clone()]),
            Lines::Other(first) => {
                first.say(own)?;
                first.hear()
            }
            Lines::First(others) => {
                let mut all = vec![own.clone()];
                for other in others.iter_mut() {
                    all.push(other.hear()?);
                }
                for other in others {
                    other.say(&all)?;
                }
                Ok(all)
            }
        }
    }

    /// Agrees on a start time. The first generator decides: its `lead` after all have agreed. The result is in
    /// this generator's own clock.
    ///
    /// # Errors
    /// When one leaves.
    pub fn agree(&mut self, lead: Duration) -> Result<Instant, String> {
        // The decision comes after all generators listen.
        self.exchange(&())?;
        let now = || environment::now().as_nanosecond();
        let decided = now() + lead.as_nanos().cast_signed();
        let all = self.exchange(&decided.to_string())?;
        let first: i128 = all[0]
            .parse()
            .map_err(|_| "the generators did not agree on a start time".to_owned())?;
        let own = first - i128::from(self.clock.ahead_ns);
        let left = u64::try_from(own - now()).unwrap_or(0);
        Ok(instant() + Duration::from_nanos(left))
    }
}

/// Returns the time from the agreement on a common start to the start. Within it the start time reaches all
/// generators, and each generator creates its threads, plans and first connections.
pub fn lead_of(jobs: &[Job]) -> Duration {
    // An open loop opens a connection for a request that finds none.
    let opened_before = jobs.iter().filter_map(|job| match &job.load {
        Load::Closed { connections, .. } => Some(job.shard.connections(*connections)),
        _ => None,
    });
    LEAD + LEAD_OF_CONNECTION * opened_before.fold(0, u32::saturating_add)
}

fn connect(shard: Shard, place: &BarrierAddress<'_>, deadline: Instant) -> Result<Line, String> {
    // A cluster refuses connections to a pod that does not listen yet. Only a dropped packet has no answer.
    let mut silent_since: Option<Instant> = None;
    loop {
        let connected = TcpStream::connect_timeout(&place.connect, CONNECT);
        let is_silent = matches!(&connected, Err(error) if error.kind() == ErrorKind::TimedOut);
        silent_since = is_silent.then(|| silent_since.unwrap_or_else(instant));
        let error = match connected {
            Ok(stream) => {
                let mut line = Line::new(stream, "generator 1".to_owned())?;
                let hello = Hello {
                    token: place.token.to_owned(),
                    shard,
                };
                // A cluster address may accept the connection before the first generator listens.
                match line.say(&hello).and_then(|()| line.hear::<String>()) {
                    Ok(token) if token == place.token => return Ok(line),
                    Ok(_) => "a stranger answered".to_owned(),
                    Err(error) => error,
                }
            }
            Err(error) => error.to_string(),
        };
        let is_dropped = silent_since.is_some_and(|since| since.elapsed() >= DROPPED_AFTER);
        if is_dropped || instant() >= deadline {
            let seconds = (place.within - deadline.saturating_duration_since(instant())).as_secs();
            return Err(format!(
                "generator 1 was not found at {} within {seconds} s: {error}{}",
                place.connect,
                match is_dropped {
                    true => policy_advice(place.connect.port()),
                    false => String::new(),
                }
            ));
        }
        std::thread::park_timeout(TRY_AGAIN);
    }
}

/// The advice for a connection between pods that the network drops.
pub(crate) fn policy_advice(port: u16) -> String {
    format!(
        ". If both pods run, a NetworkPolicy may drop connections to port {port}. docs/kubernetes.md has one that allows them"
    )
}

fn accept_all(
    shard: Shard,
    place: &BarrierAddress<'_>,
    deadline: Instant,
) -> Result<Vec<Line>, String> {
    let wrong = |error: std::io::Error| format!("cannot listen on {}: {error}", place.listen);
    let listener = TcpListener::bind(place.listen).map_err(wrong)?;
    listener.set_nonblocking(true).map_err(wrong)?;
    let mut there: Vec<Option<Line>> = (1..shard.of()).map(|_| None).collect();
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).map_err(wrong)?;
                // A connection without a valid first line is a stranger. The barrier does not wait for it.
                if let Some((index, line)) = introduced(stream, place, shard.of())
                    && let Some(seat) = there.get_mut(index - 1)
                {
                    *seat = Some(line);
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::park_timeout(LISTEN_AGAIN);
            }
            Err(error) => return Err(wrong(error)),
        }
        if there.iter().all(Option::is_some) {
            return Ok(there.into_iter().flatten().collect());
        }
        if instant() >= deadline {
            let missing = there.iter().position(Option::is_none).unwrap_or(0) + 2;
            return Err(format!(
                "generator {missing} of {} did not connect within {} s{}",
                shard.of(),
                place.within.as_secs(),
                policy_advice(place.connect.port())
            ));
        }
    }
}

/// The number of the generator, from 1. `None` for a stranger.
fn introduced(stream: TcpStream, place: &BarrierAddress<'_>, of: u32) -> Option<(usize, Line)> {
    let mut line = Line::new(stream, "a stranger".to_owned()).ok()?;
    line.patience(CONNECT).ok()?;
    let hello: Hello = line.hear().ok()?;
    if hello.token != place.token || hello.shard.of() != of || hello.shard.index() == 0 {
        return None;
    }
    line.name = format!("generator {} of {of}", hello.shard.index() + 1);
    line.say(&place.token).ok()?;
    line.patience(SILENT_MOST).ok()?;
    Some((hello.shard.index() as usize, line))
}

impl Line {
    fn new(stream: TcpStream, name: String) -> Result<Line, String> {
        let line = Line {
            to: BufReader::new(stream),
            name,
        };
        line.patience(SILENT_MOST)?;
        // The other side waits for each line.
        let nodelay = line.to.get_ref().set_nodelay(true);
        nodelay.map_err(|error| line.wrong(&error))?;
        Ok(line)
    }

    fn patience(&self, most: Duration) -> Result<(), String> {
        let stream = self.to.get_ref();
        let set = stream
            .set_read_timeout(Some(most))
            .and_then(|()| stream.set_write_timeout(Some(most)));
        set.map_err(|error| self.wrong(&error))
    }

    fn wrong(&self, error: &std::io::Error) -> String {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                format!("{} did not answer in time", self.name)
            }
            _ => format!("{} closed the connection: {error}", self.name),
        }
    }

    fn say(&mut self, what: &impl Serialize) -> Result<(), String> {
        let mut line = serde_json::to_vec(what).map_err(|error| error.to_string())?;
        line.push(b'\n');
        let sent = self.to.get_mut().write_all(&line);
        sent.map_err(|error| self.wrong(&error))
    }

    fn hear<T: DeserializeOwned>(&mut self) -> Result<T, String> {
        let mut line = Vec::new();
        let read = (&mut self.to).take(LINE_MOST).read_until(b'\n', &mut line);
        read.map_err(|error| self.wrong(&error))?;
        if line.last() != Some(&b'\n') {
            return Err(format!("{} closed the connection", self.name));
        }
        serde_json::from_slice(&line)
            .map_err(|error| format!("{} sent an invalid message: {error}", self.name))
    }

    /// Responds to the requests of a clock comparison.
    fn tell_time(&mut self) -> Result<(), String> {
        for _ in 0..QUESTIONS {
            let (): () = self.hear()?;
            self.say(&environment::now().as_nanosecond().to_string())?;
        }
        Ok(())
    }

    fn ask_for_time(&mut self) -> Result<ClockOffset, String> {
        let mut best: Option<ClockOffset> = None;
        for _ in 0..QUESTIONS {
            let (asked, asked_at) = (environment::now(), instant());
            self.say(&())?;
            let answer: String = self.hear()?;
            let way = instant().duration_since(asked_at);
            let theirs: i128 = answer
                .parse()
                .map_err(|_| format!("{} sent no time", self.name))?;
            let offset = compared(asked, theirs, way);
            if best.is_none_or(|best| offset.error_ns < best.error_ns) {
                best = Some(offset);
            }
        }
        best.ok_or_else(|| format!("{} sent no time", self.name))
    }
}

/// The lead of another clock that showed `theirs` at some moment of the round trip.
fn compared(asked: Timestamp, theirs: i128, way: Duration) -> ClockOffset {
    let half_ns = u64::try_from(way.as_nanos() / 2).unwrap_or(u64::MAX);
    let middle = asked.as_nanosecond() + i128::from(half_ns);
    ClockOffset {
        ahead_ns: i64::try_from(theirs - middle).unwrap_or(i64::MAX),
        error_ns: half_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(port: u16, within: Duration) -> BarrierAddress<'static> {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        BarrierAddress {
            listen: address,
            connect: address,
            token: "known to few",
            within,
        }
    }

    fn free_port() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.local_addr().expect("an address").port()
    }

    fn all(
        of: u32,
        port: u16,
        act: impl Fn(&mut GeneratorBarrier) -> Result<String, String> + Sync,
    ) -> Vec<Result<String, String>> {
        std::thread::scope(|scope| {
            let act = &act;
            let join = move |number: u32| {
                let shard = Shard::new(number, of).expect("a shard");
                let mut barrier =
                    GeneratorBarrier::join(shard, &place(port, Duration::from_secs(10)))?;
                act(&mut barrier)
            };
            let threads: Vec<_> = (1..=of)
                .map(|number| scope.spawn(move || join(number)))
                .collect();
            threads
                .into_iter()
                .map(|it| it.join().expect("no panic"))
                .collect()
        })
    }

    #[test]
    fn what_each_tells_all_hear_in_their_order() {
        let heard = all(3, free_port(), |barrier| {
            let own = barrier.shard().index() * 10;
            Ok(format!("{:?}", barrier.exchange(&own)?))
        });
        assert_eq!(heard, vec![Ok("[0, 10, 20]".to_owned()); 3]);
    }

    #[test]
    fn all_agree_on_one_moment() {
        let began = instant();
        let moments = all(3, free_port(), |barrier| {
            let at = barrier.agree(LEAD)?.duration_since(began).as_nanos();
            let error = barrier.clock().error_ns;
            Ok(format!("{at} {error}"))
        });
        let numbers = |text: &Result<String, String>| -> Vec<i128> {
            let text = text.as_ref().expect("an agreement");
            text.split(' ')
                .map(|it| it.parse().expect("a number"))
                .collect()
        };
        let moments: Vec<Vec<i128>> = moments.iter().map(numbers).collect();
        for one in &moments {
            // One machine has one clock. The rest is the error of the comparison, and the delay between
            // reading the wall clock and the monotonic clock.
            let apart = (one[0] - moments[0][0]).abs();
            assert!(apart <= one[1] + 2_000_000, "{moments:?}");
        }
    }

    #[test]
    fn a_load_that_opens_many_connections_begins_later() {
        let target = load::Target {
            address: load::Address::Tcp(SocketAddr::from(([127, 0, 0, 1], 1))),
            host: "h".to_owned(),
            protocol: load::Protocol::default(),
        };
        let job = |load: Load| {
            let mut job = Job::new(target.clone(), Vec::new(), load);
            job.shard = Shard::new(1, 2).expect("a shard");
            job
        };
        let open = job(Load::Open {
            phases: Vec::new(),
            arrival: model::Arrival::Uniform,
            connections_max: 10_000,
            requests_max: None,
        });
        let closed = job(Load::Closed {
            connections: 10_000,
            stop: model::Stop {
                requests: Some(1),
                duration: None,
            },
        });
        assert_eq!(lead_of(std::slice::from_ref(&open)), LEAD);
        // Half of them, because the other generator opens the rest, for each of the two lanes.
        let expected = LEAD + Duration::from_secs(2);
        assert_eq!(lead_of(&[closed.clone(), open, closed]), expected);
    }

    #[test]
    fn one_that_goes_away_ends_it_for_all() {
        let ends = all(3, free_port(), |barrier| {
            if barrier.shard().index() == 1 {
                return Ok("gone".to_owned());
            }
            barrier.exchange(&0).map(|_| "met".to_owned())
        });
        assert_eq!(
            ends[0].as_ref().unwrap_err(),
            "generator 2 of 3 closed the connection"
        );
        assert!(ends[2].as_ref().unwrap_err().contains("generator 1"));
    }

    #[test]
    fn one_that_does_not_come_is_named() {
        let shard = Shard::new(1, 3).expect("a shard");
        let error = GeneratorBarrier::join(shard, &place(free_port(), Duration::from_millis(50)));
        let error = error.err().expect("none came");
        assert!(
            error.starts_with("generator 2 of 3 did not connect"),
            "{error}"
        );
    }

    #[test]
    fn a_network_that_drops_connections_is_suspected() {
        let shard = Shard::new(1, 2).expect("a shard");
        let error = GeneratorBarrier::join(shard, &place(free_port(), Duration::from_millis(50)));
        let error = error.err().expect("none came");
        assert!(
            error.contains("a NetworkPolicy may drop connections to port"),
            "{error}"
        );
        // A refused connection was answered, so no rule dropped it.
        let shard = Shard::new(2, 2).expect("a shard");
        let error = GeneratorBarrier::join(shard, &place(free_port(), Duration::from_millis(50)));
        let error = error.err().expect("nobody listens");
        assert!(!error.contains("NetworkPolicy"), "{error}");
    }

    #[test]
    fn a_stranger_is_not_taken_for_one_of_them() {
        let port = free_port();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let until = instant() + Duration::from_secs(5);
                while instant() < until {
                    if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) {
                        let hello = br#"{"token":"guessed","shard":{"number":2,"of":2}}"#;
                        let _refused = stream
                            .write_all(hello)
                            .and_then(|()| stream.write_all(b"\n"));
                        return;
                    }
                    std::thread::park_timeout(Duration::from_millis(10));
                }
            });
            let heard = all(2, port, |barrier| {
                Ok(format!("{:?}", barrier.exchange(&1)?))
            });
            assert_eq!(heard, vec![Ok("[1, 1]".to_owned()); 2]);
        });
    }

    #[test]
    fn a_clock_that_is_ahead_is_found_to_be() {
        let asked = Timestamp::from_second(1_000).expect("a time");
        let theirs = asked.as_nanosecond() + 5_000_000 + 100;
        let offset = compared(asked, theirs, Duration::from_nanos(200));
        assert_eq!(offset.ahead_ns, 5_000_000);
        assert_eq!(offset.error_ns, 100);
    }
}
