//! Tests the client against servers with scripted responses.

use std::cell::RefCell;
use std::time::Duration;

use http::{HeaderMap, Method};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::endpoint::Policy;

mod limits;
mod own_connection;

/// The responses of a server on one connection, one for each request. After the last, the server closes the
/// connection.
type Script = Vec<&'static str>;

struct Stand {
    endpoint: UpstreamEndpoint,
    seen: Rc<RefCell<Vec<String>>>,
}

/// Serves connections one after the other, each by its script.
async fn stand(scripts: Vec<Script>) -> Stand {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen = Rc::new(RefCell::new(Vec::new()));
    let all = Rc::clone(&seen);
    tokio::task::spawn_local(async move {
        for script in scripts {
            let (mut stream, _) = listener.accept().await.unwrap();
            for answer in script {
                let request = read_request(&mut stream).await;
                all.borrow_mut().push(request);
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        }
    });
    let url = format!("http://127.0.0.1:{port}/q");
    Stand {
        endpoint: UpstreamEndpoint::parse(&url, Policy::default()).unwrap(),
        seen,
    }
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return text;
            }
        }
        if stream.read_buf(&mut bytes).await.unwrap() == 0 {
            return text;
        }
    }
}

fn call(body: &'static str) -> Call<'static> {
    static EMPTY: std::sync::LazyLock<HeaderMap> = std::sync::LazyLock::new(HeaderMap::new);
    Call {
        method: Method::POST,
        headers: &EMPTY,
        rendered_headers: b"",
        body: body.into(),
        timeout: Some(Duration::from_secs(20)),
        reply_bytes_max: None,
        is_idempotent: true,
    }
}

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, test)
}

async fn answered(answer: &'static str) -> Result<Reply, SendError> {
    let stand = stand(vec![vec![answer]]).await;
    let settings = ClientSettings {
        reply_bytes_max: 1000,
        ..ClientSettings::default()
    };
    Client::new(settings)
        .send(&stand.endpoint, call("{}"))
        .await
}

#[test]
fn the_request_is_one_head_and_its_body() {
    run(async {
        let stand = stand(vec![vec!["HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"]]).await;
        let mut headers = HeaderMap::new();
        headers.append("source", "rhai".parse().unwrap());
        headers.append("host", "elsewhere".parse().unwrap());
        headers.append("content-length", "7".parse().unwrap());
        headers.append("connection", "close".parse().unwrap());
        let call = Call {
            headers: &headers,
            rendered_headers: b"accept: application/json\r\n",
            ..call(r#"{"query":"{a}"}"#)
        };
        let client = Client::new(ClientSettings::default());
        client.send(&stand.endpoint, call).await.unwrap();
        let port = stand.endpoint.uri().port_u16().unwrap();
        assert_eq!(
            *stand.seen.borrow(),
            [format!(
                "POST /q HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nsource: rhai\r\n\
                 accept: application/json\r\ncontent-length: 15\r\n\r\n{{\"query\":\"{{a}}\"}}"
            )]
        );
    });
}

#[test]
fn every_framing_of_a_body_is_understood() {
    for (answer, body) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", "hello"),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n",
            "hello",
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx: y\r\n\r\n",
            "hello",
        ),
        ("HTTP/1.1 200 OK\r\n\r\nhello", "hello"),
        ("HTTP/1.0 200 OK\r\n\r\nhello", "hello"),
        ("HTTP/1.1 204 No Content\r\n\r\n", ""),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
            "ok",
        ),
    ] {
        let reply = run(answered(answer)).unwrap();
        assert_eq!(reply.body, body, "{answer}");
    }
}

#[test]
fn answers_that_are_not_http_are_told_apart() {
    for (answer, words) in [
        ("hello\r\n\r\n", "not valid HTTP"),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n",
            "content-length is not a number",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: +1\r\n\r\n1",
            "content-length is not a number",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n1",
            "two lengths",
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: br\r\n\r\n",
            "transfer-encoding is unknown",
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
            "no valid size",
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nabc\r\n",
            "longer than it says",
        ),
        (
            "HTTP/1.1 101 Switching Protocols\r\n\r\n",
            "switches protocols",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhell",
            "closed before the answer",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n",
            "longer than 1000 bytes",
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffff\r\n",
            "longer than 1000 bytes",
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n",
            "longer than 1000 bytes",
        ),
        ("", "closed before the answer"),
    ] {
        let error = run(answered(answer)).unwrap_err().to_string();
        assert!(error.contains(words), "{answer}: {error}");
    }
}

