//! The well-behaved client: it asks on schedule, each time on a new connection, as somebody would
//! who has just come, and counts from the time due.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::exchange::{Connection, NEIGHBOR};
use super::judge::Service;
use crate::clock::{now, wait_until};

/// Time between two requests.
const PERIOD: Duration = Duration::from_millis(20);

/// Who waits for longer has gone away.
const PATIENCE: Duration = Duration::from_secs(1);

/// Asks for this long.
pub(super) fn ask(
    address: SocketAddr,
    request: &[u8],
    length: Duration,
    stop: &AtomicBool,
) -> Service {
    let mut seen = Service::default();
    let start = now();
    let mut due = start;
    while due < start + length && !stop.load(Ordering::Relaxed) {
        wait_until(due);
        if once(address, request) {
            seen.latencies.push(now().duration_since(due));
        } else {
            seen.failed += 1;
        }
        due += PERIOD;
        // A service that answers nothing has failed all of the next second too; asking for them one
        // by one would take the patience of each.
        while now() > due + PATIENCE {
            seen.failed += 1;
            due += PERIOD;
        }
    }
    seen
}

/// Whether one request is answered as it should be.
pub(super) fn once(address: SocketAddr, request: &[u8]) -> bool {
    let until = now() + PATIENCE;
    let answer = Connection::open(NEIGHBOR, address, until)
        .and_then(|mut connection| connection.exchange(request, until));
    answer.is_ok_and(|answer| answer.status == 200 && !answer.has_errors)
}
