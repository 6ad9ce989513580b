//! Every part of a URL is sent, or the URL is rejected before any request is sent.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use e2e::{Run, weigh_command};

/// Responds to every request, and returns the head of each through the channel.
fn listening() -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it listens").port();
    let (tell, told) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let tell = tell.clone();
            thread::spawn(move || {
                while let Some(head) = head(&stream) {
                    let _ = tell.send(head);
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
                    if (&stream).write_all(answer).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (port, told)
}

/// Reads the head of a request with a body of 0 or 3 bytes.
fn head(stream: &TcpStream) -> Option<String> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    if head.contains("Content-Length: 3") {
        let mut body = [0; 3];
        std::io::Read::read_exact(&mut reader, &mut body).ok()?;
        head += &String::from_utf8_lossy(&body);
    }
    Some(head)
}

fn load(url: &str, flags: &[&str]) -> Run {
    let mut command = weigh_command();
    command
        .args(["load", url, "-n", "1", "-c", "1"])
        .args(flags);
    Run::of(command.output().expect("weigh starts"))
}

fn seen(url: &str, flags: &[&str], told: &Receiver<String>) -> String {
    let run = load(url, flags);
    told.recv_timeout(e2e::PATIENCE)
        .unwrap_or_else(|error| panic!("{error}: {} {}", run.answer(), run.talk()))
}

#[test]
fn a_name_and_password_are_sent_as_a_header() {
    let (port, told) = listening();
    let head = seen(
        &format!("http://user:pa%20ss@127.0.0.1:{port}/x"),
        &[],
        &told,
    );
    assert!(
        head.contains(&format!("Host: 127.0.0.1:{port}\r\n")),
        "{head}"
    );
    assert!(
        head.contains("Authorization: Basic dXNlcjpwYSBzcw==\r\n"),
        "{head}"
    );
    let both = ["-H", "Authorization: Bearer t"];
    let run = load(&format!("http://user:pw@127.0.0.1:{port}/"), &both);
    run.exits_with(2).says("Remove one of them");
}

#[test]
fn credentials_of_a_target_and_a_header_of_the_command_line_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("targets");
    std::fs::write(&file, "GET http://user:pw@127.0.0.1:9/\n").expect("it is written");
    let mut command = weigh_command();
    command.arg("load").arg("--targets").arg(&file);
    command.args(["-n", "1", "-H", "Authorization: Bearer t"]);
    let run = Run::of(command.output().expect("weigh starts"));
    let refused = run.exits_with(2);
    refused.says("line 1");
    refused.says("Remove one of them");
}

#[test]
fn a_query_without_a_path_follows_a_slash() {
    let (port, told) = listening();
    let head = seen(&format!("http://127.0.0.1:{port}?x=1"), &[], &told);
    assert!(head.starts_with("GET /?x=1 HTTP/1.1\r\n"), "{head}");
}

#[test]
fn an_at_sign_before_a_body_is_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("body");
    std::fs::write(&file, "abc").expect("it is written");
    let (port, told) = listening();
    let body = format!("@{}", file.display());
    let head = seen(&format!("http://127.0.0.1:{port}/"), &["-d", &body], &told);
    assert!(head.ends_with("\r\n\r\nabc"), "{head}");
    let gone = load(
        &format!("http://127.0.0.1:{port}/"),
        &["-d", "@no-such-file"],
    );
    gone.exits_with(2).says("`no-such-file` cannot be read");
}

#[test]
fn what_cannot_be_sent_is_a_wrong_command_line() {
    for (url, flags, words) in [
        ("http://127.0.0.1:99999/x", &[][..], "found `99999`"),
        (
            "http://127.0.0.1:1/a?b<c",
            &[],
            "character 23, `<`, is not allowed",
        ),
        (
            "http://127.0.0.1:1/",
            &["-H", "Transfer-Encoding: chunked"],
            "Transfer-Encoding",
        ),
    ] {
        load(url, flags).exits_with(2).says(words);
    }
    let mut command = weigh_command();
    let urls = ["http://127.0.0.1:80800/", "http://127.0.0.1:1/"];
    command.arg("ab").args(urls);
    Run::of(command.output().expect("weigh starts"))
        .exits_with(2)
        .says("found `80800`");
}

#[test]
fn the_head_names_the_address_behind_a_name() {
    let (port, told) = listening();
    let run = load(&format!("http://localhost:{port}/"), &[]);
    assert!(told.recv_timeout(e2e::PATIENCE).is_ok());
    let text = run.answer();
    assert!(text.contains(&format!("to 127.0.0.1:{port}")), "{text}");
}
