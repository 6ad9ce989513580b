//! Tests a database that fails and returns.

use std::fs;
use std::time::Duration;

use test_client::{Response, TestClient};

use crate::databases::{Database, PostgresServer};
use crate::server::start;

/// Maximum number of attempts. Each one waits for a database or its timeout.
const ATTEMPTS: usize = 5_000;

/// Repeats a request until the response has this status. A pooled connection may not have noticed the outage
/// yet, and a short timeout may expire early on a busy machine.
fn until(client: &mut TestClient, path: &str, status: u16) -> Response {
    for _ in 0..ATTEMPTS {
        let answer = client.get(path);
        if answer.status == status {
            return answer;
        }
        assert!([200, 503, 504].contains(&answer.status), "{answer:?}");
        std::thread::yield_now();
    }
    panic!("{path} never had the status {status}");
}

#[test]
fn without_postgres_the_service_says_so_and_heals_by_itself() {
    let database = Database::postgres();
    let server = start(&database, &["--workers", "2", "--pool", "2"]);
    let mut client = server.client();
    let healthy = until(&mut client, "/health", 200);
    assert_eq!(healthy.json()["database"], "postgres");
    let postgres = PostgresServer::shared();
    let name = database.name();
    postgres.sql(
        "postgres",
        &format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false"),
    );
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = ";
    postgres.sql("postgres", &format!("{end}'{name}'"));
    let sick = until(&mut client, "/health", 503);
    assert_eq!(sick.json()["status"], "DOWN");
    let refused = until(&mut client, "/api/rest/product", 503).json();
    assert_eq!(refused["code"], "unexpected");
    assert!(
        refused["error"].as_str().unwrap().contains("not available"),
        "{refused}"
    );
    postgres.sql(
        "postgres",
        &format!("ALTER DATABASE {name} ALLOW_CONNECTIONS true"),
    );
    until(&mut client, "/health", 200);
    until(&mut client, "/api/rest/product", 200);
}

#[test]
fn a_locked_table_costs_one_timeout_and_no_more() {
    let database = Database::postgres();
    let server = start(
        &database,
        &["--workers", "1", "--statement-timeout", "300ms"],
    );
    let mut client = server.client();
    until(&mut client, "/health", 200);
    let postgres = PostgresServer::shared();
    std::thread::scope(|scope| {
        let name = database.name();
        let holder = scope.spawn(move || {
            // Held until the backend ends.
            let sql = "BEGIN; LOCK TABLE product; SELECT pg_sleep(600)";
            std::panic::catch_unwind(|| postgres.sql(name, sql)).is_err()
        });
        let slow = until(&mut client, "/api/rest/product?limit=1", 504);
        assert!(
            slow.json()["error"]
                .as_str()
                .unwrap()
                .contains("longer than 300ms")
        );
        // Another table is not locked, and its connections work.
        until(&mut client, "/api/rest/lineItem?limit=1", 200);
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
            WHERE query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid() AND datname = ";
        postgres.sql("postgres", &format!("{end}'{name}'"));
        assert!(holder.join().unwrap(), "the lock was held to the end");
    });
    until(&mut client, "/api/rest/product?limit=1", 200);
}

#[test]
fn a_writer_elsewhere_keeps_no_reader_from_reading() {
    let database = Database::sqlite();
    let flags = ["--statement-timeout", "300ms", "--workers", "1"];
    let server = start(&database, &flags);
    let mut client = server.client();
    let file = database.url.strip_prefix("sqlite:").unwrap();
    let elsewhere = rusqlite::Connection::open(file).unwrap();
    elsewhere.busy_timeout(Duration::from_secs(60)).unwrap();
    elsewhere.execute_batch("BEGIN IMMEDIATE").unwrap();
    until(&mut client, "/api/rest/product?limit=1", 200);
    let insert = "mutation { insert_product_one(object: {name: \"Late\", price: 1}) { name } }";
    let late = client.graphql(insert, &serde_json::json!({})).json();
    let message = late["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("longer than 300ms"), "{late}");
    elsewhere.execute_batch("ROLLBACK").unwrap();
    let done = client.graphql(insert, &serde_json::json!({})).json();
    assert_eq!(done["data"]["insert_product_one"]["name"], "Late", "{done}");
}

#[test]
fn a_file_that_is_no_database_is_named() {
    let database = Database::sqlite();
    fs::write(
        database.url.strip_prefix("sqlite:").unwrap(),
        "no database at all",
    )
    .unwrap();
    let output = crate::server::command(&database, &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        told.contains("cannot be used: file is not a database"),
        "{told}"
    );
}

#[test]
fn changes_that_find_the_queue_full_are_answered_at_once() {
    let database = Database::sqlite();
    let server = start(&database, &["--workers", "1", "--queue", "2"]);
    let file = database.url.strip_prefix("sqlite:").unwrap();
    // Acts like another process that writes: the writer waits for it.
    let other = rusqlite::Connection::open(file).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let body =
        r#"{"query":"mutation { insert_product_one(object: {name: \"a\", price: 1}) { id } }"}"#;
    let request = test_client::Request {
        method: "POST",
        target: "/graphql",
        headers: &[("content-type", "application/json")],
        body: body.as_bytes(),
    };
    // The writer has one request and two wait. The test does not know which requests they are.
    let mut connections: Vec<_> = (0..12).map(|_| server.connect()).collect();
    for connection in &mut connections {
        connection.begin(&request);
    }
    let refused = "catalog_statements_refused_total";
    let mut client = server.client();
    while client.metric(refused) < 9 {
        std::thread::yield_now();
    }
    // Reads on the worker are not affected.
    assert_eq!(client.get("/api/rest/product?limit=1").status, 200);
    assert_eq!(client.get("/health").status, 200);
    other.execute_batch("ROLLBACK").unwrap();
    let answers = connections.iter_mut().map(|it| it.read(false));
    let (busy, done): (Vec<_>, Vec<_>) = answers.partition(|answer| answer.status == 503);
    assert!((9..=10).contains(&busy.len()), "{busy:?}");
    for answer in &busy {
        assert_eq!(answer.header("retry-after"), Some("1"));
        let error = &answer.json()["errors"][0];
        assert_eq!(error["extensions"]["code"], "busy", "{error}");
    }
    for answer in &done {
        let name = answer.json()["data"]["insert_product_one"]["id"].is_string();
        assert!(answer.status == 200 && name, "{answer:?}");
    }
}
