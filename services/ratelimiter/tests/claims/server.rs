//! The rate limiter as a process on a free port, and its main query.

use std::process::Command;

use serde_json::json;
use test_client::{Process, TestClient};

/// The program with these flags, on a free port of loopback, in a folder without `.env`.
pub(crate) fn command(flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ratelimiter"));
    command
        .args(["--host", "127.0.0.1", "--port", "0"])
        // The host name in the tests' requests.
        .args(["--allowed-hosts", "test"])
        .args(flags)
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}

/// Starts the service.
pub(crate) fn start(flags: &[&str]) -> Process {
    Process::start(&mut command(flags))
}

/// Reports an event. Returns true if the response is "limited".
pub(crate) fn is_limited(client: &mut TestClient, event: &str, ip: &str, email: &str) -> bool {
    let query = "query($ip: String!, $email: String!, $event: EventName!) \
        { ratelimit(ratelimitInput: {eventName: $event, ip: $ip, email: $email}) \
        { ipFrom isRateLimited } }";
    let variables = json!({"ip": ip, "email": email, "event": event});
    let answer = client.graphql(query, &variables).json();
    let response = &answer["data"]["ratelimit"];
    assert_eq!(response["ipFrom"], ip, "{answer}");
    response["isRateLimited"].as_bool().unwrap()
}
