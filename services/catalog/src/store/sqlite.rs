//! SQLite: a file. Each worker reads it on its own connection, and one thread writes it.
//!
//! Most reads take microseconds and need no lock in WAL mode, so a read begins on the worker. A handover to
//! another thread would cost more than the read. A read that takes longer than [`ON_WORKER`] is aborted and
//! repeated by one of a few reading threads. So no request waits for the long read of another request.
//!
//! SQLite allows one writer at a time anyway. With a separate writing thread, workers do not wait for it.
//! Both queues are bounded.

use std::ffi::CStr;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::types::{ToSql, ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior, ffi, params_from_iter};
use uuid::Uuid;

use super::queue::{self, Queue, Threads};
use super::{OpenError, StoreError, failed};
use crate::clock;
use crate::config::{Amount, Config};
use crate::datum::Datum;
use crate::entity::{Entity, Row, RowError};
use crate::id::Id;
use crate::migrations;
use crate::moment::Moment;
use crate::seed;
use crate::select::Statement;

/// Instructions of SQLite's virtual machine between two checks of the deadline.
const INSTRUCTIONS: i32 = 10_000;
/// Time that a read may take on the worker of the request.
const ON_WORKER: Duration = Duration::from_millis(2);
/// Number of prepared statements that a connection keeps. The least recently used one makes room.
const STATEMENTS_KEPT: usize = 64;

/// Pause before the next attempt to use a file that another process has locked.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(10);

/// The type name that `rarray` requires of its pointers.
const ARRAY: &CStr = c"rarray";

/// The threads for writes and for slow reads.
pub(crate) struct Helpers {
    writer: Queue<Connection>,
    writing: Threads,
    readers: Queue<Reader>,
    reading: Threads,
}

impl Helpers {
    /// Waits for the last job.
    pub(crate) fn close(self) {
        drop((self.writer, self.readers));
        self.writing.join();
        self.reading.join();
    }
}

/// The file from one worker's side.
pub(crate) struct Sqlite {
    reader: Mutex<Reader>,
    timeout: Duration,
    writer: Queue<Connection>,
    readers: Queue<Reader>,
}

/// A read-only connection that aborts statements at a deadline.
struct Reader {
    connection: Connection,
    deadline: Deadline,
}

impl Reader {
    /// Opens a connection. `busy` is the maximum wait for locks, which are rare in WAL mode.
    fn open(path: &Path, busy: Duration) -> Result<Self, rusqlite::Error> {
        // Without SQLite's own mutex, because only one thread at a time uses each connection.
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags)?;
        equip(&connection, busy)?;
        let deadline = Deadline::never();
        let seen = deadline.clone();
        // The only way to abort a read: SQLite calls this handler every 10,000 instructions.
        connection.progress_handler(INSTRUCTIONS, Some(move || seen.is_over()))?;
        Ok(Self {
            connection,
            deadline,
        })
    }

    fn rows<E: Entity>(&self, statement: &Statement, time: Duration) -> Outcome<E> {
        // Set before each statement and never cleared: no statement runs in between that it could stop.
        self.deadline.set(time);
        query(&self.connection, statement)
    }
}

/// The result of a statement.
type Outcome<E> = Result<Vec<E>, QueryError>;

/// The deadline of the current statement.
#[derive(Debug, Clone)]
struct Deadline {
    start: Instant,
    /// Deadline in microseconds after the start. 0 means no deadline.
    at_us: Arc<AtomicU64>,
}

impl Deadline {
    fn never() -> Self {
        Self {
            start: clock::now(),
            at_us: Arc::default(),
        }
    }

