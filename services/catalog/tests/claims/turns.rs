//! Tests that a client with many requests cannot take PostgreSQL from other clients.

use std::net::Ipv4Addr;
use std::thread;

use serde_json::json;
use test_client::{Connection, JSON, Request, get};

use crate::databases::{Database, PostgresServer};
use crate::server::{Server, start};

/// Maximum number of attempts. Each one queries PostgreSQL with a separate process.
const ATTEMPTS: usize = 3_000;
const CONNECTIONS: &str = "4";

/// A catalog with one worker and a locked product table.
struct Locked {
    server: Server,
    database: Database,
}

impl Locked {
    fn new() -> Self {
        let database = Database::postgres();
        let flags = ["--workers", "1", "--pool", CONNECTIONS];
        let flags = [&flags[..], &["--statement-timeout", "1800s"]].concat();
        let locked = Self {
            server: start(&database, &flags),
            database,
        };
        let name = locked.database.name().to_owned();
        thread::spawn(move || {
            // Held until the test's PostgreSQL server or the backend ends.
            let sql = "BEGIN; LOCK TABLE product; SELECT pg_sleep(1800)";
            let _ = std::panic::catch_unwind(|| PostgresServer::shared().sql(&name, sql));
        });
        locked.until("granted AND relation = 'product'::regclass", |count| {
            count > 0
        });
        locked
    }

    /// Number of locks in this database that match `condition`.
    fn locks(&self, condition: &str) -> usize {
        let sql = format!("SELECT count(*) FROM pg_locks WHERE {condition}");
        let count = PostgresServer::shared().sql(self.database.name(), &sql);
        count.parse().unwrap()
    }

    fn until(&self, condition: &str, holds: impl Fn(usize) -> bool) {
        for _ in 0..ATTEMPTS {
            if holds(self.locks(condition)) {
                return;
            }
            thread::yield_now();
        }
        panic!("{condition} holds for {} locks", self.locks(condition));
    }

    /// Number of statements that wait for the table.
    fn blocked(&self) -> usize {
        self.locks(BLOCKED)
    }

    fn connect_from(&self, last: u8) -> Connection {
        self.server.connect_from(Ipv4Addr::new(127, 0, 0, last))
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
            WHERE pid <> pg_backend_pid() AND datname = ";
        let name = self.database.name();
        PostgresServer::shared().sql("postgres", &format!("{end}'{name}'"));
    }
}

const BLOCKED: &str = "NOT granted AND relation = 'product'::regclass";

#[test]
fn a_statement_whose_client_has_left_is_cancelled() {
    let locked = Locked::new();
    let mut client = locked.connect_from(2);
    client.begin(&get("/api/rest/product?limit=1"));
    locked.until(BLOCKED, |count| count == 1);
    drop(client);
    locked.until(BLOCKED, |count| count == 0);
    // The place of the connection is free again each time a client leaves.
    for _ in 0..6 {
        let mut client = locked.connect_from(2);
        client.begin(&get("/api/rest/product?limit=1"));
        locked.until(BLOCKED, |count| count == 1);
        drop(client);
        locked.until(BLOCKED, |count| count == 0);
    }
}

#[test]
fn a_request_with_many_fields_leaves_connections_to_others() {
    let locked = Locked::new();
    // Both connections come from this machine, which has no limit by address. Only the limit per request
    // applies.
    let fields: String = (0..50)
        .map(|at| format!("p{at}: product(limit: 1) {{ id }} "))
        .collect();
    let body = json!({"query": format!("{{ {fields} }}")}).to_string();
    let mut greedy = locked.server.connect();
    greedy.begin(&Request {
        method: "POST",
        target: "/graphql",
        headers: &[JSON],
        body: body.as_bytes(),
    });
    locked.until(BLOCKED, |count| count == 2);
    let answer = locked
        .server
        .connect()
        .send(&get("/api/rest/lineItem?limit=1"));
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(locked.blocked(), 2);
}

#[test]
fn a_client_with_many_slow_statements_leaves_connections_to_others() {
    let locked = Locked::new();
    let mut greedy: Vec<_> = (0..10).map(|_| locked.connect_from(2)).collect();
    for connection in &mut greedy {
        connection.begin(&get("/api/rest/product?limit=1"));
    }
    locked.until(BLOCKED, |count| count == 2);
    let answer = locked
        .connect_from(3)
        .send(&get("/api/rest/lineItem?limit=1"));
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(locked.server.client().get("/health").status, 200);
    assert_eq!(locked.blocked(), 2);
}
