//! A server with TLS and HTTP/2 for labs. It issues tokens and counts its requests.
//!
//! `/login/USER` returns a token, and `/seen` returns the number of requests. Requests of `/health` and
//! `/seen` do not count.

#![expect(
    clippy::unwrap_used,
    reason = "clippy exempts test functions, but not what they call"
)]

#[expect(dead_code, reason = "the engine's own tests use all of it")]
#[path = "../../../crates/load/tests/engine/modern.rs"]
mod modern;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use bytes::Bytes;
use clap::Parser;

use modern::{Act, Got, Identity, Modern, Speech};

/// Server with TLS and HTTP/2.
#[derive(Debug, Parser)]
struct Args {
    /// Address and port to listen on.
    #[arg(long)]
    listen: String,
    /// Accept only HTTP/2.
    #[arg(long)]
    http2: bool,
    /// Accept only HTTP/3.
    #[arg(long, requires = "tls", conflicts_with = "http2")]
    http3: bool,
    /// Accept TLS, with `certificate.pem` and `key.pem` from this folder.
    #[arg(long)]
    tls: Option<PathBuf>,
    /// Require `certificate.pem` of every client.
    #[arg(long, requires = "tls")]
    mtls: bool,
}

fn main() {
    let args = Args::parse();
    let identity = args.tls.as_deref().map_or_else(Identity::new, read);
    let version = match (args.http2, args.http3) {
        (true, _) => "h2",
        (_, true) => "h3",
        _ => "http/1.1",
    };
    let speech = Speech {
        is_http2: args.http2,
        is_http3: args.http3,
        tls: args.tls.as_ref().map(|_| vec![version]),
        streams_max: None,
        client: args.mtls.then(|| identity.certificate.clone()),
    };
    let seen = Mutex::new(BTreeSet::new());
    let _server = Modern::listen(&args.listen, identity, speech, move |got| act(&got, &seen));
    loop {
        thread::park();
    }
}

fn read(folder: &Path) -> Identity {
    let text = |name: &str| fs::read_to_string(folder.join(name)).expect("the test wrote it");
    Identity {
        certificate: text("certificate.pem"),
        key: text("key.pem"),
    }
}

fn act(got: &Got, seen: &Mutex<BTreeSet<u64>>) -> Act {
    let mut seen = seen.lock().expect("no thread panics");
    match got.path.as_str() {
        "/health" => return Act::answer("ok"),
        "/seen" => return Act::Answer(Bytes::from(format!(r#"{{"requests":{}}}"#, seen.len()))),
        _ => {}
    }
    // The server calls this function more than once for a request, with the same number.
    seen.insert(got.number);
    match got.path.strip_prefix("/login/") {
        Some(user) => Act::Answer(Bytes::from(format!(r#"{{"token":"t-{user}"}}"#))),
        None => Act::Answer(Bytes::from(format!(r#"{{"path":"{}"}}"#, got.path))),
    }
}
