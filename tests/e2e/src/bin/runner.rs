//! A coprocessor that does the work of the router labs, or fails in one way.
//!
//! It stands in for the languages of `services/coprocessors`, because they are all correct.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use clap::{Parser, ValueEnum};
use serde_json::{Value, json};

/// Coprocessor for tests, which can fail in one way.
#[derive(Debug, Parser)]
struct Args {
    /// Defect of the coprocessor.
    #[arg(value_enum)]
    manner: Manner,
    /// Port to listen on.
    #[arg(long, env = "PORT", default_value_t = 0)]
    port: u16,
    /// Unix socket to listen on, instead of the port.
    #[arg(long, env = "SOCKET")]
    socket: Option<PathBuf>,
    /// Only valid token.
    #[arg(long, env = "TOKEN", default_value = "")]
    token: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Manner {
    /// Do all of the work.
    Honest,
    /// Act at another stage than the requested stage.
    WrongStage,
    /// Return the message unchanged.
    HeaderDropped,
    /// Give all requests the same identifier.
    SameGuids,
    /// Accept every token.
    Trusting,
}

static IDENTIFIERS: AtomicU64 = AtomicU64::new(0);

fn main() {
    let args: &'static Args = Box::leak(Box::new(Args::parse()));
    match &args.socket {
        Some(path) => {
            let listener = UnixListener::bind(path).expect("the test gave a new path");
            for stream in listener.incoming().flatten() {
                thread::spawn(move || serve(BufReader::new(&stream), &stream, args));
            }
        }
        None => {
            let listener = TcpListener::bind(("127.0.0.1", args.port)).expect("a free port");
            for stream in listener.incoming().flatten() {
                let _ = stream.set_nodelay(true);
                thread::spawn(move || serve(BufReader::new(&stream), &stream, args));
            }
        }
    }
}

/// Responds to requests on one connection until the client closes it.
fn serve(mut from: impl BufRead, mut to: impl Write, args: &Args) -> Option<()> {
    loop {
        let (path, body) = read(&mut from)?;
        let answer = match serde_json::from_slice(&body) {
            Ok(message) => act(&path, message, args),
            Err(_) => json!({"status": "UP"}),
        };
        let answer = answer.to_string();
        let length = answer.len();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
        to.write_all(format!("{head}content-length: {length}\r\n\r\n{answer}").as_bytes())
            .ok()?;
    }
}

fn act(path: &str, mut message: Value, args: &Args) -> Value {
    let stage = match (path, args.manner) {
        (_, Manner::HeaderDropped) => return message,
        (_, Manner::WrongStage) => "SupergraphResponse",
        ("/static-subgraph", _) => "SubgraphRequest",
        ("/guid-response", _) => "RouterResponse",
        _ => "RouterRequest",
    };
    if message["stage"] != stage {
        return message;
    }
    match path {
        "/static-subgraph" => message["headers"]["source"] = json!(["coprocessor"]),
        "/guid-response" => {
            let fresh = |_| match args.manner {
                Manner::SameGuids => "the same".to_owned(),
                _ => IDENTIFIERS.fetch_add(1, Ordering::Relaxed).to_string(),
            };
            message["headers"]["GUID"] = (0..10).map(fresh).collect();
        }
        _ => {
            let token = message["headers"]["authentication"][0].as_str();
            let is_right = token == Some(&format!("Bearer {}", args.token));
            if is_right || args.manner == Manner::Trusting {
                message["headers"]["apollographql-client-name"] = json!(["coprocessor"]);
                message["headers"]["apollographql-client-version"] = json!(["loadtest"]);
            } else {
                message["control"] = json!({"break": 401});
            }
        }
    }
    message
}

/// The path and the body of a request.
fn read(from: &mut impl BufRead) -> Option<(String, Vec<u8>)> {
    let mut line = String::new();
    from.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        line.clear();
        from.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body).ok()?;
    Some((path, body))
}
