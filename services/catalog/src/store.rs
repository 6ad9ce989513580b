//! The database, either PostgreSQL or SQLite.

mod postgres;
mod queue;
mod sqlite;
mod turns;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chassis::ClientNetwork;
use tokio::sync::Semaphore;

use crate::clock;
use crate::config::{Config, Database};
use crate::entity::Entity;
use crate::metrics::Metrics;
use crate::select::{Dialect, Select, Statement};

use postgres::Postgres;
use sqlite::{Helpers, Sqlite};

/// The reason why a database did not execute a statement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("the database is not available; try again later")]
    Away,
    #[error("too many requests wait for the database; try again in a second")]
    Busy,
    #[error("the database took longer than {0:?}; ask for less, or try again later")]
    TooSlow(Duration),
    #[error("Uniqueness violation: there is a row with this id already")]
    Duplicate,
    #[error(
        "Foreign key violation: a line item needs a product that exists, and a product with line items stays"
    )]
    Reference,
    #[error("the database failed; the log of the service says why")]
    Failed,
}

/// The reason why the database cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("PostgreSQL at {at} cannot be used: {reason}")]
    Postgres { at: String, reason: String },
    #[error("SQLite file `{path}` cannot be used: {reason}")]
    Sqlite { path: String, reason: String },
}

/// A prepared database, with its tables and rows. All workers start from it.
pub(crate) enum Prepared {
    /// The URL of the database.
    Postgres(String),
    /// The file, and the threads that write it and run slow reads.
    Sqlite(PathBuf, Helpers),
}

impl Prepared {
    /// Connects, updates the tables and fills new tables.
    pub(crate) async fn new(config: &Config) -> Result<Self, OpenError> {
        match &config.database_url {
            Database::Postgres(url) => {
                postgres::prepare(url, config).await?;
                Ok(Self::Postgres(url.clone()))
            }
            Database::Sqlite(path) => {
                Ok(Self::Sqlite(path.clone(), sqlite::prepare(path, config)?))
            }
        }
    }

    /// Waits until every change has reached the database.
    pub(crate) fn close(self) {
        if let Self::Sqlite(_, helpers) = self {
            helpers.close();
        }
    }
}

enum Backend {
    Postgres(Postgres),
    Sqlite(Sqlite),
}

/// A request that uses the database, for a client.
pub(crate) struct Visitor {
    client: ClientNetwork,
    /// Number of further concurrent statements that this request may send.
    at_once: Semaphore,
}

/// The database from one worker's side.
#[derive(Clone)]
pub(crate) struct Store {
    backend: Arc<Backend>,
    metrics: Arc<Metrics>,
}

impl Store {
    /// Opens a worker's own connections. PostgreSQL connects at the first use.
    pub(crate) fn open(
        prepared: &Prepared,
        config: &Config,
        metrics: &Arc<Metrics>,
    ) -> Result<Self, OpenError> {
        let backend = match prepared {
            Prepared::Postgres(url) => Backend::Postgres(Postgres::open(url, config)?),
            Prepared::Sqlite(path, helpers) => {
                Backend::Sqlite(Sqlite::open(path, helpers, config.statement_timeout)?)
            }
        };
        Ok(Self {
            backend: Arc::new(backend),
            metrics: Arc::clone(metrics),
        })
    }

    /// Creates the state of one request of `client`.
    pub(crate) fn visitor(&self, client: ClientNetwork) -> Visitor {
        let at_once = match &*self.backend {
            Backend::Postgres(postgres) => postgres.at_once(),
            // No connections to share out: reads begin on the worker itself.
            Backend::Sqlite(_) => Semaphore::MAX_PERMITS,
        };
        Visitor {
            client,
            at_once: Semaphore::new(at_once),
        }
    }

    /// The rows of a select.
    pub(crate) async fn rows<E: Entity>(
        &self,
        select: Select,
        visitor: &Visitor,
    ) -> Result<Vec<E>, StoreError> {
        let start = clock::now();
        let rows = match &*self.backend {
            Backend::Postgres(postgres) => {
                let statement = select.into_statement(Dialect::Postgres);
                postgres.rows(statement, visitor).await
            }
            Backend::Sqlite(sqlite) => sqlite.rows(select.into_statement(Dialect::Sqlite)).await,
        };
        // A failed statement counts with zero rows.
        let count = rows.as_ref().map_or(0, Vec::len);
        self.metrics.statement(start.elapsed(), count, rows.is_ok());
        self.metrics.busy(matches!(rows, Err(StoreError::Busy)));
        rows
    }

    /// The first row of a select.
    pub(crate) async fn one<E: Entity>(
        &self,
        select: Select,
        visitor: &Visitor,
    ) -> Result<Option<E>, StoreError> {
        // The only row, because such a select has one id.
        Ok(self.rows(select, visitor).await?.pop())
    }

    /// Changes one row. Returns the new row, or the old row after a deletion. `None` if the row does not
    /// exist.
    pub(crate) async fn change<E: Entity>(
        &self,
        statement: Statement,
        visitor: &Visitor,
    ) -> Result<Option<E>, StoreError> {
        let start = clock::now();
        let rows = match &*self.backend {
            Backend::Postgres(postgres) => postgres.rows(statement, visitor).await,
            // Awaited, because one writer makes all changes. See `sqlite`.
            Backend::Sqlite(sqlite) => sqlite.change(statement).await,
        };
        let count = rows.as_ref().map_or(0, Vec::len);
        self.metrics.statement(start.elapsed(), count, rows.is_ok());
        self.metrics.busy(matches!(rows, Err(StoreError::Busy)));
        Ok(rows?.pop())
    }

    /// Fails if the database does not respond.
    pub(crate) async fn check(&self) -> Result<(), StoreError> {
        match &*self.backend {
            Backend::Postgres(postgres) => postgres.check().await,
            Backend::Sqlite(sqlite) => sqlite.check(),
        }
    }

    /// The name of the database for people.
    pub(crate) fn kind(&self) -> &'static str {
        match &*self.backend {
            Backend::Postgres(_) => "postgres",
            Backend::Sqlite(_) => "sqlite",
        }
    }
}

/// Logs a reason that may contain parts of statements or addresses. Returns an error that is safe for
/// clients.
fn failed(reason: &dyn std::fmt::Display) -> StoreError {
    tracing::error!(%reason, "database failed");
    StoreError::Failed
}
