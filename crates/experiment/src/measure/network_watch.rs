//! Measures the network between this machine and the targets of a load, while the load runs.
//!
//! A latency over a network is the system's time plus the round trip. The round trip is measured in parallel
//! to the load: a TCP handshake several times per second. The kernel of the other side responds to it,
//! independent of its program. Retransmitted segments show losses.
//!
//! A handshake is used instead of a byte on an idle connection. The program would read and log that byte as
//! the beginning of a request. Handshakes have their own times, because at a due time they would delay that
//! slot.
//!
//! A target of HTTP/3 may have no TCP port. Its kernel then refuses the handshake, after the same round trip.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use load::{Address, Target};
use recording::{Hdr, NetworkRecord};
use rig::Segments;
use stats::Histogram;

use super::watching::watching;
use crate::environment::instant;

/// Interval between two handshakes with a target.
const EVERY: Duration = Duration::from_millis(200);
/// Time limit of one handshake.
const WITHIN: Duration = Duration::from_secs(1);

/// The measurements of the network.
pub(super) struct NetworkWatch {
    /// One entry for each target. `None` for a target on this machine.
    ways: Vec<Option<Way>>,
    /// Segments of the load's own connections by target, if the kernel reports them.
    own_segments: Vec<Option<Segments>>,
    /// Segments of the whole network namespace.
    segments: Option<Segments>,
}

/// The round trips to one target.
struct Way {
    target: SocketAddr,
    /// True if a refusal is an answer, because the target may have no TCP port.
    may_refuse: bool,
    round_trip: Histogram,
    unanswered: u64,
}

impl NetworkWatch {
    /// Measures during `work`. Sends no handshakes to targets on this machine.
    pub(super) fn during<T>(targets: &[Target], work: impl FnOnce() -> T) -> (T, NetworkWatch) {
        let mut ways: Vec<Option<Way>> = targets.iter().map(Way::to).collect();
        if ways.iter().all(Option::is_none) {
            return (work(), NetworkWatch::of(ways, None));
        }
        let before = rig::segments();
        let walk = || ways.iter_mut().flatten().for_each(Way::walk);
        let result = watching(EVERY, walk, work);
        let after = rig::segments();
        let segments = before.zip(after).map(|(before, after)| after.since(before));
        (result, NetworkWatch::of(ways, segments))
    }

    fn of(ways: Vec<Option<Way>>, segments: Option<Segments>) -> NetworkWatch {
        NetworkWatch {
            own_segments: vec![None; ways.len()],
            ways,
            segments,
        }
    }

    /// Sets the segments of the load's connections for each target. They replace the counts of the whole
    /// namespace.
    pub(super) fn count(&mut self, own_segments: Vec<Option<Segments>>) {
        self.own_segments = own_segments;
    }

    /// The network record of a target, by its position. `None` for a target on this machine.
    pub(super) fn record(&self, index: usize) -> Option<NetworkRecord> {
        let way = self.ways.get(index)?.as_ref()?;
        let own = self.own_segments.get(index).copied().flatten();
        let segments = own.or(self.segments);
        Some(NetworkRecord {
            round_trip_ns_hdr: Hdr::of(&way.round_trip),
            unanswered: way.unanswered,
            segments: segments.map(|it| it.sent),
            retransmitted: segments.map(|it| it.retransmitted),
        })
    }
}

/// The segments that open connections have sent to each target on another machine.
pub(super) fn segments_to_each(targets: &[Target]) -> Vec<Option<Segments>> {
    let each = targets.iter().map(Way::to);
    each.map(|way| rig::segments_to(way?.target)).collect()
}

impl Way {
    fn to(target: &Target) -> Option<Way> {
        let Address::Tcp(address) = target.address else {
            return None;
        };
        (!address.ip().to_canonical().is_loopback()).then(|| Way {
            target: address,
            may_refuse: target.protocol.version.is_http3(),
            round_trip: Histogram::new(),
            unanswered: 0,
        })
    }

    fn walk(&mut self) {
        let asked = instant();
        let is_answered = match TcpStream::connect_timeout(&self.target, WITHIN) {
            Ok(_) => true,
            Err(error) => self.may_refuse && error.kind() == ErrorKind::ConnectionRefused,
        };
        if is_answered {
            let way = asked.elapsed().as_nanos();
            self.round_trip
                .record_ns(u64::try_from(way).unwrap_or(u64::MAX));
        } else {
            self.unanswered += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn nothing_is_sent_to_a_target_on_this_machine() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a flag");
        let target = Target {
            address: Address::Tcp(listener.local_addr().expect("an address")),
            host: "localhost".to_owned(),
            protocol: load::Protocol::default(),
        };
        let ((), watch) = NetworkWatch::during(&[target], || thread::park_timeout(EVERY));
        assert!(listener.accept().is_err());
        assert_eq!(watch.record(0), None);
    }

    #[test]
    fn a_target_that_does_not_answer_is_counted() {
        // The first port has no listener.
        let mut way = Way {
            target: SocketAddr::from(([127, 0, 0, 1], 1)),
            may_refuse: false,
            round_trip: Histogram::new(),
            unanswered: 0,
        };
        way.walk();
        assert_eq!(way.unanswered, 1);
        assert!(way.round_trip.is_empty());
        // For a target of HTTP/3, the refusal is the answer.
        way.may_refuse = true;
        way.walk();
        assert_eq!((way.unanswered, way.round_trip.len()), (1, 1));
    }
}
