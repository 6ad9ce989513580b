//! A small HTTP server that behaves, or misbehaves, as its flags require.
//!
//! It stands in for a variant in the end-to-end tests. It may be honest, respond with GraphQL errors, send
//! another body, or exit.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use rustix::time::ClockId;

/// Server that behaves, or misbehaves, as its flags require.
#[derive(Debug, Parser)]
struct Args {
    /// Address and port to listen on.
    #[arg(long)]
    listen: SocketAddr,
    /// Response to every request.
    #[arg(long, value_enum, default_value = "ok")]
    answer: Answer,
    /// Number of honest responses before the chosen response.
    #[arg(long, default_value_t = 0)]
    honest_first: u64,
    /// Delay of every response, in microseconds.
    #[arg(long, default_value_t = 0)]
    delay_us: u64,
    /// Additional delay of each response over the response before it, in microseconds.
    #[arg(long, default_value_t = 0)]
    slower_by_us: u64,
    /// CPU time that each response uses, in microseconds.
    #[arg(long, default_value_t = 0)]
    burn_us: u64,
    /// Text that appears in the command lines of this process and its daemon.
    #[arg(long, default_value = "")]
    tag: String,
    /// Leave a daemon behind, with its own session and without a parent.
    #[arg(long)]
    leave_daemon: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Answer {
    /// Response of the baseline.
    Ok,
    /// GraphQL errors with status 200.
    Errors,
    /// Different body with status 200.
    Other,
    /// Status 503 with another body.
    Unavailable,
    /// Honest response to an operation text, or to a hash that a request contained with a text
    /// before. Other hashes receive errors. A list receives a list of honest responses.
    Operations,
    /// Behavior of `operations`, except that responses to lists lack the last element.
    ShortLists,
    /// No response: the process exits with code 7 before it listens.
    Exit,
    /// No response: the process exits with code 9 at the request.
    Crash,
}

const HONEST: &str = r#"{"data":{"test":{"id":"1"}}}"#;

fn main() -> ExitCode {
    let args = Args::parse();
    if args.answer == Answer::Exit {
        complain("no license key was found");
        return ExitCode::from(7);
    }
    if args.leave_daemon {
        leave_daemon(&args.tag);
    }
    let listener = TcpListener::bind(args.listen).expect("the test gave a free address");
    let args = Arc::new(args);
    let state = Arc::new(State::default());
    for stream in listener.incoming().flatten() {
        let (args, state) = (Arc::clone(&args), Arc::clone(&state));
        thread::spawn(move || serve(&stream, &args, &state));
    }
    ExitCode::SUCCESS
}

/// State of the server, shared by all connections.
#[derive(Default)]
struct State {
    served: AtomicU64,
    is_registered: AtomicBool,
}

/// Responds to requests on one connection until the client closes it.
fn serve(stream: &TcpStream, args: &Args, state: &State) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut reader = BufReader::new(stream);
    loop {
        let (path, asked) = read_request(&mut reader)?;
        let (status, body) = if path.starts_with("/health") {
            ("200 OK", "ok".to_owned())
        } else {
            let before = state.served.fetch_add(1, Ordering::Relaxed);
            let is_honest = before < args.honest_first;
            pause(args.delay_us + args.slower_by_us * before);
            burn(Duration::from_micros(args.burn_us));
            reply(
                if is_honest { Answer::Ok } else { args.answer },
                &asked,
                state,
            )
        };
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        (&*stream).write_all((head + &body).as_bytes()).ok()?;
    }
}

fn reply(answer: Answer, asked: &str, state: &State) -> (&'static str, String) {
    let (status, body) = match answer {
        Answer::Operations | Answer::ShortLists if asked.starts_with('[') => {
            let lost = usize::from(answer == Answer::ShortLists);
            let answers = asked.matches("\"query\"").count() - lost;
            return ("200 OK", format!("[{}]", vec![HONEST; answers].join(", ")));
        }
        Answer::Operations | Answer::ShortLists => {
            let is_text = asked.contains("\"query\"");
            if is_text && asked.contains("\"hash\"") {
                state.is_registered.store(true, Ordering::Relaxed);
            }
            if is_text || state.is_registered.load(Ordering::Relaxed) {
                ("200 OK", HONEST)
            } else {
                (
                    "200 OK",
                    r#"{"errors":[{"message":"this hash is unknown"}]}"#,
                )
            }
        }
        Answer::Ok => ("200 OK", HONEST),
        Answer::Errors => (
            "200 OK",
            r#"{"data":null,"errors":[{"message":"the database is away"}]}"#,
        ),
        Answer::Other => ("200 OK", r#"{"data":{"test":{"id":"2"}}}"#),
        Answer::Unavailable => ("503 Service Unavailable", "try later"),
        Answer::Exit | Answer::Crash => {
            complain("this process gives up");
            std::process::exit(9)
        }
    };
    (status, body.to_owned())
}

/// Reads one request and returns its path and body.
fn read_request(reader: &mut BufReader<&TcpStream>) -> Option<(String, String)> {
    let mut line = String::new();
    if reader.read_line(&mut line).ok()? == 0 {
        return None;
    }
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let header = line.trim_end().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body).ok()?;
    Some((path, String::from_utf8_lossy(&body).into_owned()))
}

/// Starts a daemon by `setsid` twice, the classic way for a server to escape its starter. The daemon carries
/// the tag in its command line, so that a test can find it.
fn leave_daemon(tag: &str) {
    Command::new("setsid")
        .args(["--fork", "sh", "-c", "while :; do sleep 1; done", tag])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("setsid is part of util-linux");
}

#[expect(
    clippy::disallowed_methods,
    reason = "the delay is what is planted here"
)]
fn pause(delay_us: u64) {
    if delay_us > 0 {
        thread::sleep(Duration::from_micros(delay_us));
    }
}

/// Works until this thread has used this amount of processor time, however long that takes.
fn burn(amount: Duration) {
    let used = || {
        let time = rustix::time::clock_gettime(ClockId::ThreadCPUTime);
        Duration::try_from(time).unwrap_or_default()
    };
    let end = used() + amount;
    while !amount.is_zero() && used() < end {
        // The loop spends most time here and little in the clock, so that a sampler finds this function.
        let mut turns = 0;
        while turns < 2000 {
            turns += 1;
        }
    }
}

#[expect(
    clippy::print_stderr,
    reason = "its last words are what the test looks for"
)]
fn complain(words: &str) {
    eprintln!("{words}");
}
