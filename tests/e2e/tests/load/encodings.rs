//! Encoded bodies, and requests with several correct statuses.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

use e2e::{Run, Server, weigh, weigh_command};
use serde_json::Value;
use tempfile::TempDir;

/// The body of a null server, and a different body.
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
        // Different bytes each time, like gzip with the time in its header.
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

/// Response of a server to the head of a request, given the number of earlier requests of the connection.
type Answering = fn(&str, u64) -> Vec<u8>;

/// Starts a server on a free port. Returns the port.
fn serving(answering: Answering) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it listens").port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(&stream, answering));
        }
    });
    port
}

fn answer(stream: &TcpStream, answering: Answering) {
    let mut reader = BufReader::new(stream);
    for before in 0.. {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            match reader.read_line(&mut head) {
                Ok(1..) => {}
                _ => return,
            }
        }
        let answer = answering(&head.to_ascii_lowercase(), before);
        if (&*stream).write_all(&answer).is_err() {
            return;
        }
    }
}

/// Responds to every second request with 429, regardless of the request.
fn limiting() -> u16 {
    serving(|_, before| match before % 2 {
        0 => b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok".to_vec(),
        _ => b"HTTP/1.1 429 Too Many Requests\r\ncontent-length: 4\r\n\r\nslow".to_vec(),
    })
}

/// Compresses its body if the request accepts gzip.
fn compressing() -> u16 {
    // Created by Python: gzip.compress(b'{"data":{"name":"' + b'x' * 600 + b'"}}', mtime=0)
    const GZIP: [u8; 46] = [
        31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 171, 86, 74, 73, 44, 73, 84, 178, 170, 86, 202, 75, 204,
        77, 85, 178, 82, 170, 24, 5, 163, 128, 6, 64, 169, 182, 22, 0, 133, 242, 58, 198, 108, 2,
        0, 0,
    ];
    serving(|head, _| {
        let plain = format!("{{\"data\":{{\"name\":\"{}\"}}}}", "x".repeat(600));
        let (coding, body) = match head.contains("gzip") {
            true => ("content-encoding: gzip\r\n", GZIP.to_vec()),
            false => ("", plain.into_bytes()),
        };
        let length = body.len();
        let head = format!("HTTP/1.1 200 OK\r\n{coding}content-length: {length}\r\n\r\n");
        [head.into_bytes(), body].concat()
    })
}

/// Compares two addresses for a second, with these headers.
fn ab(urls: [String; 2], flags: &[&str]) -> Run {
    let folder = TempDir::new().expect("a folder");
    let run = weigh_command()
        .arg("ab")
        .args(urls)
        .args(["-r", "100", "-z", "900ms", "--rounds", "6", "--out"])
        .arg(folder.path())
        .args(flags)
        .output();
    Run::of(run.expect("weigh starts"))
}

#[test]
fn a_compressing_service_is_compared_with_a_plain_one_by_what_bodies_say() {
    let [plain, compressed] = [encoding(&[]), encoding(&["--encoding", "gzip"])];
    let urls = [&plain, &compressed].map(|it| format!("http://{}/", it.address()));
    let run = ab(urls, &["--full"]).ran();
    run.shows("Bodies of responses");
    run.shows("gzip");
    run.shows("plain");
    // A similar body of another length is different work, regardless of its encoding.
    let longer = encoding(&["--encoding", "gzip", "--body", "100"]);
    let urls = [&plain, &longer].map(|it| format!("http://{}/", it.address()));
    ab(urls, &[]).exits_with(3);
}

#[test]
fn a_service_that_compresses_when_asked_is_said_to_do_so() {
    let url = format!("http://127.0.0.1:{}/", compressing());
    let run = ab([url.clone(), url.clone()], &[]).ran();
    run.shows(
        "can compress its responses. To measure that, add `headers: {Accept-Encoding: gzip}`",
    );
    let asked = ab([url.clone(), url], &["-H", "Accept-Encoding: gzip"]).ran();
    let shown = asked.answer();
    assert!(!shown.contains("can compress its responses"), "{shown}");
    assert!(shown.contains("gzip"), "{shown}");
}

/// Compresses one body of four, like a cache that is being filled.
fn compressing_at_times() -> u16 {
    serving(|_, before| {
        let coding = match before % 4 {
            0 => "content-encoding: GZIP\r\n",
            _ => "",
        };
        format!("HTTP/1.1 200 OK\r\n{coding}content-length: 2\r\n\r\nok").into_bytes()
    })
}

#[test]
fn a_load_shows_the_encodings_of_its_responses() {
    let shown = |port: u16, flags: &[&str]| {
        let run = weigh_command()
            .args([
                "load",
                &format!("http://127.0.0.1:{port}/"),
                "-c",
                "1",
                "-n",
                "100",
            ])
            .args(flags)
            .output();
        Run::of(run.expect("weigh starts")).ran()
    };
    shown(compressing(), &[]).shows("620 bytes a response, plain");
    shown(compressing(), &["-H", "Accept-Encoding: gzip"]).shows("46 bytes a response, gzip");
    let port = compressing_at_times();
    shown(port, &[]).shows("2 bytes a response, plain 75 %; gzip 25 %");
    let counts = &row(&shown(port, &["--format", "json"]))["bodies"]["responses_by_encoding"];
    assert_eq!(counts["gzip"], 25, "{counts}");
    assert_eq!(counts["identity"], 75, "{counts}");
}

#[test]
fn a_redirect_shows_where_it_leads() {
    let port = serving(|_, _| {
        b"HTTP/1.1 301 Moved Permanently\r\nlocation: /there\r\ncontent-length: 0\r\n\r\n".to_vec()
    });
    let url = format!("http://127.0.0.1:{port}/here");
    let load = weigh_command()
        .args(["load", "-c", "1", "-n", "10", &url])
        .output();
    let run = Run::of(load.expect("weigh starts")).exits_with(3);
    run.shows("found 301 with `Location: /there`");
    let run = ab([url.clone(), url], &[]).exits_with(3);
    run.shows("found 301 with `Location: /there`");
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
