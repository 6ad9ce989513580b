//! The databases of the tests: SQLite files, and our own PostgreSQL server.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

use tempfile::TempDir;

/// An empty database for one test.
pub(crate) struct Database {
    pub(crate) url: String,
    /// The folder of an SQLite file. It is deleted after its last user ends.
    pub(crate) folder: Option<Arc<TempDir>>,
}

impl Database {
    /// A file that does not exist yet.
    pub(crate) fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("catalog.sqlite3");
        Self {
            url: format!("sqlite:{}", file.display()),
            folder: Some(Arc::new(folder)),
        }
    }

    /// A database on the server that all tests share.
    pub(crate) fn postgres() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("catalog_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let server = PostgresServer::shared();
        server.sql("postgres", &format!("CREATE DATABASE {name}"));
        Self {
            url: format!("postgres://postgres@127.0.0.1:{}/{name}", server.port),
            folder: None,
        }
    }

    /// An empty database of each kind.
    pub(crate) fn both() -> [Self; 2] {
        [Self::sqlite(), Self::postgres()]
    }

    /// The name of a PostgreSQL database.
    pub(crate) fn name(&self) -> &str {
        self.url.rsplit('/').next().unwrap()
    }
}

/// A running PostgreSQL. It ends with this process.
pub(crate) struct PostgresServer {
    pub(crate) port: u16,
    _process: Child,
    /// The server stops when this is closed, for any end of this process.
    _input: ChildStdin,
}

impl PostgresServer {
    /// The server that all tests share.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<PostgresServer> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(&[]))
    }

    /// Starts a server with further words for its script.
    pub(crate) fn start(words: &[&str]) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("throwaway-postgres");
        let mut process = Command::new(script)
            .args([&port.to_string(), "--while-fed"])
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let input = process.stdin.take().unwrap();
        let mut log = BufReader::new(process.stderr.take().unwrap());
        let (mut line, mut told) = (String::new(), String::new());
        while !line.contains("database system is ready to accept connections") {
            line.clear();
            let length = log.read_line(&mut line).unwrap();
            assert_ne!(
                length, 0,
                "`./setup test` installs PostgreSQL; it said: {told}"
            );
            told.push_str(&line);
        }
        // Later output must not fill the pipe.
        thread::spawn(move || log.read_to_string(&mut String::new()));
        Self {
            port,
            _process: process,
            _input: input,
        }
    }

    /// Runs SQL as another client and returns its output.
    pub(crate) fn sql(&self, database: &str, sql: &str) -> String {
        let output = Command::new("psql")
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"])
            .args(["-h", "127.0.0.1", "-p", &self.port.to_string()])
            .args(["-U", "postgres", "-d", database, "-c", sql])
            .output()
            .expect("psql is needed; `./setup test` installs it");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{sql}: {told}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}
