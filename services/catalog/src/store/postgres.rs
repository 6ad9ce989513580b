//! PostgreSQL: a pool of connections for each worker, each with its prepared statements.
//!
//! Clients receive connections in turns. If a client leaves, its statement is cancelled.

mod lent;
mod tls;

use std::pin::pin;
use std::str::FromStr as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deadpool_postgres::{
    Client, Manager, ManagerConfig, Pool, PoolError, RecyclingMethod, Runtime,
};
use lent::Lent;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::Transaction;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use uuid::Uuid;

use self::tls::{Connector, TlsUrl};
use super::turns::Turns;
use super::{OpenError, StoreError, Visitor, failed};
use crate::config::{Amount, Config};
use crate::datum::Datum;
use crate::entity::{Entity, Row, RowError};
use crate::id::Id;
use crate::migrations;
use crate::moment::Moment;
use crate::seed;
use crate::select::Statement;

/// Number of prepared statements that a connection keeps. If it is exceeded, all are cleared.
const STATEMENTS_KEPT: usize = 256;
/// The lock that two simultaneous processes share, so that only one of them creates the tables.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7163428905517)";
/// Time between two attempts to connect at the start.
const RETRY_EVERY: Duration = Duration::from_millis(100);
/// Extra time for a statement after its own timeout. Then its connection is abandoned.
const NETWORK_MARGIN: Duration = Duration::from_millis(500);

type BoxedError = Box<dyn std::error::Error + Sync + Send>;

/// The requester of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Asker {
    Client(chassis::ClientNetwork),
    /// The service itself, for its health check.
    Service,
}

/// PostgreSQL from one worker's side.
pub(crate) struct Postgres {
    pool: Pool,
    /// The way of a cancellation to the database.
    connector: Connector,
    /// One place for each connection.
    turns: Turns<Asker>,
    /// Maximum of concurrent connections for one request, and for one address.
    share: usize,
    timeout: Duration,
    /// True if the last log line reported that the database is unreachable.
    is_away: AtomicBool,
}

