//! A small HTTP server with a memory. It identifies its users by token, counts its requests, and passes
//! requests on to another server of its kind.
//!
//! It stands in for systems that must prove their work, and for services with several steps.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use clap::Parser;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};
use tokio_tungstenite::tungstenite::{Message, WebSocket};

/// Server that counts its requests and can call another server.
#[derive(Debug, Parser)]
struct Args {
    /// Address and port to listen on.
    #[arg(long)]
    listen: SocketAddr,
    /// Server to call once for every request.
    #[arg(long)]
    origin: Option<SocketAddr>,
    /// Value of the header `source` in requests to the origin.
    #[arg(long, default_value = "stranger")]
    source: String,
    /// Number of requests after which this server no longer calls the origin.
    #[arg(long)]
    lazy_after: Option<u64>,
    /// Number of `GUID` headers to send.
    #[arg(long, default_value_t = 0)]
    guids: u64,
    /// Number of `GUID` headers to send, all with the same value.
    #[arg(long, default_value_t = 0, conflicts_with = "guids")]
    same_guids: u64,
    /// Accept requests without a check of their tokens.
    #[arg(long)]
    trusting: bool,
    /// Name in the response of `/who`.
    #[arg(long, default_value = "stranger")]
    name: String,
    /// Exit, as after a crash, at this request if the server has this name: NAME:NUMBER, such as
    /// `shop-3:30`.
    #[arg(long)]
    dies: Option<String>,
    /// Serve one request after the other, and take this number of milliseconds for each.
    #[arg(long, default_value_t = 0)]
    busy_ms: u64,
    /// Text that makes the command line of this process unique.
    #[arg(long, default_value = "")]
    tag: String,
}

/// Requests since the start.
#[derive(Debug, Default)]
struct Seen {
    requests: u64,
    by_source: BTreeMap<String, u64>,
    by_path: BTreeMap<String, u64>,
}

struct Request {
    method: String,
    path: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

struct Reply {
    status: &'static str,
    headers: String,
    body: String,
}

fn main() {
    let args = Arc::new(Args::parse());
    let seen = Arc::new(Mutex::new(Seen::default()));
    let listener = TcpListener::bind(args.listen).expect("the test gave a free address");
    for stream in listener.incoming().flatten() {
        let (args, seen) = (Arc::clone(&args), Arc::clone(&seen));
        thread::spawn(move || serve(&stream, &args, &seen));
    }
}

/// Responds to requests on one connection until the client closes it.
fn serve(stream: &TcpStream, args: &Args, seen: &Mutex<Seen>) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut reader = BufReader::new(stream);
    loop {
        let request = read(&mut reader)?;
        if request.path.starts_with("/notices") && request.headers.contains_key("x-token") {
            count(seen, &request);
            return notices(stream, &request);
        }
        let reply = match request.path.as_str() {
            "/health" => ok("ok".to_owned()),
            "/seen" => ok(told(seen)),
            "/first" => {
                count(seen, &request);
                let times = seen.lock().expect("no thread panics").by_path["/first"];
                ok(json!({"is_first": times == 1}).to_string())
            }
            "/metrics" => ok(format!(
                "# HELP shop_requests_total requests\nshop_requests_total{{kind=\"any\"}} {}\n",
                seen.lock().expect("no thread panics").requests
            )),
            _ => {
                let number = count(seen, &request);
                die(args, number);
                pass_on(args, number);
                be_busy(args, seen);
                answer(args, &request, number)
            }
        };
        let head = format!(
            "HTTP/1.1 {}\r\n{}content-length: {}\r\n\r\n",
            reply.status,
            reply.headers,
            reply.body.len()
        );
        (&*stream).write_all((head + &reply.body).as_bytes()).ok()?;
    }
}

/// Upgrades a connection to WebSocket. Answers every text with the user's token, and publishes two notices to a
/// GraphQL subscription with that token.
fn notices(stream: &TcpStream, request: &Request) -> Option<()> {
    let key = request.headers.get("sec-websocket-key")?;
    let offered = request.headers.get("sec-websocket-protocol");
    let protocol = offered.and_then(|words| words.split(',').next());
    let protocol = protocol.map(|word| format!("sec-websocket-protocol: {word}\r\n"));
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-accept: {}\r\n{}\r\n",
        derive_accept_key(key.as_bytes()),
        protocol.unwrap_or_default()
    );
    let mut writer = stream;
    writer.write_all(head.as_bytes()).ok()?;
    let token = request.headers.get("x-token")?;
    let mut socket = WebSocket::from_raw_socket(stream, Role::Server, None);
    loop {
        let text = match socket.read().ok()? {
            Message::Text(text) => text.to_string(),
            Message::Binary(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            _ => continue,
        };
        let said: Value = serde_json::from_str(&text).unwrap_or_default();
        let notice = json!({"data": {"notice": {"token": token}}});
        let answers = match said["type"].as_str() {
            Some("connection_init") if said["payload"]["token"] == **token => {
                vec![json!({"type": "connection_ack"})]
            }
            Some("connection_init") => {
                let refused = CloseFrame {
                    code: 4403.into(),
                    reason: "Forbidden".into(),
                };
                socket.close(Some(refused)).ok()?;
                continue;
            }
            Some("subscribe") => {
                let next = json!({"type": "next", "id": said["id"], "payload": notice});
                let end = json!({"type": "complete", "id": said["id"]});
                vec![next.clone(), next, end]
            }
            Some(_) => Vec::new(),
            None => vec![json!({"token": token, "said": text})],
        };
        for answer in answers {
            socket.send(Message::text(answer.to_string())).ok()?;
        }
    }
}

