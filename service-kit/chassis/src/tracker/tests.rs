//! Tests on real sockets of clients that wait, and of clients that let the service wait.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response};
use socket2::{Domain, Socket, Type};

use crate::client::ClientNetwork;
use crate::clock;
use crate::connection_table::{Cause, ConnectionTable};
use crate::limits::{Most, ServerLimits, Timeouts};
use crate::worker::{Handler, Worker};

/// More bytes than the system buffers for a client that does not read.
const BIG: usize = 32 << 20;
/// Longer than anything in these tests that does not hang.
const PATIENCE: Duration = Duration::from_secs(20);

/// Twice the unsent bytes that the system buffers.
const PART: usize = 256 << 10;

/// Responds to `/big` with [`BIG`] bytes, to `/part` with [`PART`], to `/late` after a second and to `/never`
/// never. `/work` blocks the worker for 50 ms.
struct Sample {
    /// Number of requests that the handler has received.
    seen: Arc<AtomicU32>,
}

impl Handler for Sample {
    type Body = Full<Bytes>;

    async fn answer(&self, _: ClientNetwork, request: Request<Incoming>) -> Response<Full<Bytes>> {
        self.seen.fetch_add(1, Ordering::Relaxed);
        Response::new(Full::from(match request.uri().path() {
            "/big" => vec![b'.'; BIG],
            "/late" => {
                tokio::time::sleep(Duration::from_secs(1)).await;
                b"late".to_vec()
            }
            "/never" => std::future::pending().await,
            "/part" => vec![b'.'; PART],
            "/work" => {
                wait(Duration::from_millis(50));
                b"soon".to_vec()
            }
            _ => b"soon".to_vec(),
        }))
    }
}

struct Service {
    address: SocketAddr,
    table: Arc<ConnectionTable>,
    seen: Arc<AtomicU32>,
    worker: Worker,
}

const MOST: Most = Most {
    total: 1_000,
    per_address: 1_000,
};

fn start(timeouts: Timeouts, most: Most) -> Service {
    start_to_stop_within(PATIENCE, timeouts, most)
}

fn start_to_stop_within(stop_timeout: Duration, timeouts: Timeouts, most: Most) -> Service {
    let table = ConnectionTable::new(most);
    let limits = ServerLimits {
        timeouts,
        http2_streams: 100,
        stop_timeout,
    };
    let seen: Arc<AtomicU32> = Arc::default();
    let sample = Sample {
        seen: Arc::clone(&seen),
    };
    let worker = Worker::start(0, &table, limits, None, async move || sample).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    crate::listener::prepare(&listener).unwrap();
    worker.listen(listener);
    Service {
        address,
        table,
        seen,
        worker,
    }
}

/// Timeouts that no test reaches by itself.
fn long() -> Timeouts {
    Timeouts {
        head: PATIENCE,
        idle: PATIENCE,
        write: PATIENCE,
        unsent_bytes: 1 << 30,
    }
}

impl Service {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn send(&self, bytes: &str) -> TcpStream {
        let mut stream = self.connect();
        stream.write_all(bytes.as_bytes()).unwrap();
        stream
    }

    /// Waits until `count` connections were closed for a cause.
    fn wait_for(&self, cause: Cause, count: u64) {
        let end = clock::now() + PATIENCE;
        while self.table.count(cause) < count {
            assert!(clock::now() < end, "{cause:?}: {}", self.table.count(cause));
            std::thread::yield_now();
        }
    }
}

impl Service {
    /// Waits until no connection is open.
    fn wait_for_none(&self) {
        let end = clock::now() + PATIENCE;
        while self.table.open() > 0 {
            assert!(clock::now() < end, "a place is not free again");
            std::thread::yield_now();
        }
    }
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: t\r\n\r\n")
}

