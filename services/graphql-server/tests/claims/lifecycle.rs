//! Tests of starting, wrong options, and stopping.

use std::process::{Command, Output};
use std::time::Duration;

use rustix::process::Signal;
use test_client::now;

use crate::http::post;
use crate::server::{PROGRAMS, start};

const QUERY: &str = r#"{"query":"{ total }"}"#;

fn run(program: &str, flags: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(program)
        .args(flags)
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_request_in_flight_is_finished_before_the_server_stops() {
    for program in PROGRAMS {
        // Several times, because ntex missed the end of its workers once in eight stops and then waited.
        for signal in [Signal::TERM, Signal::INT].repeat(4) {
            let mut server = start(program, &[]);
            // The client disconnects. The server must not apply its state to the next client.
            assert_eq!(server.send(&post(QUERY)).status, 200);
            let mut idle = server.connect();
            assert_eq!(idle.send(&post(QUERY)).status, 200);
            let mut connection = server.connect();
            // The interim response shows that the server has read the head and waits for the body.
            let head = "POST /graphql HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n";
            let length = QUERY.len();
            connection.write_text(&format!(
                "{head}Expect: 100-continue\r\nContent-Length: {length}\r\n\r\n"
            ));
            assert_eq!(connection.read(false).status, 100);
            server.signal(signal);
            server.wait_for("stopping");
            // The server does not wait for the idle connection until `--stop-timeout`.
            assert!(idle.is_hung_up());
            connection.write_text(QUERY);
            let answer = connection.read(false);
            assert_eq!(answer.body, r#"{"data":{"total":0}}"#);
            let answered = now();
            let (status, log) = server.wait_with_log();
            assert!(answered.elapsed() < Duration::from_secs(8));
            assert_eq!(status.code(), Some(0), "{log}");
            assert!(log.contains("\"stopped\""), "{log}");
        }
    }
}

#[test]
fn a_client_that_never_finishes_does_not_keep_the_server() {
    for program in PROGRAMS {
        let server = start(program, &["--stop-timeout=1s", "--request-timeout=60m"]);
        let mut connection = server.connect();
        let head = "POST /graphql HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n";
        connection.write_text(&format!(
            "{head}Expect: 100-continue\r\nContent-Length: 9\r\n\r\n"
        ));
        assert_eq!(connection.read(false).status, 100);
        server.signal(Signal::TERM);
        let (status, log) = server.wait_with_log();
        assert_eq!(status.code(), Some(0), "{log}");
    }
}

#[test]
fn a_server_with_a_quiet_log_serves_until_a_signal() {
    for program in PROGRAMS {
        for level in ["off", "error", "warn"] {
            let server = start(program, &["--log", level]);
            for _ in 0..20 {
                assert_eq!(server.send(&post(QUERY)).status, 200, "--log {level}");
            }
            server.signal(Signal::TERM);
            let (status, log) = server.wait_with_log();
            assert_eq!(status.code(), Some(0), "--log {level}: {log}");
        }
    }
}

#[test]
fn a_second_signal_ends_the_server_at_once() {
    for program in PROGRAMS {
        let flags = ["--stop-timeout=60m", "--request-timeout=60m"];
        let mut server = start(program, &flags);
        let mut connection = server.connect();
        let head = "POST /graphql HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n";
        connection.write_text(&format!(
            "{head}Expect: 100-continue\r\nContent-Length: 9\r\n\r\n"
        ));
        assert_eq!(connection.read(false).status, 100);
        server.signal(Signal::TERM);
        server.wait_for("stopping");
        server.signal(Signal::TERM);
        let (status, log) = server.wait_with_log();
        assert_eq!(status.code(), Some(1), "{log}");
        assert!(log.contains("\"aborted\""), "{log}");
    }
}

#[test]
fn the_log_says_what_runs_where() {
    for program in PROGRAMS {
        let mut server = start(program, &[]);
        let started = server.wait_for("started");
        assert_eq!(started["address"], server.address);
        assert_eq!(started["workers"], 1);
        for library in ["graphql", "http"] {
            assert!(
                started[library].as_str().unwrap().contains(' '),
                "{started}"
            );
        }
    }
}

#[test]
fn requests_are_logged_only_when_asked() {
    for program in PROGRAMS {
        for (level, expected) in [("info", 0), ("request", 1)] {
            let server = start(program, &["--log", level]);
            assert_eq!(server.send(&post(QUERY)).status, 200);
            server.signal(Signal::TERM);
            let (_, log) = server.wait_with_log();
            let lines = log.lines().filter(|line| line.contains("\"request\""));
            assert_eq!(lines.count(), expected, "{log}");
        }
    }
}

#[test]
fn a_wrong_flag_or_variable_ends_with_2_and_names_it() {
    for program in PROGRAMS {
        let by_flag = run(program, &["--workers=none"], &[]);
        let by_variable = run(program, &[], &[("BODY_LIMIT", "much")]);
        let unknown = run(program, &["--prot=1"], &[]);
        for (output, name) in [
            (by_flag, "--workers"),
            (by_variable, "--body-limit"),
            (unknown, "--prot"),
        ] {
            let told = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{told}");
            assert!(told.starts_with("error: ") && told.contains(name), "{told}");
            assert!(output.stdout.is_empty());
        }
    }
}

#[test]
fn an_address_in_use_ends_with_1_and_names_it() {
    for program in PROGRAMS {
        let taken = start(program, &[]);
        let output = run(program, &[], &[("LISTEN", &taken.address)]);
        assert_eq!(output.status.code(), Some(1));
        let told = text(&output.stderr);
        let expected = format!("error: cannot listen on `{}`: ", taken.address);
        assert!(told.starts_with(&expected), "{told}");
    }
}

#[test]
fn the_version_is_one_line_with_the_libraries() {
    let words = PROGRAMS.map(|program| {
        let output = run(program, &["--version"], &[]);
        assert_eq!(output.status.code(), Some(0));
        let told = text(&output.stdout);
        assert_eq!(told.lines().count(), 1, "{told}");
        // The version numbers change with every update.
        let is_word = |word: &&str| !word.contains(|letter: char| letter.is_ascii_digit());
        told.split_whitespace()
            .filter(is_word)
            .collect::<Vec<_>>()
            .join(" ")
    });
    insta::assert_snapshot!(words.join("\n"), @"
    graphql-server-juniper-ntex (juniper ntex
    graphql-server-async-graphql-actix-web (async-graphql actix-web
    ");
}

const FLAGS: [&str; 14] = [
    "listen",
    "workers",
    "body-limit",
    "request-timeout",
    "stop-timeout",
    "log",
    "max-connections",
    "max-connections-per-address",
    "idle-timeout",
    "write-timeout",
    "tls-certificate",
    "tls-key",
    "tls-client-ca",
    "cors-origins",
];

fn variable_of(flag: &str) -> String {
    flag.to_uppercase().replace('-', "_")
}

#[test]
fn help_names_every_flag_with_its_variable() {
    for program in PROGRAMS {
        let output = run(program, &["--help"], &[]);
        assert_eq!(output.status.code(), Some(0));
        let help = text(&output.stdout);
        for flag in FLAGS {
            assert!(help.contains(&format!("--{flag}")), "{help}");
            let variable = format!("[env: {}=", variable_of(flag));
            assert!(help.contains(&variable), "{help}");
        }
        let lines = help.lines().map(str::trim_start);
        let flags = lines.filter(|line| line.starts_with("--"));
        assert_eq!(
            flags.count(),
            FLAGS.len(),
            "one is missing in the list above\n{help}"
        );
    }
}

#[test]
fn the_readme_lists_every_flag_with_its_default() {
    let readme = include_str!("../../README.md");
    let help = text(&run(PROGRAMS[0], &["-h"], &[]).stdout);
    // clap wraps long lines.
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for flag in FLAGS {
        let row = format!("| `--{flag} ");
        let row = readme.lines().find(|line| line.starts_with(&row));
        let row = row.unwrap_or_else(|| panic!("--{flag} is not in the table"));
        assert!(
            row.contains(&format!("| `{}` |", variable_of(flag))),
            "{row}"
        );
        let words = help.split(&format!("--{flag} ")).nth(1).unwrap();
        let default = words.split("[default: ").nth(1).unwrap();
        let default = default.split(']').next().unwrap();
        assert!(row.contains(default), "{default} in {row}");
    }
}
