//! Planted causes of latency: a sleep, a lock and a connection before each response. `weigh lab --why` must
//! tell them apart.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::net::sockopt;
use rustix::thread::{NanosleepRelativeResult, Timespec, nanosleep};

use super::behavior::Behavior;

/// The planted causes of one server.
pub(super) struct Planted {
    sleep: Duration,
    lock: Option<HeldLock>,
    connection: Option<OwnListener>,
}

/// A lock that another thread holds for a time after each request for it.
///
/// There are two locks in turn. The other thread takes the next lock before it releases this one, so the
/// server never finds a free lock.
struct HeldLock {
    locks: Arc<[Mutex<()>; 2]>,
    /// The lock that the other thread holds now.
    turn: usize,
    asked: Sender<()>,
}

/// A listener for connections of the server to itself.
struct OwnListener {
    listener: TcpListener,
    address: SocketAddr,
}

impl Planted {
    pub(super) fn new(behavior: &Behavior) -> io::Result<Planted> {
        Ok(Planted {
            sleep: behavior.sleep,
            lock: match behavior.lock {
                Duration::ZERO => None,
                time => Some(HeldLock::new(time)?),
            },
            connection: match behavior.extra_connection {
                false => None,
                true => Some(OwnListener::new()?),
            },
        })
    }

    /// Does everything that is planted before a response.
    ///
    /// # Errors
    /// If a connection cannot be opened.
    pub(super) fn before_response(&mut self) -> io::Result<()> {
        if !self.sleep.is_zero() {
            rest(self.sleep);
        }
        if let Some(lock) = &mut self.lock {
            lock.wait();
        }
        match &self.connection {
            None => Ok(()),
            Some(own) => own.connect(),
        }
    }
}

impl HeldLock {
    fn new(time: Duration) -> io::Result<HeldLock> {
        let locks = Arc::new([Mutex::new(()), Mutex::new(())]);
        let (asked, requests) = mpsc::channel();
        let (holds, held) = mpsc::channel();
        let shared = Arc::clone(&locks);
        thread::Builder::new()
            .name("lock-holder".to_owned())
            .spawn(move || hold(&shared, time, &requests, &holds))?;
        // Until the thread holds the lock, a request would find it free.
        held.recv().map_err(io::Error::other)?;
        Ok(HeldLock {
            locks,
            turn: 0,
            asked,
        })
    }

    fn wait(&mut self) {
        self.asked
            .send(())
            .expect("the thread ends only after this sender");
        drop(self.locks[self.turn].lock().expect(NO_PANIC));
        self.turn = 1 - self.turn;
    }
}

const NO_PANIC: &str = "a thread that holds a lock does not panic";

/// Holds one of the locks at any time, until the other side of `requests` is gone.
fn hold(locks: &[Mutex<()>; 2], time: Duration, requests: &Receiver<()>, holds: &Sender<()>) {
    let mut turn = 0;
    let mut held = locks[turn].lock().expect(NO_PANIC);
    // The receiver is gone only if the server is.
    let _ = holds.send(());
    while requests.recv().is_ok() {
        rest(time);
        turn = 1 - turn;
        let next = locks[turn].lock().expect(NO_PANIC);
        drop(std::mem::replace(&mut held, next));
    }
}

impl OwnListener {
    fn new() -> io::Result<OwnListener> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        Ok(OwnListener { listener, address })
    }

    /// Opens a connection and closes it.
    fn connect(&self) -> io::Result<()> {
        let connection = TcpStream::connect(self.address)?;
        let (accepted, _) = self.listener.accept()?;
        // A reset on close, because a normal end keeps the port for a minute.
        sockopt::set_socket_linger(&accepted, Some(Duration::ZERO))?;
        sockopt::set_socket_linger(&connection, Some(Duration::ZERO))?;
        Ok(())
    }
}

/// Blocks this thread in a timer for this time.
fn rest(time: Duration) {
    let mut left = Timespec::try_from(time).expect("no lab sleeps for 292 billion years");
    // A signal ends the call early.
    while let NanosleepRelativeResult::Interrupted(remaining) = nanosleep(&left) {
        left = remaining;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    /// Time of three responses in nanoseconds.
    fn took(behavior: &Behavior) -> u64 {
        let mut planted = Planted::new(behavior).unwrap();
        let clock = Clock::start();
        let began = clock.now_ns();
        for _ in 0..3 {
            planted.before_response().unwrap();
        }
        clock.now_ns() - began
    }

    #[test]
    fn a_sleep_and_a_lock_take_their_time_on_each_request() {
        let time = Duration::from_millis(2);
        let sleep = Behavior {
            sleep: time,
            ..Behavior::default()
        };
        let lock = Behavior {
            lock: time,
            ..Behavior::default()
        };
        for behavior in [&sleep, &lock] {
            assert!(took(behavior) >= 6_000_000, "{behavior:?}");
        }
    }

    #[test]
    fn a_connection_is_opened_and_closed() {
        let behavior = Behavior {
            extra_connection: true,
            ..Behavior::default()
        };
        assert!(took(&behavior) > 0);
        let own = OwnListener::new().unwrap();
        own.connect().unwrap();
        own.listener.set_nonblocking(true).unwrap();
        let waiting = own.listener.accept().unwrap_err();
        assert_eq!(waiting.kind(), io::ErrorKind::WouldBlock);
    }
}