#[test]
fn headers_of_the_answer_are_there_when_asked_for() {
    let reply = run(answered(
        "HTTP/1.1 418 Odd\r\nContent-Type: text/plain\r\nguid: 1\r\nguid: 2\r\ncontent-length: 0\r\n\r\n",
    ))
    .unwrap();
    assert_eq!(reply.status.as_u16(), 418);
    assert_eq!(reply.content_type(), Some(b"text/plain".as_slice()));
    let headers = reply.headers();
    let guids: Vec<_> = headers.get_all("guid").iter().collect();
    assert_eq!(guids, ["1", "2"]);
}

const KEPT: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

#[test]
fn a_connection_serves_many_requests() {
    run(async {
        let stand = stand(vec![vec![KEPT, KEPT, KEPT]]).await;
        let client = Client::new(ClientSettings::default());
        for _ in 0..3 {
            let reply = client.send(&stand.endpoint, call("{}")).await.unwrap();
            assert_eq!(reply.body, "ok");
        }
        let counters = client.counters();
        assert_eq!(
            (counters.connects, counters.reused, counters.in_flight),
            (1, 2, 0)
        );
    });
}

#[test]
fn connections_that_cannot_be_reused_are_not() {
    for answer in [
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok and more",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    ] {
        run(async {
            let stand = stand(vec![vec![answer], vec![KEPT]]).await;
            let client = Client::new(ClientSettings::default());
            for _ in 0..2 {
                let reply = client.send(&stand.endpoint, call("{}")).await.unwrap();
                assert_eq!(reply.body, "ok", "{answer}");
            }
            assert_eq!(client.counters().reused, 0, "{answer}");
        });
    }
}

/// The server would answer a second request on its first connection. So only the client's reading of the
/// headers prevents such a request.
#[test]
fn a_connection_is_kept_only_if_no_line_says_close() {
    for (lines, reused) in [
        ("connection: close\r\nconnection: keep-alive\r\n", 0),
        ("connection: x-hop, Close\r\nconnection: x-other\r\n", 0),
        ("connection: keep-alive\r\nconnection: close\r\n", 0),
        ("connection: x-hop\r\nconnection: keep-alive\r\n", 1),
    ] {
        let answer = format!("HTTP/1.1 200 OK\r\n{lines}content-length: 2\r\n\r\nok");
        // Scripts of other tests are constants.
        let answer: &'static str = answer.leak();
        run(async {
            let stand = stand(vec![vec![answer, KEPT], vec![KEPT]]).await;
            let client = Client::new(ClientSettings::default());
            for _ in 0..2 {
                client.send(&stand.endpoint, call("{}")).await.unwrap();
            }
            assert_eq!(client.counters().reused, reused, "{lines}");
        });
    }
}

/// The server closes a kept connection. The client may notice this before or after its write. In both cases
/// the query receives a response.
#[test]
fn a_query_survives_a_connection_closed_while_idle() {
    run(async {
        let stand = stand(vec![vec![KEPT], vec![KEPT]]).await;
        let client = Client::new(ClientSettings::default());
        client.send(&stand.endpoint, call("{}")).await.unwrap();
        client.send(&stand.endpoint, call("{}")).await.unwrap();
        assert_eq!(stand.seen.borrow().len(), 2);
    });
}

/// The server reads the second request and closes the connection without a response.
const READ_AND_CLOSED: &str = "";

