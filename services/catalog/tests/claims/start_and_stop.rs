//! Tests from an empty database to a stopped process.

use std::process::Stdio;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use crate::databases::{Database, PostgresServer};
use crate::server::{command, start};

fn error_of(database: &Database, flags: &[&str]) -> (Option<i32>, String) {
    let output = command(database, flags).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), told)
}

#[test]
fn of_processes_that_start_at_once_one_fills_the_tables() {
    for database in Database::both() {
        let children: Vec<_> = (0..4)
            .map(|_| {
                let mut prepare = command(&database, &["--prepare"]);
                prepare.stderr(Stdio::piped()).spawn().unwrap()
            })
            .collect();
        let logs = children.into_iter().map(|child| {
            let output = child.wait_with_output().unwrap();
            let log = String::from_utf8(output.stderr).unwrap();
            assert!(output.status.success(), "{log}");
            log
        });
        let seeded = logs
            .filter(|log| log.contains("\"message\":\"seeded\""))
            .count();
        assert_eq!(seeded, 1, "{}", database.url);
    }
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "from outside, nothing tells that a process has met a lock"
)]
fn a_new_file_that_another_process_has_is_waited_for() {
    for lock in ["IMMEDIATE", "EXCLUSIVE"] {
        let database = Database::sqlite();
        let file = database.url.strip_prefix("sqlite:").unwrap();
        let elsewhere = rusqlite::Connection::open(file).unwrap();
        let begun = format!("BEGIN {lock}; CREATE TABLE other (number integer)");
        elsewhere.execute_batch(&begun).unwrap();
        let mut prepare = command(&database, &["--prepare"]);
        let mut child = prepare.stderr(Stdio::piped()).spawn().unwrap();
        // By then the process has met the lock and only waits.
        thread::sleep(Duration::from_millis(300));
        assert_eq!(child.try_wait().unwrap(), None, "{lock}: it did not wait");
        elsewhere.execute_batch("COMMIT").unwrap();
        let output = child.wait_with_output().unwrap();
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{lock}: {log}");
        assert!(log.contains("\"message\":\"seeded\""), "{lock}: {log}");
    }
}

#[test]
fn what_was_changed_is_still_there_after_a_restart() {
    for database in Database::both() {
        let server = start(&database, &[]);
        let insert = "mutation { insert_product_one(object: {name: \"Kept\", price: 1}) { id } }";
        let done = server.client().graphql(insert, &json!({})).json();
        assert!(
            done["data"]["insert_product_one"]["id"].is_string(),
            "{done}"
        );
        server.signal(Signal::TERM);
        assert!(server.wait().success());
        // Other seed numbers have no effect on existing tables.
        let server = start(&database, &["--seed-products", "5"]);
        let kept = server.client().get("/api/rest/product?name=Kept").json();
        assert_eq!(kept["product"].as_array().unwrap().len(), 1);
        let all = server.client().get("/api/rest/product?limit=1000").json();
        assert_eq!(all["product"].as_array().unwrap().len(), 301);
    }
}

#[test]
fn a_database_from_the_future_is_left_alone() {
    let insert = "INSERT INTO catalog_migration VALUES (99, 'future')";
    let [sqlite, postgres] = Database::both();
    for database in [&sqlite, &postgres] {
        assert_eq!(error_of(database, &["--prepare"]).0, Some(0));
    }
    let file = sqlite.url.strip_prefix("sqlite:").unwrap();
    let elsewhere = rusqlite::Connection::open(file).unwrap();
    elsewhere.execute_batch(insert).unwrap();
    PostgresServer::shared().sql(postgres.name(), insert);
    for database in [&sqlite, &postgres] {
        let (code, told) = error_of(database, &[]);
        assert_eq!(code, Some(1));
        assert!(
            told.contains("99 migrations, and this program knows 2"),
            "{told}"
        );
    }
}

#[test]
fn a_database_that_is_not_there_is_named_without_its_password() {
    let mut database = Database::postgres();
    database.url = database.url.replace("postgres@", "postgres:hush@") + "_missing";
    let (code, told) = error_of(&database, &[]);
    assert_eq!(code, Some(1));
    assert!(
        told.contains("does not exist") && !told.contains("hush"),
        "{told}"
    );
    let (code, told) = error_of(&database, &["--database-url", "mysql://x"]);
    assert_eq!(code, Some(2));
    assert!(
        told.contains("expected postgres://USER@HOST:PORT/NAME or sqlite:FILE"),
        "{told}"
    );
}

#[test]
fn a_request_in_flight_is_answered_after_sigterm() {
    for database in Database::both() {
        let server = start(&database, &["--workers", "1", "--stop-timeout", "60s"]);
        let body = json!({"query": "{ product(limit: 1) { id } }"}).to_string();
        let (first, second) = body.split_at(10);
        let mut connection = server.connect();
        let length = body.len();
        let head = format!(
            "POST /graphql HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n\
             Expect: 100-continue\r\nContent-Length: {length}\r\n\r\n"
        );
        connection.write_text(&head);
        // The interim response shows that the request has arrived.
        assert_eq!(connection.read(false).status, 100);
        connection.write_text(first);
        server.signal(Signal::TERM);
        connection.write_text(second);
        let answer = connection.read(false);
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(answer.json()["data"]["product"][0]["id"].is_string());
        assert!(server.wait().success());
    }
}

#[test]
fn a_taken_port_is_named() {
    let database = Database::sqlite();
    let server = start(&database, &[]);
    let (code, told) = error_of(&database, &["--listen", &server.address]);
    assert_eq!(code, Some(1));
    assert!(
        told.contains("choose another address with --listen"),
        "{told}"
    );
}
