//! Tests the number of connections, and the order of waiting calls.

use std::cell::Cell;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::*;

/// A server that responds to each request after a permit, and counts its connections.
pub(super) struct Held {
    pub(super) endpoint: UpstreamEndpoint,
    /// One permit allows one response.
    pub(super) go: Rc<Semaphore>,
    pub(super) open: Rc<Cell<usize>>,
    pub(super) most: Rc<Cell<usize>>,
}

pub(super) async fn held() -> Held {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let held = Held {
        endpoint: UpstreamEndpoint::parse(&url, Policy::default()).unwrap(),
        go: Rc::new(Semaphore::new(0)),
        open: Rc::default(),
        most: Rc::default(),
    };
    let (go, open, most) = (held.go.clone(), held.open.clone(), held.most.clone());
    tokio::task::spawn_local(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            open.set(open.get() + 1);
            most.set(most.get().max(open.get()));
            let (go, open) = (go.clone(), open.clone());
            tokio::task::spawn_local(async move {
                while !read_request(&mut stream).await.is_empty() {
                    go.acquire().await.unwrap().forget();
                    if stream.write_all(KEPT.as_bytes()).await.is_err() {
                        break;
                    }
                }
                open.set(open.get() - 1);
            });
        }
    });
    held
}

pub(super) fn client(
    total: usize,
    per_origin: impl Into<Option<usize>>,
    waiting: usize,
) -> (Client, Arc<Traffic>) {
    let settings = ClientSettings {
        connections: ConnectionLimits {
            total,
            per_origin: per_origin.into(),
            waiting,
        },
        ..ClientSettings::default()
    };
    let traffic = Arc::clone(&settings.traffic);
    (Client::new(settings), traffic)
}

pub(super) type Sending = tokio::task::JoinHandle<Result<Reply, SendError>>;

pub(super) fn send(client: &Client, endpoint: &UpstreamEndpoint) -> Sending {
    let (client, endpoint) = (client.clone(), endpoint.clone());
    tokio::task::spawn_local(async move { client.send(&endpoint, call("{}")).await })
}

/// Runs the tasks of this thread until the condition holds. The tests depend only on this thread and on
/// loopback.
pub(super) async fn until(is_so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < end, "it does not happen");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[test]
fn there_are_no_more_connections_to_an_origin_than_allowed_and_the_others_wait_in_turn() {
    run(async {
        let held = held().await;
        let (client, traffic) = client(100, 2, 10);
        let sendings: Vec<Sending> = (0..6).map(|_| send(&client, &held.endpoint)).collect();
        until(|| traffic.waiting() == 4 && held.open.get() == 2).await;
        held.go.add_permits(6);
        for sending in sendings {
            assert_eq!(sending.await.unwrap().unwrap().status, 200);
        }
        assert_eq!((held.most.get(), client.counters().connects), (2, 2));
        assert_eq!(
            (traffic.open(), traffic.waiting(), traffic.waited()),
            (2, 0, 4)
        );
        assert_eq!(traffic.refused(), 0);
    });
}

#[test]
fn a_call_beyond_those_that_may_wait_fails_at_once() {
    run(async {
        let held = held().await;
        let (client, traffic) = client(100, 1, 1);
        let first = send(&client, &held.endpoint);
        let second = send(&client, &held.endpoint);
        until(|| traffic.waiting() == 1).await;
        let error = client.send(&held.endpoint, call("{}")).await.unwrap_err();
        assert!(error.is_crowded(), "{error}");
        assert_eq!(
            error.to_string(),
            format!(
                "too many requests wait for a connection to {}",
                held.endpoint.as_str()
            )
        );
        assert_eq!(traffic.refused(), 1);
        held.go.add_permits(2);
        assert!(first.await.unwrap().is_ok() && second.await.unwrap().is_ok());
    });
}

#[test]
fn a_call_that_waits_has_no_more_time_than_others_and_leaves_nothing_behind() {
    run(async {
        let held = held().await;
        let (client, traffic) = client(100, 1, 1);
        let first = send(&client, &held.endpoint);
        until(|| held.open.get() == 1).await;
        let hasty = Call {
            timeout: Some(Duration::from_millis(20)),
            ..call("{}")
        };
        let error = client.send(&held.endpoint, hasty).await.unwrap_err();
        assert!(error.is_timeout(), "{error}");
        assert_eq!(traffic.waiting(), 0);
        held.go.add_permits(2);
        assert!(first.await.unwrap().is_ok());
        assert!(client.send(&held.endpoint, call("{}")).await.is_ok());
        assert_eq!(client.counters().connects, 1);
    });
}

#[test]
fn a_call_that_ends_early_gives_its_place_to_the_next() {
    run(async {
        let held = held().await;
        let (client, traffic) = client(100, 1, 1);
        let first = send(&client, &held.endpoint);
        until(|| held.open.get() == 1).await;
        let second = send(&client, &held.endpoint);
        until(|| traffic.waiting() == 1).await;
        first.abort();
        until(|| traffic.waiting() == 0).await;
        // One permit is for the cancelled request.
        held.go.add_permits(2);
        assert!(second.await.unwrap().is_ok());
    });
}

