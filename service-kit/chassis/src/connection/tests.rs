use std::convert::Infallible;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::Response;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioTimer;

use super::*;
use crate::listener::{self, Listener};

/// Returns the body of a request, with a delay if its path is `/late`.
async fn echo(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.uri().path() == "/late" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let body = request.into_body().collect().await;
    let body = body.map_or_else(|_| Bytes::from("broken"), |body| body.to_bytes());
    Ok(Response::new(Full::new(body)))
}

/// Notifies a client that its connection was registered, because its worker waits for bytes.
type Waits = mpsc::Receiver<()>;

/// Serves one connection of `client`. Returns the client's result, and true if it was registered.
fn exchange<T: Send + 'static>(
    client: impl FnOnce(SocketAddr, Waits) -> T + Send + 'static,
) -> (T, bool) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener::prepare(&listener).unwrap();
    let (waiting, waits) = mpsc::channel();
    let client = thread::spawn(move || client(address, waits));
    let runtime = crate::runtime().unwrap();
    let is_registered = runtime.block_on(async {
        let accepting = Listener::new(listener).unwrap();
        let accepted = std::future::poll_fn(|task| accepting.poll_accept(task));
        let (stream, _) = accepted.await.unwrap();
        // Until the first bytes are there, or the end.
        while stream.peek(&mut [0]).is_err() {
            tokio::task::yield_now().await;
        }
        let connection = ClientConnection::new(stream);
        let handle = connection.handle();
        let observer = handle.clone();
        let service = service_fn(|request| {
            observer.learn(&request);
            echo(request)
        });
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(Duration::from_millis(300));
        let is_registered = || !matches!(&*handle.0.socket.borrow(), Socket::Fresh(_));
        let serving = builder.serve_connection(connection, service);
        let mut served = pin!(handle.clone().serve(serving));
        std::future::poll_fn(|task| {
            let done = served.as_mut().poll(task);
            if is_registered() {
                let _ = waiting.send(());
            }
            done
        })
        .await
        .ok();
        is_registered()
    });
    (client.join().unwrap(), is_registered)
}

fn open(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    let patience = Some(Duration::from_secs(20));
    stream.set_read_timeout(patience).unwrap();
    stream
}

/// Sends pieces, each further piece when the server waits for it. Then reads until the server closes the
/// connection.
fn say(address: SocketAddr, waits: &Waits, pieces: &[&[u8]]) -> Vec<u8> {
    let mut stream = open(address);
    for (number, piece) in pieces.iter().enumerate() {
        if number > 0 {
            waits.recv().unwrap();
        }
        stream.write_all(piece).unwrap();
    }
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}

fn body(answer: &[u8]) -> &[u8] {
    let end = answer.windows(4).position(|at| at == b"\r\n\r\n").unwrap();
    &answer[end + 4..]
}

#[test]
fn a_request_that_is_there_is_answered_without_registering() {
    for head in [
        "POST / HTTP/1.0\r\ncontent-length: 5\r\n\r\nhello",
        "POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello",
    ] {
        let (answer, is_registered) =
            exchange(move |address, waits| say(address, &waits, &[head.as_bytes()]));
        assert_eq!(body(&answer), b"hello");
        assert!(!is_registered, "{head}");
    }
}

#[test]
fn what_comes_later_is_waited_for() {
    let head = b"POST / HTTP/1.0\r\ncontent-length: 10\r\n\r\n".as_slice();
    for pieces in [
        [head, b"hello", b"world"],
        [&head[..7], &head[7..], b"helloworld"],
    ] {
        let (answer, is_registered) = exchange(move |address, waits| say(address, &waits, &pieces));
        assert_eq!(body(&answer), b"helloworld");
        assert!(is_registered);
    }
    let late = b"POST /late HTTP/1.0\r\ncontent-length: 2\r\n\r\nhi".as_slice();
    let (answer, _) = exchange(move |address, waits| say(address, &waits, &[late]));
    assert_eq!(body(&answer), b"hi");
}

#[test]
fn connections_are_kept_for_as_many_requests_as_are_sent() {
    let one = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\n";
    let last = "POST / HTTP/1.1\r\nhost: a\r\nConnection: Close\r\ncontent-length: 3\r\n\r\n";
    for is_at_once in [true, false] {
        let (answer, _) = exchange(move |address, waits| {
            let pieces: Vec<String> = (0..9)
                .map(|number| format!("{}{number:03}", if number == 8 { last } else { one }))
                .collect();
            if is_at_once {
                return say(address, &waits, &[pieces.concat().as_bytes()]);
            }
            let pieces: Vec<&[u8]> = pieces.iter().map(String::as_bytes).collect();
            say(address, &waits, &pieces)
        });
        let answer = String::from_utf8(answer).unwrap();
        let found: Vec<bool> = (0..9)
            .map(|number| answer.contains(&format!("\r\n\r\n{number:03}")))
            .collect();
        assert_eq!(found, [true; 9], "{answer}");
    }
}

#[test]
fn a_body_beyond_all_buffers_comes_back_whole() {
    let sent: Vec<u8> = (0..=250).cycle().take(20_000_000).collect();
    let expected = sent.clone();
    let (answer, is_registered) = exchange(move |address, _| {
        let mut stream = open(address);
        let head = format!("POST / HTTP/1.0\r\ncontent-length: {}\r\n\r\n", sent.len());
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&sent).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        answer
    });
    assert!(body(&answer) == expected);
    assert!(is_registered);
}

#[test]
fn who_leaves_or_says_nothing_is_let_go() {
    exchange(|address, _| drop(open(address)));
    let half = b"POST / HTTP/1.1\r\nhost".as_slice();
    exchange(move |address, _| open(address).write_all(half).unwrap());
    // A silent client has the full time for a head.
    let (answer, _) = exchange(move |address, waits| say(address, &waits, &[half]));
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 408"));
}

#[test]
fn the_last_answer_is_known_from_version_and_options() {
    let request = |version, connection: &[&'static str]| {
        let mut headers = HeaderMap::new();
        for value in connection {
            headers.append(header::CONNECTION, HeaderValue::from_static(value));
        }
        is_last(version, &headers)
    };
    assert!(request(Version::HTTP_10, &[]));
    assert!(!request(Version::HTTP_10, &["Keep-Alive"]));
    assert!(!request(Version::HTTP_11, &[]));
    assert!(!request(Version::HTTP_11, &["keep-alive", "upgrade, te"]));
    assert!(request(Version::HTTP_11, &["te", "x , Close"]));
    assert!(!request(Version::HTTP_2, &["close"]));
}