/// True if the service has closed a connection, false if it waits for more bytes.
fn is_closed(mut stream: &TcpStream) -> bool {
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

/// Reads the response `soon` or `late`, and returns it.
fn answer(mut stream: &TcpStream) -> String {
    let mut text = String::new();
    let mut bytes = [0; 1024];
    while !text.contains("\r\n\r\nsoon") && !text.contains("\r\n\r\nlate") {
        let count = stream.read(&mut bytes).unwrap();
        assert!(count > 0, "closed after `{text}`");
        text += std::str::from_utf8(&bytes[..count]).unwrap();
    }
    text[text.len() - 4..].to_owned()
}

#[test]
fn a_client_that_sends_no_head_is_hung_up_on_whatever_it_has_begun() {
    let service = start(
        Timeouts {
            head: Duration::from_millis(300),
            ..long()
        },
        MOST,
    );
    let begun = [
        "",
        "G",
        "PRI * HTTP/2.0\r\n\r",
        "GET / HTTP/1.1\r\nhost: t\r\n",
    ];
    let open = begun.map(|bytes| service.send(bytes));
    for (stream, begun) in open.iter().zip(begun) {
        assert!(is_closed(stream), "{begun:?}");
    }
    assert_eq!(service.table.count(Cause::Head), 4);
}

#[test]
fn a_second_head_has_its_own_time_and_a_pause_before_it_another() {
    let service = start(
        Timeouts {
            head: Duration::from_millis(300),
            idle: Duration::from_millis(1_500),
            ..long()
        },
        MOST,
    );
    let mut stream = service.send(&get("/"));
    assert_eq!(answer(&stream), "soon");
    // Longer than the timeout of a head, and shorter than the timeout of a pause.
    wait(Duration::from_millis(800));
    stream.write_all(get("/").as_bytes()).unwrap();
    assert_eq!(answer(&stream), "soon");
    let start = clock::now();
    stream.write_all(b"GET / HT").unwrap();
    assert!(is_closed(&stream));
    assert!(start.elapsed() < Duration::from_millis(1_400));
    assert_eq!(service.table.count(Cause::Head), 1);
    let stream = service.send(&get("/"));
    assert_eq!(answer(&stream), "soon");
    assert!(is_closed(&stream));
    assert_eq!(service.table.count(Cause::Idle), 1);
}

/// Waits for time to pass, in tests about time.
fn wait(time: Duration) {
    let (_sender, receiver) = std::sync::mpsc::channel::<()>();
    let _ = receiver.recv_timeout(time);
}

#[test]
fn a_client_that_does_not_read_is_hung_up_on() {
    let service = start(
        Timeouts {
            write: Duration::from_millis(500),
            ..long()
        },
        MOST,
    );
    let _open = service.send(&get("/big"));
    service.wait_for(Cause::Write, 1);
    service.wait_for_none();
}

#[test]
fn a_client_that_reads_slowly_gets_all_of_its_answer() {
    let service = start(
        Timeouts {
            write: Duration::from_millis(500),
            ..long()
        },
        MOST,
    );
    let mut stream = service.send(&get("/big"));
    let start = clock::now();
    let mut bytes = vec![0; 1 << 20];
    let mut total = 0;
    while total < BIG {
        let count = stream.read(&mut bytes).unwrap();
        assert!(count > 0, "closed after {total} bytes");
        total += count;
        // More than 2 s in total.
        let paced = Duration::from_millis(2_000 * (total as u64) / (BIG as u64));
        wait(paced.saturating_sub(start.elapsed()));
    }
    assert_eq!(service.table.count(Cause::Write), 0);
}

#[test]
fn answers_that_are_not_taken_have_a_bound_together() {
    let service = start(
        Timeouts {
            unsent_bytes: 3 * BIG,
            ..long()
        },
        MOST,
    );
    let open: Vec<TcpStream> = (0..6).map(|_| service.send(&get("/big"))).collect();
    // Each connection has a little less than `BIG` unwritten, because the system has buffered a part.
    service.wait_for(Cause::Memory, 2);
    assert_eq!(service.table.count(Cause::Write), 0);
    drop(open);
}

#[test]
fn a_client_that_does_not_read_is_not_answered_into_the_buffers_of_the_system() {
    let service = start(long(), MOST);
    let _open = service.send(&get("/part").repeat(100));
    let seen = || service.seen.load(Ordering::Relaxed);
    // Until the service reads no more requests.
    let mut before = 0;
    while before == 0 || before < seen() {
        before = seen();
        wait(Duration::from_millis(300));
    }
    // The client's system buffers one, ours another, the service holds a third, and one may be read ahead.
    assert!(before <= 4, "{before} of 100 were answered");
}

/// Checks that another client is served soon after a first request was served.
fn another_client_is_served_soon(service: &Service) {
    let seen = || service.seen.load(Ordering::Relaxed);
    while seen() == 0 {
        std::thread::yield_now();
    }
    let other = service.send(&get("/"));
    assert_eq!(answer(&other), "soon");
    assert!(seen() <= 8, "{} were served before", seen() - 1);
}

#[test]
fn who_sends_many_requests_at_once_is_served_in_turn_with_others() {
    let service = start(long(), MOST);
    let _many = service.send(&get("/work").repeat(16));
    another_client_is_served_soon(&service);
}

#[test]
fn who_has_many_connections_is_served_in_turn_with_others() {
    let service = start(long(), MOST);
    let elsewhere = SocketAddr::from(([127, 0, 0, 2], 0));
    let many: Vec<TcpStream> = (0..20)
        .map(|_| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            socket.bind(&elsewhere.into()).unwrap();
            socket.connect(&service.address.into()).unwrap();
            let mut stream = TcpStream::from(socket);
            stream.write_all(get("/work").repeat(4).as_bytes()).unwrap();
            stream
        })
        .collect();
    another_client_is_served_soon(&service);
    drop(many);
}

