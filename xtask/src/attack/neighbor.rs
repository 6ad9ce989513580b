//! Well-behaved clients: one asks every 20 ms, on a connection of its own, as a client does that has just
//! come, and counts from the time due. None waits for those before it, so that a slow answer does not make
//! the next one late.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::exchange::{Connection, NEIGHBOR};
use super::judge::Service;
use crate::clock::{now, wait_until};

/// Time between two requests.
const PERIOD: Duration = Duration::from_millis(20);

/// A client that waits for longer has gone away. So no more than 50 wait at a time.
const PATIENCE: Duration = Duration::from_secs(1);

/// Asks for this long.
pub(super) fn ask(
    address: SocketAddr,
    request: &[u8],
    length: Duration,
    stop: &AtomicBool,
) -> Service {
    ask_patiently(address, PATIENCE, request, length, stop)
}

/// Asks for this long; each client goes away when it has waited for its patience.
fn ask_patiently(
    address: SocketAddr,
    patience: Duration,
    request: &[u8],
    length: Duration,
    stop: &AtomicBool,
) -> Service {
    let seen = Mutex::new(Service::default());
    let start = now();
    thread::scope(|scope| {
        let mut due = start;
        while due < start + length && !stop.load(Ordering::Relaxed) {
            wait_until(due);
            let seen = &seen;
            scope.spawn(move || {
                let is_answered = is_answered(address, request, patience);
                let latency = now().duration_since(due);
                // Nothing panics while it holds this lock.
                let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                if is_answered {
                    seen.latencies.push(latency);
                } else {
                    seen.failed += 1;
                }
            });
            due += PERIOD;
        }
    });
    seen.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Whether one request is answered as it should be.
pub(super) fn once(address: SocketAddr, request: &[u8]) -> bool {
    is_answered(address, request, PATIENCE)
}

fn is_answered(address: SocketAddr, request: &[u8], patience: Duration) -> bool {
    let until = now() + patience;
    let answer = Connection::open(NEIGHBOR, address, until)
        .and_then(|mut connection| connection.exchange(request, until));
    answer.is_ok_and(|answer| answer.status == 200 && !answer.has_errors)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// Answers none of so many requests before all of them have come.
    fn serve(listener: &TcpListener, count: usize) {
        let come: Vec<TcpStream> = (0..count)
            .map(|_| {
                let (mut stream, _) = listener.accept().unwrap();
                assert_ne!(stream.read(&mut [0; 1024]).unwrap(), 0);
                stream
            })
            .collect();
        for mut stream in come {
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
            stream.write_all(answer).unwrap();
        }
    }

    #[test]
    fn no_request_waits_for_the_answer_of_another() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let patient = (listener.local_addr().unwrap(), Duration::from_secs(30));
        let seen = thread::scope(|scope| {
            scope.spawn(|| serve(&listener, 5));
            let request = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
            let (address, patience) = patient;
            ask_patiently(
                address,
                patience,
                request,
                PERIOD * 5,
                &AtomicBool::new(false),
            )
        });
        assert_eq!((seen.latencies.len(), seen.failed), (5, 0));
    }
}