#[test]
fn a_call_may_allow_less_than_its_client_and_not_more() {
    const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n0123456789";
    for (of_client, of_call, limit) in [
        (10, Some(9), Some(9)),
        (9, Some(10), Some(9)),
        (9, None, Some(9)),
        (10, Some(10), None),
    ] {
        run(async {
            let stand = stand(vec![vec![ANSWER]]).await;
            let client = Client::new(ClientSettings {
                reply_bytes_max: of_client,
                ..ClientSettings::default()
            });
            let call = Call {
                reply_bytes_max: of_call,
                ..call("{}")
            };
            let refused = match client.send(&stand.endpoint, call).await {
                Ok(_) => None,
                Err(SendError::TooLarge { limit_bytes }) => Some(limit_bytes),
                Err(error) => panic!("{error}"),
            };
            assert_eq!(refused, limit, "{of_client} and {of_call:?}");
        });
    }
}

#[test]
fn only_what_is_idempotent_is_sent_twice() {
    for (is_idempotent, requests) in [(true, 3), (false, 2)] {
        run(async {
            let stand = stand(vec![vec![KEPT, READ_AND_CLOSED], vec![KEPT]]).await;
            let client = Client::new(ClientSettings::default());
            client.send(&stand.endpoint, call("{}")).await.unwrap();
            let second = Call {
                is_idempotent,
                ..call("{}")
            };
            let answer = client.send(&stand.endpoint, second).await;
            assert_eq!(answer.is_ok(), is_idempotent);
            assert_eq!(stand.seen.borrow().len(), requests);
        });
    }
}

#[test]
fn a_new_connection_is_never_tried_again() {
    run(async {
        let stand = stand(vec![vec![READ_AND_CLOSED], vec![KEPT]]).await;
        let client = Client::new(ClientSettings::default());
        let error = client.send(&stand.endpoint, call("{}")).await.unwrap_err();
        assert!(matches!(error, SendError::Closed { .. }), "{error}");
        assert_eq!(stand.seen.borrow().len(), 1);
    });
}

#[test]
fn time_covers_connecting_and_the_whole_answer() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let endpoint = UpstreamEndpoint::parse(&url, Policy::default()).unwrap();
        let client = Client::new(ClientSettings::default());
        let limit = Duration::from_millis(20);
        let slow = Call {
            timeout: Some(limit),
            ..call("{}")
        };
        let error = client.send(&endpoint, slow).await.unwrap_err();
        assert!(error.is_timeout(), "{error}");
        assert_eq!(client.counters().in_flight, 0);
    });
}

#[test]
fn nobody_there_is_an_error_that_names_the_place() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let client = Client::new(ClientSettings::default());
        for (url, name) in [
            (format!("http://{address}/"), address.to_string()),
            (
                "unix:///nowhere/a.sock".to_owned(),
                "/nowhere/a.sock".to_owned(),
            ),
        ] {
            let endpoint = UpstreamEndpoint::parse(&url, Policy::default()).unwrap();
            let error = client.send(&endpoint, call("{}")).await.unwrap_err();
            assert!(matches!(error, SendError::Unreachable { .. }));
            assert!(error.to_string().contains(&name), "{error}");
        }
    });
}

#[test]
fn idle_connections_end_when_their_time_is_over() {
    run(async {
        let stand = stand(vec![vec![KEPT, KEPT], vec![KEPT]]).await;
        let policy = Policy {
            pool_idle_timeout: Some(Duration::ZERO),
            ..Policy::default()
        };
        let endpoint = UpstreamEndpoint::parse(stand.endpoint.as_str(), policy).unwrap();
        let client = Client::new(ClientSettings::default());
        client.send(&endpoint, call("{}")).await.unwrap();
        assert_eq!(client.counters().idle, 1);
        client.sweep();
        assert_eq!(client.counters().idle, 0);
        client.send(&endpoint, call("{}")).await.unwrap();
        assert_eq!(client.counters().connects, 2);
    });
}

#[test]
fn long_bodies_arrive_whole_in_both_directions() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let endpoint = UpstreamEndpoint::parse(&url, Policy::default()).unwrap();
        tokio::task::spawn_local(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let request = read_request(&mut stream).await;
            let body = request.split_once("\r\n\r\n").unwrap().1;
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(body.as_bytes()).await.unwrap();
        });
        let body: Bytes = "0123456789".repeat(30_000).into();
        let call = Call {
            body: body.clone(),
            ..call("")
        };
        let reply = Client::new(ClientSettings::default())
            .send(&endpoint, call)
            .await
            .unwrap();
        assert_eq!(reply.body, body);
    });
}