#[test]
fn connections_of_one_client_are_served_in_turn_with_each_other() {
    let service = start(long(), MOST);
    let many: Vec<TcpStream> = (0..16)
        .map(|_| service.send(&get("/work").repeat(4)))
        .collect();
    let seen = || service.seen.load(Ordering::Relaxed);
    // Each client could have been served twice.
    while seen() < 32 {
        std::thread::yield_now();
    }
    let answers = many.into_iter().map(|mut stream| {
        stream.set_nonblocking(true).unwrap();
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).unwrap_or(0);
        String::from_utf8_lossy(&bytes[..count])
            .matches("soon")
            .count()
    });
    let answers: Vec<usize> = answers.collect();
    assert!(answers.iter().all(|count| *count > 0), "{answers:?}");
}

#[test]
fn silent_clients_do_not_keep_others_out() {
    let most = Most {
        total: 32,
        per_address: 32,
    };
    let service = start(long(), most);
    let mut silent = Vec::new();
    for _ in 0..30 {
        silent.extend((0..10).map(|_| service.connect()));
        let stream = service.send(&get("/"));
        assert_eq!(answer(&stream), "soon");
    }
    assert!(service.table.count(Cause::Room) > 0);
    assert!(service.table.open() <= 32);
}

/// Number of times that the thread of the worker with this number has gone to sleep.
fn sleeps(worker: u16) -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let own = tasks.map(|task| task.unwrap().path()).find(|task| {
        let name = std::fs::read_to_string(task.join("comm"));
        name.is_ok_and(|name| name.trim() == format!("worker-{worker}"))
    });
    let status = std::fs::read_to_string(own.unwrap().join("status")).unwrap();
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.unwrap().trim().parse().unwrap()
}

#[test]
fn a_worker_without_requests_hardly_wakes() {
    let table = ConnectionTable::new(MOST);
    let limits = ServerLimits {
        timeouts: long(),
        http2_streams: 100,
        stop_timeout: PATIENCE,
    };
    let seen: Arc<AtomicU32> = Arc::default();
    // A unique number, which identifies the thread among the threads of other tests.
    let number = 4_711;
    let worker =
        Worker::start(number, &table, limits, None, async move || Sample { seen }).unwrap();
    wait(Duration::from_millis(300));
    let before = sleeps(number);
    wait(Duration::from_secs(3));
    let woken = sleeps(number) - before;
    // The runtime may wake more than once for a timer. With ten sweeps per second there were 60.
    assert!(woken <= 15, "woken {woken} times in 3 s");
    Worker::finish_all(vec![worker]);
}

#[test]
fn idle_connections_make_room_at_once_when_descriptors_run_out() {
    let service = start(long(), MOST);
    let idle = service.send(&get("/soon"));
    answer(&idle);
    // Long enough for the worker to wait for its next sweep.
    wait(Duration::from_millis(200));
    let began = clock::now();
    let short = std::io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error());
    assert!(service.table.accept_failed(&short));
    assert!(is_closed(&idle));
    let took = clock::now() - began;
    assert!(took < Duration::from_millis(700), "after {took:?}");
}

#[test]
fn a_request_under_way_makes_no_room() {
    let most = Most {
        total: 8,
        per_address: 8,
    };
    let service = start(long(), most);
    let busy: Vec<TcpStream> = (0..7).map(|_| service.send(&get("/late"))).collect();
    let _silent: Vec<TcpStream> = (0..50).map(|_| service.connect()).collect();
    for stream in &busy {
        assert_eq!(answer(stream), "late");
    }
}

#[test]
fn the_service_stops_when_its_requests_are_done() {
    let service = start(long(), MOST);
    let _silent = service.connect();
    let idle = service.send(&get("/"));
    assert_eq!(answer(&idle), "soon");
    let busy = service.send(&get("/late"));
    while service.table.open() < 3 {
        std::thread::yield_now();
    }
    // The connection is accepted but may not be read yet.
    wait(Duration::from_millis(200));
    let start = clock::now();
    Worker::finish_all(vec![service.worker]);
    assert!(start.elapsed() < PATIENCE / 2);
    assert_eq!(answer(&busy), "late");
}

