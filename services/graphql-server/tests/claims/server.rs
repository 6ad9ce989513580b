//! The two programs as processes on free ports.

use std::process::Command;

use test_client::Process;

use crate::http::{self, Response};

/// The two programs under test.
pub(crate) const PROGRAMS: [&str; 2] = [
    env!("CARGO_BIN_EXE_graphql-server-juniper-ntex"),
    env!("CARGO_BIN_EXE_graphql-server-async-graphql-actix-web"),
];

/// A program on a free port of loopback, with one worker.
pub(crate) fn command(program: &str, flags: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .envs([("LISTEN", "127.0.0.1:0"), ("WORKERS", "1")])
        .args(flags);
    command
}

/// Starts a program.
pub(crate) fn start(program: &str, flags: &[&str]) -> Process {
    Process::start(&mut command(program, flags))
}

/// Starts the program with two workers and `count` file descriptors.
pub(crate) fn start_with_descriptors(program: &str, count: u32) -> Process {
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(format!(r#"ulimit -n {count}; exec "$@""#))
        .args(["sh", program])
        .envs([("LISTEN", "127.0.0.1:0"), ("WORKERS", "2")]);
    Process::start(&mut command)
}

/// Starts both programs with the same flags.
pub(crate) fn both(flags: &[&str]) -> [Process; 2] {
    PROGRAMS.map(|program| start(program, flags))
}

/// Sends one request to both servers, and checks that status, media type and bytes of their responses are
/// equal.
pub(crate) fn same_answer(servers: &[Process; 2], request: &http::Request<'_>) -> Response {
    let [one, other] = servers.each_ref().map(|server| server.send(request));
    assert_eq!(http::plain(&one), http::plain(&other), "to {request:?}");
    one
}