impl Postgres {
    /// Opens a pool, which has no connections yet.
    pub(super) fn open(url: &str, config: &Config) -> Result<Self, OpenError> {
        let (mut settings, connector) = read(url)?;
        let timeout = config.statement_timeout;
        let more = format!("-c statement_timeout={}", timeout.as_millis());
        let options = match settings.get_options() {
            // The URL's own options come last, so they take precedence.
            Some(options) => format!("{more} {options}"),
            None => more,
        };
        settings.options(options).connect_timeout(timeout);
        // No check query before each use. A broken connection is detected when a statement fails on it.
        let recycling_method = RecyclingMethod::Fast;
        let manager = Manager::from_config(
            settings,
            connector.clone(),
            ManagerConfig { recycling_method },
        );
        let pool = Pool::builder(manager)
            .max_size(config.pool.into())
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(timeout))
            .create_timeout(Some(timeout))
            .build()
            .map_err(|error| unusable(url, &error))?;
        let is_away = AtomicBool::new(false);
        let connections: usize = config.pool.into();
        // Half, because one address may also hold half of a service's connections.
        let share = connections.div_ceil(2);
        Ok(Self {
            pool,
            connector,
            turns: Turns::new(connections, move |asker| match asker {
                Asker::Client(client) if client.is_counted() => share,
                Asker::Client(_) | Asker::Service => connections,
            }),
            share,
            timeout,
            is_away,
        })
    }

    /// Maximum of concurrent statements for one request.
    pub(super) fn at_once(&self) -> usize {
        self.share
    }

    /// Runs a statement and reads its rows.
    pub(super) async fn rows<E: Entity>(
        &self,
        statement: Statement,
        visitor: &Visitor,
    ) -> Result<Vec<E>, StoreError> {
        // Limited, or a request with many fields would take all connections.
        let at_once = visitor.at_once.acquire().await;
        let _at_once = at_once.map_err(|error| failed(&error))?;
        let lent = self.lend(Asker::Client(visitor.client)).await?;
        let parameters: Vec<&(dyn ToSql + Sync)> =
            statement.data.iter().map(|datum| datum as _).collect();
        // The time limit includes preparing: a first use needs two round trips to the database.
        let work = async {
            let client = lent.client();
            let prepared = client.prepare_cached(&statement.text).await?;
            client.query(&prepared, &parameters).await
        };
        // After the timeout, and if this future is dropped, `lent` ends the statement.
        let Ok(rows) = timeout(self.timeout + NETWORK_MARGIN, work).await else {
            return Err(StoreError::TooSlow(self.timeout));
        };
        lent.give_back();
        let rows = rows.map_err(|error| self.cause(&error))?;
        let entities = rows.iter().map(E::read).collect::<Result<_, _>>();
        entities.map_err(|error| failed(&error))
    }

    pub(super) async fn check(&self) -> Result<(), StoreError> {
        let lent = self.lend(Asker::Service).await?;
        let asked = lent.client();
        let asked = asked.query_one("SELECT COUNT(*) FROM catalog_seed", &[]);
        let Ok(asked) = timeout(self.timeout + NETWORK_MARGIN, asked).await else {
            return Err(StoreError::TooSlow(self.timeout));
        };
        lent.give_back();
        asked.map(|_| ()).map_err(|error| self.cause(&error))
    }

    /// Waits for the requester's turn and returns a connection.
    async fn lend(&self, asker: Asker) -> Result<Lent, StoreError> {
        let place = match self.turns.try_take(asker) {
            Some(place) => place,
            None => {
                let place = timeout(self.timeout, self.turns.take(asker)).await;
                place.map_err(|_| StoreError::TooSlow(self.timeout))?
            }
        };
        let client = self.client().await?;
        Ok(Lent::new(client, self.connector.clone(), place))
    }

    /// Takes a connection from the pool, which has one for each place.
    async fn client(&self) -> Result<Client, StoreError> {
        let client = self.pool.get().await.map_err(|error| match error {
            PoolError::Timeout(_) => StoreError::TooSlow(self.timeout),
            other => self.away(&other),
        })?;
        // Swapped, so that only one of many requests writes the line.
        if self.is_away.swap(false, Ordering::Relaxed) {
            tracing::info!("database back");
        }
        // Cleared as a whole: the library cannot remove the least recently used one, and 256 different texts
        // are unusual.
        if client.statement_cache.size() >= STATEMENTS_KEPT {
            client.statement_cache.clear();
        }
        Ok(client)
    }

    fn cause(&self, error: &tokio_postgres::Error) -> StoreError {
        match error.code() {
            Some(&SqlState::UNIQUE_VIOLATION) => StoreError::Duplicate,
            Some(&SqlState::FOREIGN_KEY_VIOLATION) => StoreError::Reference,
            Some(&SqlState::QUERY_CANCELED) => StoreError::TooSlow(self.timeout),
            Some(&SqlState::ADMIN_SHUTDOWN | &SqlState::CRASH_SHUTDOWN) => StoreError::Away,
            Some(_) => failed(&chain(error)),
            // Without a code the error comes from the connection, not from the server.
            None => self.away(error),
        }
    }

    /// Logs the outage once, not for each affected request.
    fn away(&self, error: &dyn std::error::Error) -> StoreError {
        if !self.is_away.swap(true, Ordering::Relaxed) {
            tracing::warn!(reason = chain(error), "database away");
        }
        StoreError::Away
    }
}

/// The error with its causes, which the library's own text omits.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

/// Reads a URL, and the authorities that it names.
fn read(url: &str) -> Result<(tokio_postgres::Config, Connector), OpenError> {
    let parts = TlsUrl::read(url).map_err(|error| unusable(url, &error))?;
    let connector = parts.connector().map_err(|error| unusable(url, &error))?;
    let settings = tokio_postgres::Config::from_str(&parts.url);
    let mut settings = settings.map_err(|error| unusable(url, &chain(&error)))?;
    settings.ssl_mode(parts.mode);
    Ok((settings, connector))
}