#[test]
fn workers_stop_side_by_side_whatever_their_clients_do() {
    let limit = Duration::from_secs(2);
    let services: Vec<Service> = (0..5)
        .map(|_| start_to_stop_within(limit, long(), MOST))
        .collect();
    let _waiting: Vec<[TcpStream; 2]> = services
        .iter()
        .map(|service| ["/never", "/big"].map(|path| service.send(&get(path))))
        .collect();
    for service in &services {
        while service.seen.load(Ordering::Relaxed) < 2 {
            std::thread::yield_now();
        }
    }
    let start = clock::now();
    Worker::finish_all(services.into_iter().map(|it| it.worker).collect());
    let took = start.elapsed();
    assert!((limit..3 * limit).contains(&took), "{took:?}");
}

mod http2 {
    use std::future::Future;

    use h2::client::{Builder, SendRequest};
    use tokio::task::JoinHandle;

    use super::*;

    type Http2Client = (SendRequest<Bytes>, JoinHandle<Result<(), h2::Error>>);

    fn run<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async { tokio::time::timeout(PATIENCE, work).await.unwrap() })
    }

    async fn connect(service: &Service, window: u32) -> Http2Client {
        let stream = tokio::net::TcpStream::connect(service.address)
            .await
            .unwrap();
        let (client, connection) = Builder::new()
            .initial_window_size(window)
            .handshake(stream)
            .await
            .unwrap();
        (client, tokio::spawn(connection))
    }

    fn request(path: &str) -> Request<()> {
        let uri = format!("http://t{path}");
        Request::builder().uri(uri).body(()).unwrap()
    }

    /// Sends a request. It is in progress when the function returns.
    async fn send(client: &mut SendRequest<Bytes>, path: &str) -> h2::client::ResponseFuture {
        let mut ready = client.clone().ready().await.unwrap();
        let (response, _) = ready.send_request(request(path), true).unwrap();
        *client = ready;
        response
    }

    #[test]
    fn a_client_that_grants_no_window_is_hung_up_on() {
        let service = start(
            Timeouts {
                write: Duration::from_millis(500),
                ..long()
            },
            MOST,
        );
        run(async {
            for window in [0, 1_000] {
                let (mut client, connection) = connect(&service, window).await;
                let response = send(&mut client, "/big").await.await.unwrap();
                // Progress of other streams on the connection must not help this stream.
                while !connection.is_finished() {
                    let mut small = match client.clone().ready().await {
                        Ok(ready) => ready,
                        Err(_) => break,
                    };
                    let Ok((response, _)) = small.send_request(request("/"), true) else {
                        break;
                    };
                    let _ = response.await;
                }
                drop(response);
            }
        });
        assert_eq!(service.table.count(Cause::Write), 2);
        service.wait_for_none();
    }

    #[test]
    fn an_idle_connection_is_told_to_go() {
        let service = start(
            Timeouts {
                idle: Duration::from_millis(500),
                ..long()
            },
            MOST,
        );
        run(async {
            let (mut client, connection) = connect(&service, 65_535).await;
            // The connection is not idle while a request is in progress.
            let response = send(&mut client, "/late").await.await.unwrap();
            assert_eq!(response.status(), 200);
            drop(response);
            // GOAWAY without an error. The connection must not be aborted.
            connection.await.unwrap().unwrap();
        });
        assert_eq!(service.table.count(Cause::Idle), 1);
    }

    #[test]
    fn a_client_that_cancels_all_its_requests_is_hung_up_on() {
        let service = start(long(), MOST);
        run(async {
            let (mut client, connection) = connect(&service, 65_535).await;
            let mut sent = 0;
            while !connection.is_finished() && sent < 5_000 {
                let Ok(mut ready) = client.clone().ready().await else {
                    break;
                };
                let Ok((response, mut stream)) = ready.send_request(request("/never"), false)
                else {
                    break;
                };
                sent += 1;
                // An earlier reset would count for the library's own limit.
                while service.seen.load(Ordering::Relaxed) < sent && !connection.is_finished() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                stream.send_reset(h2::Reason::CANCEL);
                drop(response);
                client = ready;
            }
            assert!(sent < 1_000, "{sent} requests were cancelled");
        });
        assert_eq!(service.table.count(Cause::Resets), 1);
        service.wait_for_none();
    }

    #[test]
    fn a_client_that_cancels_some_of_its_requests_is_served() {
        let service = start(long(), MOST);
        run(async {
            let (mut client, connection) = connect(&service, 65_535).await;
            for _ in 0..300 {
                let mut ready = client.clone().ready().await.unwrap();
                let (response, mut stream) = ready.send_request(request("/never"), false).unwrap();
                stream.send_reset(h2::Reason::CANCEL);
                drop(response);
                client = ready;
                let response = send(&mut client, "/").await.await.unwrap();
                assert_eq!(response.status(), 200);
            }
            assert!(!connection.is_finished());
        });
        assert_eq!(service.table.count(Cause::Resets), 0);
    }
}