#[test]
fn a_slow_origin_keeps_nobody_from_another() {
    run(async {
        let (slow, quick) = (held().await, held().await);
        let (client, traffic) = client(100, 1, 5);
        let waiting: Vec<Sending> = (0..3).map(|_| send(&client, &slow.endpoint)).collect();
        until(|| traffic.waiting() == 2).await;
        quick.go.add_permits(1);
        assert!(client.send(&quick.endpoint, call("{}")).await.is_ok());
        assert_eq!(traffic.waiting(), 2);
        slow.go.add_permits(3);
        for sending in waiting {
            assert!(sending.await.unwrap().is_ok());
        }
    });
}

#[test]
fn slow_origins_leave_as_many_connections_as_each_of_them_has() {
    run(async {
        let (one, other, quick) = (held().await, held().await, held().await);
        let (client, traffic) = client(12, None, 50);
        let mut sendings: Vec<Sending> = (0..9).map(|_| send(&client, &one.endpoint)).collect();
        until(|| traffic.waiting() == 3 && one.open.get() == 6).await;
        sendings.extend((0..9).map(|_| send(&client, &other.endpoint)));
        until(|| traffic.waiting() == 9 && other.open.get() == 3).await;
        // The third call gets a response at once, again and again.
        quick.go.add_permits(3);
        for _ in 0..3 {
            assert!(client.send(&quick.endpoint, call("{}")).await.is_ok());
        }
        assert_eq!(traffic.waited(), 9);
        one.go.add_permits(9);
        other.go.add_permits(9);
        for sending in sendings {
            assert!(sending.await.unwrap().is_ok());
        }
        // No place was lost: the next group of calls gets as many as the first.
        let again: Vec<Sending> = (0..9).map(|_| send(&client, &quick.endpoint)).collect();
        until(|| traffic.waiting() == 3 && quick.open.get() == 6).await;
        quick.go.add_permits(9);
        for sending in again {
            assert!(sending.await.unwrap().is_ok());
        }
    });
}

#[test]
fn those_who_wait_get_what_others_gave_back_without_a_further_call() {
    run(async {
        let (one, other) = (held().await, held().await);
        let (client, traffic) = client(8, None, 50);
        let first: Vec<Sending> = (0..4).map(|_| send(&client, &other.endpoint)).collect();
        until(|| other.open.get() == 4).await;
        let waiting: Vec<Sending> = (0..6).map(|_| send(&client, &one.endpoint)).collect();
        until(|| traffic.waiting() == 4 && one.open.get() == 2).await;
        other.go.add_permits(4);
        for sending in first {
            assert!(sending.await.unwrap().is_ok());
        }
        // After one response, its place is given together with the places that the other origin returned.
        one.go.add_permits(1);
        until(|| one.open.get() == 4).await;
        one.go.add_permits(5);
        for sending in waiting {
            assert!(sending.await.unwrap().is_ok());
        }
    });
}

#[test]
fn idle_connections_make_room_for_those_that_are_needed() {
    run(async {
        let (one, other) = (held().await, held().await);
        let (client, traffic) = client(2, 2, 5);
        one.go.add_permits(2);
        let both = [send(&client, &one.endpoint), send(&client, &one.endpoint)];
        for sending in both {
            assert!(sending.await.unwrap().is_ok());
        }
        assert_eq!((client.counters().idle, traffic.open()), (2, 2));
        other.go.add_permits(1);
        assert!(client.send(&other.endpoint, call("{}")).await.is_ok());
        assert_eq!((client.counters().idle, traffic.open()), (2, 2));
        until(|| one.open.get() == 1).await;
    });
}

#[test]
fn each_worker_has_its_part_and_new_limits_hold_at_once() {
    run(async {
        let held = held().await;
        let settings = ClientSettings {
            connections: ConnectionLimits {
                total: 100,
                per_origin: Some(2),
                waiting: 20,
            },
            workers: NonZeroUsize::new(2).unwrap(),
            ..ClientSettings::default()
        };
        let traffic = Arc::clone(&settings.traffic);
        let client = Client::new(settings);
        let mut sendings: Vec<Sending> = (0..3).map(|_| send(&client, &held.endpoint)).collect();
        until(|| traffic.waiting() == 2 && held.open.get() == 1).await;
        client.set_limits(ConnectionLimits {
            total: 100,
            per_origin: Some(8),
            waiting: 20,
        });
        sendings.push(send(&client, &held.endpoint));
        until(|| held.open.get() == 4).await;
        held.go.add_permits(4);
        for sending in sendings {
            assert!(sending.await.unwrap().is_ok());
        }
    });
}