/// The error names the database, without the user's password.
fn unusable(url: &str, reason: &dyn std::fmt::Display) -> OpenError {
    // The password is before the last `@`.
    let after_user = url.rsplit_once('@').map_or(url, |(_, rest)| rest);
    let at = after_user
        .split_once("://")
        .map_or(after_user, |(_, rest)| rest);
    OpenError::Postgres {
        at: format!("`{at}`"),
        reason: reason.to_string(),
    }
}

/// Updates the tables in one transaction. Waits for a database that is still starting.
pub(super) async fn prepare(url: &str, config: &Config) -> Result<(), OpenError> {
    let (settings, connector) = read(url)?;
    let give_up = Instant::now() + config.connect_timeout;
    let (mut client, connection) = loop {
        let error = match settings.connect(connector.clone()).await {
            Ok(connected) => break connected,
            Err(error) => error,
        };
        if let Some(remedy) = tls::remedy(&error) {
            return Err(unusable(url, &format!("{}; {remedy}", chain(&error))));
        }
        // If the database refuses this user or database, another attempt cannot help.
        let is_refused = error
            .code()
            .is_some_and(|code| *code != SqlState::CANNOT_CONNECT_NOW);
        if is_refused || Instant::now() >= give_up {
            return Err(unusable(url, &chain(&error)));
        }
        sleep(RETRY_EVERY).await;
    };
    let connection = tokio::spawn(connection);
    let migrated = async {
        let all = client.transaction().await?;
        migrate(&all, config.amount()).await?;
        // Tables and rows in one transaction, so that an interrupted start leaves no partial state.
        Ok::<_, MigrateError>(all.commit().await?)
    };
    let migrated = migrated.await;
    drop(client);
    // It ends with its client, and the client has already reported errors.
    let _ = connection.await;
    migrated.map_err(|error| unusable(url, &chain(&error)))
}