    fn elapsed_us(&self) -> u64 {
        // Microseconds in 64 bits last for half a million years.
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn set(&self, time: Duration) {
        let time_us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        // Never 0, which means "no deadline".
        let at_us = self.elapsed_us().saturating_add(time_us).max(1);
        self.at_us.store(at_us, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        let at_us = self.at_us.load(Ordering::Relaxed);
        // Relaxed is enough: the same thread has set it, and the value orders no other access.
        at_us != 0 && self.elapsed_us() > at_us
    }
}

impl Sqlite {
    /// Opens the file for reading.
    pub(super) fn open(
        path: &Path,
        helpers: &Helpers,
        timeout: Duration,
    ) -> Result<Self, OpenError> {
        // A worker does not wait for locks. The reading threads do.
        let reader = Reader::open(path, Duration::ZERO);
        let reader = reader.map_err(|error| unusable(path, &error))?;
        Ok(Self {
            reader: Mutex::new(reader),
            timeout,
            writer: helpers.writer.clone(),
            readers: helpers.readers.clone(),
        })
    }

    pub(super) async fn rows<E: Entity>(&self, statement: Statement) -> Result<Vec<E>, StoreError> {
        let here = {
            let reader = self.reader.lock().map_err(|error| failed(&error))?;
            reader.rows(&statement, self.timeout.min(ON_WORKER))
        };
        match here {
            Err(error) if error.is_of_time() => {}
            here => return here.map_err(|error| self.cause(&error)),
        }
        let read = move |reader: &mut Reader, left| reader.rows(&statement, left);
        let rows = self.readers.ask(self.timeout, read).await?;
        rows.map_err(|error| self.cause(&error))
    }

    pub(super) async fn change<E: Entity>(
        &self,
        statement: Statement,
    ) -> Result<Vec<E>, StoreError> {
        let write = move |connection: &mut Connection, _| query(connection, &statement);
        let rows = self.writer.ask(self.timeout, write).await?;
        rows.map_err(|error| self.cause(&error))
    }

    /// Reads one row on the worker, because a service with a full queue is still alive.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let reader = self.reader.lock().map_err(|error| failed(&error))?;
        reader.deadline.set(self.timeout);
        let seeded = "SELECT COUNT(*) FROM catalog_seed";
        let count = reader.connection.query_row(seeded, [], |_| Ok(()));
        count.map_err(|error| self.cause(&error.into()))
    }

    fn cause(&self, error: &QueryError) -> StoreError {
        match error {
            QueryError::Sql(rusqlite::Error::SqliteFailure(failure, _)) => {
                match (failure.code, failure.extended_code) {
                    (ErrorCode::OperationInterrupted | ErrorCode::DatabaseBusy, _) => {
                        StoreError::TooSlow(self.timeout)
                    }
                    (_, ffi::SQLITE_CONSTRAINT_PRIMARYKEY | ffi::SQLITE_CONSTRAINT_UNIQUE) => {
                        StoreError::Duplicate
                    }
                    (_, ffi::SQLITE_CONSTRAINT_FOREIGNKEY) => StoreError::Reference,
                    // Only the number distinguishes a full disk from a removed file. The text does not.
                    (_, number) => {
                        failed(&format_args!("{error} (result code {number} of SQLite)"))
                    }
                }
            }
            _ => failed(error),
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum QueryError {
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
    #[error(transparent)]
    Row(#[from] RowError),
}

impl QueryError {
    /// True if the statement needed more time, or waited too long for a lock.
    fn is_of_time(&self) -> bool {
        matches!(self, Self::Sql(rusqlite::Error::SqliteFailure(failure, _))
            if matches!(failure.code, ErrorCode::OperationInterrupted | ErrorCode::DatabaseBusy))
    }

    /// True if another process holds a lock, which it will release.
    fn is_of_another(&self) -> bool {
        matches!(self, Self::Sql(rusqlite::Error::SqliteFailure(failure, _))
            if matches!(failure.code, ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
    }
}

fn query<E: Entity>(connection: &Connection, statement: &Statement) -> Outcome<E> {
    // Equal texts are prepared once per connection. See `select`.
    let mut prepared = connection.prepare_cached(&statement.text)?;
    let mut rows = prepared.query(params_from_iter(&statement.data))?;
    let mut entities = Vec::new();
    while let Some(row) = rows.next()? {
        entities.push(E::read(row)?);
    }
    Ok(entities)
}

/// Opens the file, updates its tables and starts the helper threads.
pub(super) fn prepare(path: &Path, config: &Config) -> Result<Helpers, OpenError> {
    let open = || -> Result<Connection, QueryError> {
        let mut connection = Connection::open(path)?;
        equip(&connection, config.statement_timeout)?;
        // A start may wait longer for another writing process than a statement may.
        connection.busy_timeout(config.connect_timeout)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        // In WAL mode this survives a crash of the process. Only a power failure may lose the last commits.
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        migrate(&mut connection, config.amount())?;
        connection.busy_timeout(config.statement_timeout)?;
        Ok(connection)
    };
    let unusable = |error: &dyn std::fmt::Display| unusable(path, error);
    let connection = patiently(config.connect_timeout, open).map_err(|error| unusable(&error))?;
    let (writer, writing) = queue::start("writer", vec![connection], config.queue())
        .map_err(|error| unusable(&error))?;
    let readers = (0..config.read_threads).map(|_| Reader::open(path, config.statement_timeout));
    let readers = readers.collect::<Result<Vec<_>, _>>();
    let readers = readers.map_err(|error| unusable(&error))?;
    let (readers, reading) =
        queue::start("reader", readers, config.queue()).map_err(|error| unusable(&error))?;
    Ok(Helpers {
        writer,
        writing,
        readers,
        reading,
    })
}

/// Repeats an attempt while another process holds the file. SQLite's own wait is not enough. If two processes
/// change the journal of a new file at once, it fails for one of them without a wait.
#[expect(
    clippy::disallowed_methods,
    reason = "a start that waits has nothing else to do, and SQLite does not notify when a file is free"
)]
fn patiently<T>(
    time: Duration,
    attempt: impl Fn() -> Result<T, QueryError>,
) -> Result<T, QueryError> {
    let start = clock::now();
    loop {
        match attempt() {
            // Checked after the attempt, so that there is always one attempt.
            Err(error) if error.is_of_another() && start.elapsed() < time => {
                thread::sleep(BETWEEN_ATTEMPTS);
            }
            outcome => return outcome,
        }
    }
}

fn equip(connection: &Connection, timeout: Duration) -> Result<(), rusqlite::Error> {
    rusqlite::vtab::array::load_module(connection)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    connection.busy_timeout(timeout)
}

fn unusable(path: &Path, error: &dyn std::fmt::Display) -> OpenError {
    OpenError::Sqlite {
        path: path.display().to_string(),
        reason: error.to_string(),
    }
}

fn migrate(connection: &mut Connection, amount: Amount) -> Result<(), QueryError> {
    // Takes the write lock at once: the second of two processes then waits for the first.
    let all = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    all.execute(migrations::TABLE, [])?;
    let had = all.query_row(migrations::COUNT, [], |row| row.get(0))?;
    let missing = migrations::missing(had)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    for (number, migration) in missing {
        all.execute_batch(migration.sqlite)?;
        all.execute(migrations::RECORD, (number, migration.name))?;
        tracing::info!(number, name = migration.name, "migrated");
    }
    let is_new = all.query_row("SELECT COUNT(*) = 0 FROM catalog_seed", [], |row| {
        row.get(0)
    })?;
    if is_new {
        let (products, items) = seed::rows(amount);
        insert(&all, &products)?;
        insert(&all, &items)?;
        let seeded = "INSERT INTO catalog_seed (products, line_items) VALUES ($1, $2)";
        all.execute(seeded, (amount.products, amount.line_items))?;
        all.execute_batch("ANALYZE")?;
        tracing::info!(
            products = amount.products,
            line_items = amount.line_items,
            "seeded"
        );
    }
    Ok(all.commit()?)
}

fn insert<E: Entity>(connection: &Connection, entities: &[E]) -> Result<(), rusqlite::Error> {
    for entity in entities {
        let statement = Statement::insert(E::TABLE, entity.data());
        let mut prepared = connection.prepare_cached(&statement.text)?;
        let mut rows = prepared.query(params_from_iter(&statement.data))?;
        while rows.next()?.is_some() {}
    }
    Ok(())
}

impl ToSql for Datum {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let blob = |id: &Id| Value::Blob(id.0.as_bytes().to_vec());
        let array = |values: Vec<Value>| ToSqlOutput::from_rc(Rc::new(values), ARRAY);
        Ok(match self {
            Self::Id(id) => ToSqlOutput::Borrowed(ValueRef::Blob(id.0.as_bytes())),
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Self::Integer(number) => ToSqlOutput::Owned(Value::Integer((*number).into())),
            Self::Moment(moment) => ToSqlOutput::Owned(Value::Integer(moment.us())),
            Self::Count(count) => ToSqlOutput::Owned(Value::Integer(*count)),
            Self::Ids(ids) => array(ids.iter().map(blob).collect()),
            Self::Texts(texts) => array(texts.iter().cloned().map(Value::Text).collect()),
            Self::Integers(numbers) => array(
                numbers
                    .iter()
                    .map(|it| Value::Integer((*it).into()))
                    .collect(),
            ),
            Self::Moments(moments) => {
                array(moments.iter().map(|it| Value::Integer(it.us())).collect())
            }
        })
    }
}

impl Row for rusqlite::Row<'_> {
    fn id(&self, column: usize) -> Result<Id, RowError> {
        let value = self.get_ref(column).map_err(wrong(column))?;
        let bytes = value.as_blob().map_err(wrong(column))?;
        Uuid::from_slice(bytes).map(Id).map_err(wrong(column))
    }

    fn text(&self, column: usize) -> Result<String, RowError> {
        self.get(column).map_err(wrong(column))
    }

    fn integer(&self, column: usize) -> Result<i32, RowError> {
        self.get(column).map_err(wrong(column))
    }

    fn moment(&self, column: usize) -> Result<Moment, RowError> {
        let us = self.get(column).map_err(wrong(column))?;
        let found = Moment::from_us(us);
        found.ok_or_else(|| wrong(column)("the time is not within the years 1 to 9999"))
    }
}

fn wrong<T: std::fmt::Display>(column: usize) -> impl Fn(T) -> RowError {
    move |reason| RowError {
        column,
        reason: reason.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use futures_util::future::{join, join4};

    use super::*;
    use crate::entity::Product;

    /// A read that never ends by itself.
    fn endless() -> Statement {
        Statement {
            text: "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) \
                   SELECT i FROM n WHERE i < 0"
                .to_owned(),
            data: Vec::new(),
        }
    }

    /// A small file, from a worker's side.
    fn with_sqlite<T>(flags: &[&str], work: impl AsyncFnOnce(&Sqlite) -> T) -> T {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("catalog.sqlite3");
        let seeds = ["catalog", "--seed-products=10", "--seed-line-items=10"];
        let config = Config::try_parse_from(seeds.iter().chain(flags)).unwrap();
        let helpers = prepare(&path, &config).unwrap();
        let sqlite = Sqlite::open(&path, &helpers, config.statement_timeout).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let result = runtime.unwrap().block_on(work(&sqlite));
        drop(sqlite);
        helpers.close();
        result
    }

    #[test]
    fn a_long_read_does_not_hold_the_worker() {
        let timeout = Duration::from_secs(3);
        with_sqlite(&["--statement-timeout=3s"], async |sqlite| {
            let start = clock::now();
            let short = async {
                let by_id = "SELECT id, name, price, created_at, updated_at FROM product LIMIT 1";
                let statement = Statement {
                    text: by_id.to_owned(),
                    data: Vec::new(),
                };
                let rows = sqlite.rows::<Product>(statement).await;
                (rows.map(|rows| rows.len()), start.elapsed())
            };
            // The long read first, on the single thread that both reads share.
            let (long, (short, took)) = join(sqlite.rows::<Product>(endless()), short).await;
            assert_eq!((short, long), (Ok(1), Err(StoreError::TooSlow(timeout))));
            assert!(took < timeout / 2, "{took:?}");
        });
    }

    #[test]
    fn only_so_many_long_reads_wait() {
        let flags = ["--statement-timeout=500ms", "--read-threads=1", "--queue=1"];
        with_sqlite(&flags, async |sqlite| {
            let read = || sqlite.rows::<Product>(endless());
            let (a, b, c, d) = join4(read(), read(), read(), read()).await;
            let outcomes = [a, b, c, d];
            let count = |error: &StoreError| {
                let is = |outcome: &&Result<_, _>| outcome.as_ref().err() == Some(error);
                outcomes.iter().filter(is).count()
            };
            let busy = count(&StoreError::Busy);
            // One runs and one waits. The second may have arrived before the thread took the first.
            assert!((2..=3).contains(&busy), "{outcomes:?}");
            let slow = count(&StoreError::TooSlow(Duration::from_millis(500)));
            assert_eq!(busy + slow, 4, "{outcomes:?}");
        });
    }
}
