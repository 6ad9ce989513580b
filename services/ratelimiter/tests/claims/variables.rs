//! Tests the values of environment variables, as files of deployments have them.

use std::process::Command;

use test_client::Process;

use crate::server::command;

fn with(variable: &str, value: &str) -> Command {
    let mut command = command(&[]);
    command.env(variable, value);
    command
}

/// A compose file with `${NAME}` gives an empty value.
#[test]
fn an_empty_variable_counts_as_unset() {
    for name in [
        "RATELIMIT_BANNED_IP_SECONDS",
        "RATELIMIT_RULES",
        "RATELIMIT_IPV6_PREFIX",
        "REDIS_URL",
        "REDIS_HOST",
    ] {
        let server = Process::start(&mut with(name, ""));
        let health = "/.well-known/apollo/server-health";
        assert_eq!(server.client().get(health).status, 200, "{name}");
    }
}

#[test]
fn a_wrong_variable_is_told_with_its_name() {
    for (name, value, flag) in [
        ("RATELIMIT_BANNED_IP_SECONDS", "ten", "--ban-seconds"),
        ("RATELIMIT_STORE", "disk", "--store"),
    ] {
        let output = with(name, value).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(flag), "{told}");
        let source = format!("the value is from the environment variable `{name}`");
        assert!(told.contains(&source), "{told}");
    }
}

#[test]
fn an_address_of_redis_without_a_scheme_is_told_with_the_forms() {
    let output = with("REDIS_URL", "localhost:6379").output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{told}");
    assert!(
        told.contains("expected redis://HOST:PORT/DATABASE"),
        "{told}"
    );
}