#[derive(Debug, thiserror::Error)]
enum MigrateError {
    #[error("the tables could not be made")]
    Sql(#[from] tokio_postgres::Error),
    #[error(transparent)]
    TooNew(#[from] migrations::TooNew),
}

async fn migrate(all: &Transaction<'_>, amount: Amount) -> Result<(), MigrateError> {
    // Before the first read: a second process must see the changes of the first process.
    all.batch_execute(LOCK).await?;
    all.batch_execute(migrations::TABLE).await?;
    let had: i32 = all.query_one(migrations::COUNT, &[]).await?.try_get(0)?;
    for (number, migration) in migrations::missing(had)? {
        all.batch_execute(migration.postgres).await?;
        all.execute(migrations::RECORD, &[&number, &migration.name])
            .await?;
        tracing::info!(number, name = migration.name, "migrated");
    }
    let seeded = all
        .query_one("SELECT COUNT(*) FROM catalog_seed", &[])
        .await?;
    if seeded.try_get::<_, i64>(0)? == 0 {
        let (products, items) = seed::rows(amount);
        insert(all, &products).await?;
        insert(all, &items).await?;
        let count = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
        let counts: [&(dyn ToSql + Sync); 2] = [&count(amount.products), &count(amount.line_items)];
        let seeded = "INSERT INTO catalog_seed (products, line_items) VALUES ($1, $2)";
        all.execute(seeded, &counts).await?;
        // Without statistics the planner would have to guess about newly filled tables.
        all.batch_execute("ANALYZE product; ANALYZE line_item")
            .await?;
        tracing::info!(
            products = amount.products,
            line_items = amount.line_items,
            "seeded"
        );
    }
    Ok(())
}

/// Copies rows into their table.
async fn insert<E: Entity>(all: &Transaction<'_>, rows: &[E]) -> Result<(), tokio_postgres::Error> {
    let Some(first) = rows.first() else {
        return Ok(());
    };
    let types: Vec<Type> = first.data().iter().map(Datum::sql_type).collect();
    // Binary COPY takes a fraction of the time of individual INSERTs.
    let copy = format!("COPY {} FROM STDIN BINARY", E::TABLE.name);
    let mut writer = pin!(BinaryCopyInWriter::new(all.copy_in(&copy).await?, &types));
    for row in rows {
        let data = row.data();
        let values: Vec<&(dyn ToSql + Sync)> = data.iter().map(|datum| datum as _).collect();
        writer.as_mut().write(&values).await?;
    }
    writer.finish().await?;
    Ok(())
}

impl Datum {
    /// The SQL type of the value's column.
    fn sql_type(&self) -> Type {
        match self {
            Self::Id(_) => Type::UUID,
            Self::Text(_) => Type::TEXT,
            Self::Integer(_) => Type::INT4,
            Self::Moment(_) => Type::TIMESTAMPTZ,
            Self::Count(_) => Type::INT8,
            Self::Ids(_) => Type::UUID_ARRAY,
            Self::Texts(_) => Type::TEXT_ARRAY,
            Self::Integers(_) => Type::INT4_ARRAY,
            Self::Moments(_) => Type::TIMESTAMPTZ_ARRAY,
        }
    }
}

impl ToSql for Datum {
    fn to_sql(&self, of: &Type, out: &mut BytesMut) -> Result<IsNull, BoxedError> {
        match self {
            Self::Id(id) => id.to_sql_checked(of, out),
            Self::Text(text) => text.to_sql_checked(of, out),
            Self::Integer(number) => number.to_sql_checked(of, out),
            Self::Moment(moment) => moment.to_sql_checked(of, out),
            Self::Count(count) => count.to_sql_checked(of, out),
            Self::Ids(ids) => ids.to_sql_checked(of, out),
            Self::Texts(texts) => texts.to_sql_checked(of, out),
            Self::Integers(numbers) => numbers.to_sql_checked(of, out),
            Self::Moments(moments) => moments.to_sql_checked(of, out),
        }
    }

    /// Accepts every type, because each value checks its type when it is written.
    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl ToSql for Id {
    fn to_sql(&self, of: &Type, out: &mut BytesMut) -> Result<IsNull, BoxedError> {
        self.0.to_sql(of, out)
    }

    fn accepts(of: &Type) -> bool {
        <Uuid as ToSql>::accepts(of)
    }

    to_sql_checked!();
}

/// 2000-01-01 in microseconds since 1970. PostgreSQL counts time from this date.
const POSTGRES_EPOCH_US: i64 = 946_684_800_000_000;

impl ToSql for Moment {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, BoxedError> {
        // PostgreSQL's own representation, so that no text must be written and parsed.
        (self.us() - POSTGRES_EPOCH_US).to_sql(&Type::INT8, out)
    }

    fn accepts(of: &Type) -> bool {
        *of == Type::TIMESTAMPTZ
    }

    to_sql_checked!();
}

impl FromSql<'_> for Moment {
    fn from_sql(_: &Type, raw: &[u8]) -> Result<Self, BoxedError> {
        let us = i64::from_be_bytes(raw.try_into()?);
        let us = us.checked_add(POSTGRES_EPOCH_US);
        Ok(us
            .and_then(Self::from_us)
            .ok_or("the time is not within the years 1 to 9999")?)
    }

    fn accepts(of: &Type) -> bool {
        *of == Type::TIMESTAMPTZ
    }
}

impl Row for tokio_postgres::Row {
    fn id(&self, column: usize) -> Result<Id, RowError> {
        self.try_get(column).map(Id).map_err(wrong(column))
    }

    fn text(&self, column: usize) -> Result<String, RowError> {
        self.try_get(column).map_err(wrong(column))
    }

    fn integer(&self, column: usize) -> Result<i32, RowError> {
        self.try_get(column).map_err(wrong(column))
    }

    fn moment(&self, column: usize) -> Result<Moment, RowError> {
        self.try_get(column).map_err(wrong(column))
    }
}

fn wrong(column: usize) -> impl Fn(tokio_postgres::Error) -> RowError {
    move |error| RowError {
        column,
        reason: chain(&error),
    }
}