fn ok(body: String) -> Reply {
    Reply {
        status: "200 OK",
        headers: "content-type: application/json\r\n".to_owned(),
        body,
    }
}

fn told(seen: &Mutex<Seen>) -> String {
    let seen = seen.lock().expect("no thread panics");
    json!({"requests": seen.requests, "by_source": seen.by_source, "by_path": seen.by_path})
        .to_string()
}

fn count(seen: &Mutex<Seen>, request: &Request) -> u64 {
    let mut seen = seen.lock().expect("no thread panics");
    seen.requests += 1;
    if let Some(source) = request.headers.get("source") {
        *seen.by_source.entry(source.clone()).or_default() += 1;
    }
    *seen.by_path.entry(request.path.clone()).or_default() += 1;
    seen.requests
}

/// Ends the process, if this is the configured request.
#[expect(
    clippy::print_stderr,
    reason = "the last words of a server are on its standard error"
)]
fn die(args: &Args, number: u64) {
    let end = args.dies.as_deref().and_then(|end| end.split_once(':'));
    if end.is_some_and(|(name, at)| name == args.name && at.parse() == Ok(number)) {
        eprintln!("out of cheese");
        std::process::exit(9);
    }
}

/// Blocks all other requests for the service time, so that it limits the rate of requests.
#[expect(clippy::disallowed_methods, reason = "a service time, not a wait")]
fn be_busy(args: &Args, seen: &Mutex<Seen>) {
    if args.busy_ms > 0 {
        let _one_at_a_time = seen.lock().expect("no thread panics");
        thread::sleep(Duration::from_millis(args.busy_ms));
    }
}

/// Sends one request to the origin, if there is an origin and this server is not lazy.
fn pass_on(args: &Args, number: u64) {
    let is_lazy = args.lazy_after.is_some_and(|after| number > after);
    let Some(origin) = args.origin.filter(|_| !is_lazy) else {
        return;
    };
    let mut stream = TcpStream::connect(origin).expect("the origin runs");
    let head = format!(
        "GET /passed-on HTTP/1.1\r\nhost: origin\r\nsource: {}\r\nconnection: close\r\n\r\n",
        args.source
    );
    stream.write_all(head.as_bytes()).expect("the origin reads");
    // When the origin responds, it has counted the request.
    let mut byte = [0];
    stream.read_exact(&mut byte).expect("the origin answers");
}

fn answer(args: &Args, request: &Request, number: u64) -> Reply {
    let token = request.headers.get("x-token").map(String::as_str);
    let reply = match (request.method.as_str(), request.path.as_str()) {
        ("POST", "/login") => log_in(&request.body),
        (_, path) if path.starts_with("/mine") => match token {
            Some(token) => ok(json!({"token": token, "path": path}).to_string()),
            None => refused(),
        },
        // Values of each kind, and a text that would break JSON without escapes.
        (_, "/values") => ok(json!({"id": 7, "text": "a\"b\\c", "list": [true]}).to_string()),
        (_, "/echo") => ok(String::from_utf8_lossy(&request.body).into_owned()),
        (_, "/row") => row(&request.body),
        (_, "/who") => ok(json!({"name": args.name}).to_string()),
        _ if token == Some("tampered") && !args.trusting => refused(),
        (_, path) => {
            let items = path.split_once("n=").and_then(|(_, n)| n.parse().ok());
            ok(json!({"items": vec!["x"; items.unwrap_or(1)]}).to_string())
        }
    };
    let guids = (0..args.guids).map(|at| format!("guid: {number}-{at}\r\n"));
    let same = (0..args.same_guids).map(|_| "guid: same\r\n".to_owned());
    let guids: String = guids.chain(same).collect();
    Reply {
        headers: reply.headers + &guids,
        ..reply
    }
}

/// Accepts a row if its sum is the FNV-1a sum of its text.
fn row(body: &[u8]) -> Reply {
    let row: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = row["text"].as_str().unwrap_or_default();
    let sum = text.bytes().fold(0x811c_9dc5_u32, |sum, byte| {
        (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    match row["sum"] == json!(format!("x{sum:08x}")) {
        true => ok(json!({"row": row}).to_string()),
        false => Reply {
            status: "422 Unprocessable Content",
            ..ok(json!({"errors": [{"message": "the sum is of another text"}]}).to_string())
        },
    }
}

fn log_in(body: &[u8]) -> Reply {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let Some(user) = body["user"].as_str().filter(|user| *user != "stranger") else {
        return ok(json!({"token": null}).to_string());
    };
    Reply {
        status: "201 Created",
        headers: format!("location: /mine/{user}\r\n"),
        body: json!({"token": format!("t-{user}")}).to_string(),
    }
}

fn refused() -> Reply {
    Reply {
        status: "401 Unauthorized",
        headers: String::new(),
        body: r#"{"errors":[{"message":"who are you?"}]}"#.to_owned(),
    }
}

fn read(reader: &mut BufReader<&TcpStream>) -> Option<Request> {
    let mut line = String::new();
    if reader.read_line(&mut line).ok()? == 0 {
        return None;
    }
    let mut words = line.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let mut headers = BTreeMap::new();
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length: u64 = match headers.get("content-length") {
        Some(length) => length.parse().ok()?,
        None => 0,
    };
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body).ok()?;
    Some(Request {
        method,
        path,
        headers,
        body,
    })
}
