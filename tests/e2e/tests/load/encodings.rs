//! Encoded bodies, and answers of which several statuses are right.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

use e2e::{Run, Server, weigh, weigh_command};
use serde_json::Value;
use tempfile::TempDir;

/// The body of a null server, and one that differs from it.
const BODY: &str = "{\"data\":{\"fill\":\"\"}}";
const OTHER: &str = "{\"data\":{\"fill\":\"x\"}}";

/// A null server that encodes its bodies.
fn encoding(flags: &[&str]) -> Server {
    let flags: Vec<&str> = ["null-server"].iter().chain(flags).copied().collect();
    Server::of(&weigh(), &flags)
}

/// Loads a server with 200 requests that must have this body.
fn load(server: &Server, body: &str) -> Run {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("body.json");
    std::fs::write(&file, body).expect("it can be written");
    let run = weigh_command()
        .arg("load")
        .arg(format!("http://{}/", server.address()))
        .args(["-c", "2", "-n", "200", "--format", "json", "--expect-body"])
        .arg(&file)
        .output();
    Run::of(run.expect("weigh starts"))
}

fn row(run: &Run) -> Value {
    let result: Value = serde_json::from_str(&run.answer()).expect("JSON");
    result["summary"]["variants"][0].clone()
}

#[test]
fn a_body_is_compared_as_it_reads_whatever_its_encoding() {
    for flags in [
        &["--encoding", "gzip"][..],
        &["--encoding", "deflate"],
        &["--encoding", "br"],
        &["--encoding", "zstd"],
        &["--encoding", "gzip,br"],
        // Other bytes each time, as gzip with the time in its header.
        &["--encoding", "gzip", "--encoding-varies"],
    ] {
        let server = encoding(flags);
        let right = load(&server, BODY).ran();
        let outcomes = row(&right)["outcomes"].clone();
        assert_eq!(outcomes["passed"], 200, "{flags:?}: {outcomes}");
        let wrong = load(&server, OTHER).exits_with(3);
        let outcomes = row(&wrong)["outcomes"].clone();
        assert_eq!(outcomes["passed"], 0, "{flags:?}: {outcomes}");
        assert_eq!(outcomes["mismatched"]["body"], 200, "{flags:?}: {outcomes}");
    }
}

/// Answers every second request with 429, whatever is asked.
fn limiting() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it listens").port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(&stream));
        }
    });
    port
}

fn answer(stream: &TcpStream) {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    let mut answered = 0;
    loop {
        line.clear();
        match reader.read_line(&mut line) {
            Ok(1..) if line == "\r\n" => {}
            Ok(1..) => continue,
            _ => return,
        }
        answered += 1;
        let answer = match answered % 2 {
            0 => "HTTP/1.1 429 Too Many Requests\r\ncontent-length: 4\r\n\r\nslow",
            _ => "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
        };
        if (&*stream).write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

#[test]
fn a_limiter_is_loaded_beyond_its_limit_with_both_of_its_statuses() {
    let port = limiting();
    let of = |expect: &str| {
        let run = weigh_command()
            .args(["load", &format!("http://127.0.0.1:{port}/")])
            .args([
                "-c", "1", "-n", "100", "--format", "json", "--expect", expect,
            ])
            .output();
        Run::of(run.expect("weigh starts"))
    };
    for expect in ["200,429", "2xx,429"] {
        let row = row(&of(expect).ran());
        assert_eq!(row["outcomes"]["passed"], 100, "{row:#}");
        assert_eq!(row["statuses"]["200"], 50);
        assert_eq!(row["statuses"]["429"], 50);
        for status in ["200", "429"] {
            let seen = &row["by_status"][status];
            assert_eq!(seen["responses"], 50, "{row:#}");
            assert!(seen["latency_us_p50"].as_f64().is_some_and(|us| us > 0.0));
        }
    }
    let row = row(&of("200").exits_with(3));
    assert_eq!(row["outcomes"]["mismatched"]["status"], 50, "{row:#}");
}
