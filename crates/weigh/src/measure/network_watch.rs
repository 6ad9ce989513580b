//! The network between this machine and the targets of a load, while the load runs.
//!
//! A latency over a network is the system's time and the way there and back. The way is measured beside
//! the load: a TCP handshake a few times a second, which the kernel of the other side answers whatever
//! its program does. Segments that were sent again say what was lost.
//!
//! A handshake, and not a byte on an idle connection: that byte would be the beginning of a request,
//! which the program reads, logs and waits for. And at moments of its own: at a due time it would be in
//! the way of that slot.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use load::Address;
use report::Hdr;
use report::recording::NetworkRecord;
use rig::Segments;
use stats::Histogram;

use super::watching::watching;
use crate::environment::instant;

/// Between two handshakes with a target.
const EVERY: Duration = Duration::from_millis(200);
/// How long one may take.
const WITHIN: Duration = Duration::from_secs(1);

/// What was seen of the network.
pub(super) struct NetworkWatch {
    /// One for each target; none for one on this machine.
    ways: Vec<Option<Way>>,
    /// Those of the load's own connections, where the kernel tells; by target.
    own_segments: Vec<Option<Segments>>,
    /// Those of the whole network namespace.
    segments: Option<Segments>,
}

/// The way to one target.
struct Way {
    target: SocketAddr,
    round_trip: Histogram,
    unanswered: u64,
}

impl NetworkWatch {
    /// Watches while `work` is done. Nothing is sent to targets on this machine.
    pub(super) fn during<T>(targets: &[Address], work: impl FnOnce() -> T) -> (T, NetworkWatch) {
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

    /// Takes what the load's connections have sent to each target, for what all of the namespace has.
    pub(super) fn count(&mut self, own_segments: Vec<Option<Segments>>) {
        self.own_segments = own_segments;
    }

    /// What was seen of the way to a target, by its position; none for one on this machine.
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

/// What the connections that are open now have sent to each target on another machine.
pub(super) fn segments_to_each(targets: &[Address]) -> Vec<Option<Segments>> {
    let each = targets.iter().map(Way::to);
    each.map(|way| rig::segments_to(way?.target)).collect()
}

impl Way {
    fn to(target: &Address) -> Option<Way> {
        let Address::Tcp(target) = target else {
            return None;
        };
        (!target.ip().to_canonical().is_loopback()).then(|| Way {
            target: *target,
            round_trip: Histogram::new(),
            unanswered: 0,
        })
    }

    fn walk(&mut self) {
        let asked = instant();
        match TcpStream::connect_timeout(&self.target, WITHIN) {
            Ok(_) => {
                let way = asked.elapsed().as_nanos();
                self.round_trip
                    .record_ns(u64::try_from(way).unwrap_or(u64::MAX));
            }
            Err(_) => self.unanswered += 1,
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
        let target = Address::Tcp(listener.local_addr().expect("an address"));
        let ((), watch) = NetworkWatch::during(&[target], || thread::park_timeout(EVERY));
        assert!(listener.accept().is_err());
        assert_eq!(watch.record(0), None);
    }

    #[test]
    fn a_target_that_does_not_answer_is_counted() {
        // Nothing listens at the first port.
        let mut way = Way {
            target: SocketAddr::from(([127, 0, 0, 1], 1)),
            round_trip: Histogram::new(),
            unanswered: 0,
        };
        way.walk();
        assert_eq!(way.unanswered, 1);
        assert!(way.round_trip.is_empty());
    }
}
