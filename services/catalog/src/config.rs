//! The options of the service, as flags or environment variables.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use chassis::{ConnectionFlags, CorsFlags, HostFlags, TimeError, TlsFlags};
use clap::Parser;
use hyper::header::HeaderName;

/// Maximum of each time option.
const TIME_MAX: Duration = Duration::from_secs(3_600);

/// The database of the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Database {
    /// A URL like `postgres://USER:PASSWORD@HOST:PORT/NAME`.
    Postgres(String),
    /// A file. It is created if it does not exist.
    Sqlite(PathBuf),
}

/// The text is not a valid database URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected postgres://USER@HOST:PORT/NAME or sqlite:FILE")]
pub(crate) struct DatabaseError;

impl FromStr for Database {
    type Err = DatabaseError;

    fn from_str(text: &str) -> Result<Self, DatabaseError> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(text.to_owned()));
        }
        let file = text.strip_prefix("sqlite:").ok_or(DatabaseError)?;
        let file = file.strip_prefix("//").unwrap_or(file);
        // SQLite in memory: each connection would have its own database.
        if file.is_empty() || file.starts_with(':') {
            return Err(DatabaseError);
        }
        Ok(Self::Sqlite(file.into()))
    }
}

/// Number of rows in new tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) products: u32,
    pub(crate) line_items: u32,
}

/// Catalog of products and line items in PostgreSQL or SQLite, with a GraphQL and a REST interface.
///
/// Paths: /v1/graphql and /graphql (GraphQL), /api/rest/product, /api/rest/product/ID,
/// /api/rest/lineItem, /api/rest/lineItem/ID (GET), /health, /metrics.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "catalog",
    version,
    args_override_self = true,
    after_help = "Exit codes: 0 normal stop, 1 cannot serve, 2 wrong flag or variable."
)]
pub(crate) struct Config {
    /// Address and port to listen on. With port 0, the service uses a free port and prints it.
    #[arg(long, env, value_name = "HOST:PORT", default_value = "127.0.0.1:4010")]
    pub(crate) listen: String,

    /// Database: postgres://USER:PASSWORD@HOST:PORT/NAME for PostgreSQL, or sqlite:FILE for a file.
    #[arg(
        long,
        env,
        value_name = "URL",
        default_value = "sqlite:catalog.sqlite3",
        hide_env_values = true
    )]
    pub(crate) database_url: Database,

    /// Create and fill the tables, and exit.
    #[arg(long, env, value_name = "true|false", num_args = 0..=1, require_equals = true,
          default_value = "false", default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) prepare: bool,

    /// Number of products in new tables.
    #[arg(long, env, value_name = "N", default_value_t = 10_000,
          value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub(crate) seed_products: u32,

    /// Number of line items in new tables.
    #[arg(long, env, value_name = "N", default_value_t = 100_000,
          value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    pub(crate) seed_line_items: u32,

    /// Number of threads that serve requests [default: one per processor].
    #[arg(long, env, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=512))]
    workers: Option<u16>,

    /// Maximum number of PostgreSQL connections per worker.
    #[arg(long, env, value_name = "N", default_value_t = 8,
          value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub(crate) pool: u16,

    /// Number of threads for SQLite reads that take longer than 2 ms. Workers execute shorter
    /// reads.
    #[arg(long, env, value_name = "N", default_value_t = 2,
          value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) read_threads: u16,

    /// Maximum number of statements that wait for SQLite's writer, and for its read threads.
    /// Further requests receive status 503.
    #[arg(long, env, value_name = "N", default_value_t = 256,
          value_parser = clap::value_parser!(u16).range(1..))]
    queue: u16,

    /// Maximum number of rows in a list. A request for more rows is refused.
    #[arg(long, env, value_name = "ROWS", default_value_t = 1_000,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) limit_max: u32,

    /// Names of request headers that /metrics counts, separated by commas. The flag can be
    /// repeated.
    #[arg(long, env, value_name = "NAME", value_delimiter = ',')]
    pub(crate) count_headers: Vec<HeaderName>,

    /// Maximum size of a request body, in bytes. A larger body receives status 413.
    #[arg(long, env, value_name = "BYTES", default_value_t = 100 << 10,
          value_parser = clap::value_parser!(u32).range(1..=16 << 20))]
    body_limit: u32,

    /// Time limit for a client to send a request, such as 10s.
    #[arg(long, env, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub(crate) request_timeout: Duration,

    /// Time limit for a database statement, such as 500ms or 5s.
    #[arg(long, env, value_name = "TIME", default_value = "5s", value_parser = time)]
    pub(crate) statement_timeout: Duration,

    /// Time limit at the start for the database to respond and to release its tables.
    #[arg(long, env, value_name = "TIME", default_value = "30s", value_parser = time)]
    pub(crate) connect_timeout: Duration,

    /// Time limit for requests in flight after SIGTERM or SIGINT, such as 10s.
    #[arg(long, env, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub(crate) stop_timeout: Duration,

    #[command(flatten)]
    pub(crate) hosts: HostFlags,

    #[command(flatten)]
    pub(crate) connections: ConnectionFlags,

    #[command(flatten)]
    pub(crate) tls: TlsFlags,

    #[command(flatten)]
    pub(crate) cors: CorsFlags,
}

impl Config {
    /// Number of threads that serve requests.
    pub(crate) fn workers(&self) -> u16 {
        chassis::workers(self.workers)
    }

    /// The number of rows in new tables.
    pub(crate) fn amount(&self) -> Amount {
        Amount {
            products: self.seed_products,
            line_items: self.seed_line_items,
        }
    }

    /// Maximum number of statements that wait for an SQLite thread.
    pub(crate) fn queue(&self) -> usize {
        self.queue.into()
    }

    /// Maximum size of a request body, in bytes.
    pub(crate) fn body_limit(&self) -> u64 {
        self.body_limit.into()
    }
}

fn time(text: &str) -> Result<Duration, TimeError> {
    // Zero would refuse every request, statement or connection.
    chassis::time(text, Duration::from_millis(1)..=TIME_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_a_server_or_a_file() {
        let file = |path: &str| Ok(Database::Sqlite(path.into()));
        assert_eq!("sqlite:a.db".parse(), file("a.db"));
        assert_eq!("sqlite:///tmp/a.db".parse(), file("/tmp/a.db"));
        let url = "postgresql://u:p@h:1/n";
        assert_eq!(url.parse(), Ok(Database::Postgres(url.to_owned())));
        for wrong in ["", "a.db", "sqlite:", "sqlite::memory:", "mysql://h/n"] {
            assert_eq!(wrong.parse::<Database>(), Err(DatabaseError), "{wrong}");
        }
    }

    #[test]
    fn numbers_have_bounds_and_prepare_is_a_switch() {
        let read = |words: &[&str]| Config::try_parse_from(["catalog"].iter().chain(words));
        assert!(!read(&[]).unwrap().prepare);
        assert!(read(&["--prepare"]).unwrap().prepare);
        assert!(!read(&["--prepare=false"]).unwrap().prepare);
        for wrong in ["--limit-max=0", "--pool=0", "--workers=0", "--body-limit=0"] {
            assert!(read(&[wrong]).is_err(), "{wrong}");
        }
    }
}