#[test]
fn an_endpoint_may_have_a_limit_of_its_own() {
    run(async {
        let held = held().await;
        let policy = Policy {
            connections_max: NonZeroUsize::new(1),
            ..Policy::default()
        };
        let own = UpstreamEndpoint::parse(held.endpoint.as_str(), policy).unwrap();
        let (client, traffic) = client(100, 50, 5);
        let sendings = [send(&client, &own), send(&client, &own)];
        until(|| traffic.waiting() == 1).await;
        held.go.add_permits(2);
        for sending in sendings {
            assert!(sending.await.unwrap().is_ok());
        }
        assert_eq!(held.most.get(), 1);
        // Other endpoints at this address have another limit.
        let others = [send(&client, &held.endpoint), send(&client, &own)];
        until(|| held.open.get() == 2).await;
        assert_eq!(traffic.waiting(), 0);
        held.go.add_permits(2);
        for sending in others {
            assert!(sending.await.unwrap().is_ok());
        }
    });
}

/// An HTTP/2 server that responds to each request after a permit.
struct HeldHttp2 {
    endpoint: UpstreamEndpoint,
    /// One permit allows one response.
    go: Arc<Semaphore>,
    /// The tasks of all opened connections. Aborting a task closes its connection.
    served: Rc<RefCell<Vec<tokio::task::JoinHandle<()>>>>,
}

/// A server with at most `streams` requests at a time on a connection. Clients receive this limit with the
/// first response.
async fn held_http2(streams: u32) -> HeldHttp2 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let policy = Policy {
        http2: Http2::Only,
        ..Policy::default()
    };
    let held = HeldHttp2 {
        endpoint: UpstreamEndpoint::parse(&url, policy).unwrap(),
        go: Arc::new(Semaphore::new(0)),
        served: Rc::default(),
    };
    let (permits, served) = (Arc::clone(&held.go), Rc::clone(&held.served));
    tokio::task::spawn_local(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let permits = Arc::clone(&permits);
            let answer = hyper::service::service_fn(move |_| {
                let permits = Arc::clone(&permits);
                async move {
                    permits.acquire().await.unwrap().forget();
                    Ok::<_, hyper::Error>(http::Response::new(Full::new(Bytes::from("ok"))))
                }
            });
            let io = hyper_util::rt::TokioIo::new(stream);
            let executor = hyper_util::rt::TokioExecutor::new();
            let mut server = hyper::server::conn::http2::Builder::new(executor);
            server.max_concurrent_streams(streams);
            let connection = server.serve_connection(io, answer);
            let task = tokio::spawn(async move { drop(connection.await) });
            served.borrow_mut().push(task);
        }
    });
    held
}

#[test]
fn those_who_wait_for_a_shared_connection_use_it_at_once_when_it_is_there() {
    run(async {
        let held = held_http2(100).await;
        let opened = || held.served.borrow().len();
        let (client, traffic) = client(100, 1, 10);
        let sendings: Vec<Sending> = (0..5).map(|_| send(&client, &held.endpoint)).collect();
        until(|| traffic.waiting() == 4 && opened() == 1).await;
        // The first request has a response. The others run concurrently.
        held.go.add_permits(1);
        until(|| traffic.waiting() == 0).await;
        assert_eq!(
            (client.counters().in_flight, client.counters().reused),
            (4, 4)
        );
        held.go.add_permits(4);
        for sending in sendings {
            assert_eq!(sending.await.unwrap().unwrap().status, 200);
        }
        assert_eq!((opened(), traffic.open()), (1, 1));
    });
}

/// All calls of a shared connection try again when it ends. They must not open many new connections.
#[test]
fn those_whose_shared_connection_ends_try_again_on_as_many_as_there_are_places() {
    run(async {
        let held = held_http2(1).await;
        let opened = || held.served.borrow().len();
        let (client, traffic) = client(100, 1, 10);
        held.go.add_permits(1);
        let first = send(&client, &held.endpoint);
        assert!(first.await.unwrap().is_ok());
        // One request runs on the shared connection, the others wait for its only stream.
        let lost = send(&client, &held.endpoint);
        let again: Vec<Sending> = (0..4).map(|_| send(&client, &held.endpoint)).collect();
        until(|| client.counters().in_flight == 5).await;
        assert_eq!((opened(), traffic.waiting()), (1, 0));
        held.served.borrow()[0].abort();
        // The server may have executed it, so the client does not send it again.
        assert!(lost.await.unwrap().is_err());
        // One call opens a connection, the others wait for it.
        until(|| opened() == 2 && traffic.waiting() == 3).await;
        assert_eq!(client.counters().retried, 4);
        held.go.add_permits(4);
        for sending in again {
            assert_eq!(sending.await.unwrap().unwrap().body, "ok");
        }
        assert_eq!((opened(), traffic.open(), traffic.refused()), (2, 1, 0));
        assert_eq!(client.counters().retried, 4);
    });
}
