//! Tests TLS to a real PostgreSQL.

use std::fs;

use tempfile::TempDir;
use test_client::now;
use test_client::tls::Authority;

use crate::databases::{Database, PostgresServer};
use crate::server::{command, start};

/// A PostgreSQL with TLS, whose certificate is for `localhost`.
struct Secured {
    server: PostgresServer,
    folder: TempDir,
}

impl Secured {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (right, wrong) = (Authority::new("right"), Authority::new("wrong"));
        let identity = right.identity("localhost");
        for (name, text) in [
            ("cert.pem", &identity.certificate),
            ("key.pem", &identity.key),
            ("right.pem", &right.pem()),
            ("wrong.pem", &wrong.pem()),
        ] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let server = PostgresServer::start(&["--tls", folder.path().to_str().unwrap()]);
        Self { server, folder }
    }

    /// A database by this host and mode. `FOLDER` stands for the folder of certificates.
    fn database(&self, host: &str, parameters: &str) -> Database {
        let port = self.server.port;
        let folder = self.folder.path().to_str().unwrap();
        let parameters = parameters.replace("FOLDER", folder);
        Database {
            url: format!("postgres://postgres@{host}:{port}/postgres?{parameters}"),
            folder: None,
        }
    }
}

const ENCRYPTED: &str = "SELECT count(*) FILTER (WHERE ssl), count(*) FILTER (WHERE NOT ssl) \
    FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE backend_type = 'client backend' \
    AND pid <> pg_backend_pid()";

#[test]
fn every_mode_connects_as_it_says() {
    let postgres = Secured::start();
    for (host, parameters, is_encrypted) in [
        ("127.0.0.1", "sslmode=disable", false),
        ("127.0.0.1", "", true),
        ("127.0.0.1", "sslmode=prefer", true),
        ("127.0.0.1", "sslmode=require", true),
        (
            "127.0.0.1",
            "sslmode=verify-ca&sslrootcert=FOLDER/right.pem",
            true,
        ),
        (
            "localhost",
            "sslmode=verify-full&sslrootcert=FOLDER/right.pem",
            true,
        ),
    ] {
        let database = postgres.database(host, parameters);
        let server = start(&database, &["--workers", "1", "--pool", "1"]);
        let healthy = server.client().get("/health");
        assert_eq!(healthy.status, 200, "{parameters}: {healthy:?}");
        let counts = postgres.server.sql("postgres", ENCRYPTED);
        let expected = if is_encrypted { "1|0" } else { "0|1" };
        assert_eq!(counts, expected, "{parameters}");
        drop(server);
        // The next server must be alone.
        while postgres.server.sql("postgres", ENCRYPTED) != "0|0" {
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_server_that_is_not_the_right_one_ends_the_start_at_once() {
    let postgres = Secured::start();
    let plain = Database::postgres();
    let require = Database {
        url: format!("{}?sslmode=require", plain.url),
        folder: None,
    };
    for (database, reason) in [
        (
            postgres.database(
                "127.0.0.1",
                "sslmode=verify-full&sslrootcert=FOLDER/right.pem",
            ),
            "name its authority with `sslrootcert=FILE`, and its host in the URL",
        ),
        (
            postgres.database(
                "localhost",
                "sslmode=verify-ca&sslrootcert=FOLDER/wrong.pem",
            ),
            "name its authority with `sslrootcert=FILE`",
        ),
        (
            postgres.database("localhost", "sslmode=require&sslrootcert=FOLDER/wrong.pem"),
            "name its authority with `sslrootcert=FILE`",
        ),
        (
            postgres.database(
                "localhost",
                "sslmode=verify-full&sslrootcert=FOLDER/key.pem",
            ),
            "holds no certificate in PEM",
        ),
        (
            postgres.database("localhost", "sslmode=always"),
            "found `always`",
        ),
        (require, "set `ssl = on` in PostgreSQL"),
    ] {
        let began = now();
        let output = command(&database, &[]).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains(reason), "{told} lacks {reason}");
        // The connect timeout of the tests is 120 s.
        assert!(
            began.elapsed().as_secs() < 60,
            "{}: it tried again",
            database.url
        );
    }
}

#[test]
fn a_statement_is_cancelled_over_tls() {
    let postgres = Secured::start();
    let database = postgres.database("localhost", "sslmode=require");
    let flags = ["--workers", "1", "--statement-timeout", "300ms"];
    let server = start(&database, &flags);
    let mut client = server.client();
    assert_eq!(client.get("/api/rest/product?limit=1").status, 200);
    std::thread::scope(|scope| {
        let holder = scope.spawn(|| {
            let sql = "BEGIN; LOCK TABLE product; SELECT pg_sleep(600)";
            let held = || postgres.server.sql("postgres", sql);
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(held)).is_err()
        });
        let mut attempts = (0..5_000).map(|_| client.get("/api/rest/product?limit=1").status);
        assert!(
            attempts.any(|status| status == 504),
            "the lock had no effect"
        );
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
            WHERE query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid()";
        postgres.server.sql("postgres", end);
        assert!(holder.join().unwrap(), "the lock was held to the end");
    });
    let mut attempts = (0..5_000).map(|_| client.get("/api/rest/product?limit=1").status);
    assert!(attempts.any(|status| status == 200));
}
