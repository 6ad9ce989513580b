//! The proofs through the gateway find coprocessors that do not do their work.
//!
//! A coprocessor of a few lines keeps the contract in all points that the gateway can see. Each test breaks
//! one line of it, in a way that was found in a real coprocessor.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "all of it is test, also what is no test function"
)]

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use conform::{Address, PROOFS};
use serde_json::{Value, json};

type Work = fn(&str, Value) -> Value;

/// Positions of the proofs in `PROOFS`.
const HEADER: usize = 0;
const IDS: usize = 1;
const CLIENT: usize = 2;
const FALSE_TOKENS: usize = 3;

#[test]
fn a_coprocessor_that_does_its_work_passes() {
    assert!(failed(works).is_empty());
}

#[test]
fn work_at_the_wrong_stage_is_found() {
    let at_another_stage: Work = |path, mut message| {
        // The coprocessor waits for the subgraph's response, but the gateway sends it only the request.
        if path == "/static-subgraph" {
            message["stage"] = json!("SubgraphResponse");
        }
        works(path, message)
    };
    assert_eq!(failed(at_another_stage), [HEADER]);
}

#[test]
fn a_dropped_header_is_found() {
    let without: Work = |path, message| {
        let mut answer = works(path, message);
        if let Some(headers) = answer["headers"].as_object_mut() {
            headers.remove("source");
            headers.remove("apollographql-client-version");
        }
        answer
    };
    assert_eq!(failed(without), [HEADER, CLIENT]);
}

#[test]
fn an_answer_without_the_message_is_found() {
    // The output of a class without a field `headers`.
    let forgetful: Work = |path, message| {
        let mut answer = works(path, message);
        if path != "/create-jwt" {
            answer.as_object_mut().unwrap().remove("headers");
        }
        answer
    };
    assert_eq!(failed(forgetful), [HEADER, IDS, CLIENT]);
}

#[test]
fn ids_that_come_again_are_found() {
    let same: Work = |path, message| {
        let mut answer = works(path, message);
        if path == "/guid-response" {
            answer["headers"]["GUID"] = json!(vec![id(1); 10]);
        }
        answer
    };
    assert_eq!(failed(same), [IDS]);
}

#[test]
fn a_false_token_that_is_believed_is_found() {
    let trusting: Work = |path, message| {
        let mut answer = works(path, message);
        if path == "/client-awareness" {
            answer["control"] = json!("continue");
        }
        answer
    };
    assert_eq!(failed(trusting), [FALSE_TOKENS]);
}

#[test]
fn a_coprocessor_that_is_not_there_is_found() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Port(listener.local_addr().unwrap().port());
    drop(listener);
    assert!(PROOFS.iter().all(|(_, proof)| proof(&address).is_err()));
}

/// The proofs that a coprocessor fails.
fn failed(work: Work) -> Vec<usize> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Port(listener.local_addr().unwrap().port());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(&stream, work));
        }
    });
    let is_failed = |place: &usize| {
        let (name, proof) = PROOFS[*place];
        let outcome = proof(&address);
        if let Err(error) = &outcome {
            println!("{name}: {error:#}");
        }
        outcome.is_err()
    };
    (0..PROOFS.len()).filter(is_failed).collect()
}

/// Processes messages on one connection until the gateway hangs up.
fn serve(mut stream: &TcpStream, work: Work) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut path, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if path.is_empty() {
                line.split(' ').nth(1)?.clone_into(&mut path);
            }
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let answer = work(&path, serde_json::from_slice(&body).ok()?).to_string();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ";
        write!(stream, "{head}{}\r\n\r\n{answer}", answer.len()).ok()?;
    }
}

/// A coprocessor that satisfies the contract. The signature of its tokens uses no secret key.
fn works(path: &str, mut message: Value) -> Value {
    match (path, message["stage"].as_str()) {
        ("/static-subgraph", Some("SubgraphRequest")) => {
            message["headers"]["source"] = json!(["coprocessor"]);
        }
        ("/guid-response", Some("RouterResponse")) => {
            let ids: Vec<String> = (0..10).map(|_| id(fresh())).collect();
            message["headers"]["GUID"] = json!(ids);
        }
        ("/client-awareness", Some("RouterRequest")) => match client(&message) {
            Some((name, version)) => {
                message["headers"]["apollographql-client-name"] = json!([name]);
                message["headers"]["apollographql-client-version"] = json!([version]);
            }
            None => message["control"] = json!({"break": 401}),
        },
        ("/create-jwt", _) => {
            let (name, version) = (&message["clientName"], &message["clientVersion"]);
            let claims = format!("{}/{}", name.as_str().unwrap(), version.as_str().unwrap());
            let claims = claims.replace('.', "_");
            message = json!({"token": format!("head.{claims}.{}", signature(&claims))});
        }
        _ => {}
    }
    message
}

fn client(message: &Value) -> Option<(String, String)> {
    let value = message["headers"]["authentication"][0].as_str()?;
    let mut parts = value.strip_prefix("Bearer ")?.split('.').skip(1);
    let (claims, signed) = (parts.next()?, parts.next()?);
    let (name, version) = claims.split_once('/')?;
    let is_true = signed == signature(claims);
    is_true.then(|| (name.to_owned(), version.replace('_', ".")))
}

fn signature(claims: &str) -> String {
    let mut hasher = DefaultHasher::new();
    claims.hash(&mut hasher);
    hasher.finish().to_string()
}

fn fresh() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn id(number: u64) -> String {
    format!("00000000-0000-4000-8000-{number:012x}")
}
