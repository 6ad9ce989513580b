//! One attempt to connect: to a server, or by sentinels to the master that they name.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, ErrorKind,
    IntoConnectionInfo as _, RedisConnectionInfo, RedisError, Value,
};
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::outage::{CONNECT_TIMEOUT, ConnectError};
use crate::target::{RedisTarget, Route, Sentinels};
use crate::tls;

/// Pause between two questions to the sentinels for the current master.
const SENTINEL_PAUSE: Duration = Duration::from_secs(1);

/// Opens a connection to the Redis with the data. Returns it with the address of the server.
pub(crate) async fn connect(
    target: &RedisTarget,
) -> Result<(MultiplexedConnection, String), ConnectError> {
    match &target.route {
        Route::Direct(info) => {
            let connection = open(target, info, &target.settings).await?;
            Ok((connection, info.addr().to_string()))
        }
        Route::Sentinels(sentinels) => by_sentinels(target, sentinels).await,
    }
}

/// Asks each sentinel in turn until one names a server that is a master.
async fn by_sentinels(
    target: &RedisTarget,
    sentinels: &Sentinels,
) -> Result<(MultiplexedConnection, String), ConnectError> {
    let (mut silent, mut wrong) = (Vec::new(), Vec::new());
    for (host, port) in &sentinels.hosts {
        let sentinel = info(host, *port)?;
        let master = match ask_sentinel(target, sentinels, &sentinel).await {
            Ok(Some(master)) => master,
            Ok(None) => {
                let name = &sentinels.master;
                wrong.push(format!("{host}:{port} does not know `{name}`"));
                continue;
            }
            // These need the user, and another sentinel would only hide them.
            Err(error @ (ConnectError::Login(_) | ConnectError::Certificate(_))) => {
                return Err(error);
            }
            Err(error) => {
                silent.push(error.to_string());
                continue;
            }
        };
        match open_master(target, &master).await {
            Ok(connection) => return Ok((connection, master.addr().to_string())),
            Err(error @ (ConnectError::Login(_) | ConnectError::Certificate(_))) => {
                return Err(error);
            }
            Err(error) => wrong.push(error.to_string()),
        }
    }
    if wrong.is_empty() {
        Err(ConnectError::NoSentinel(silent.join(", ")))
    } else {
        Err(ConnectError::NoMaster(wrong.join(", ")))
    }
}

/// Returns the address of another master as soon as the sentinels name one. It never returns for a target
/// without sentinels.
///
/// A master that was replaced can still accept writes for ten seconds, until a sentinel demotes it. Those
/// writes are lost.
pub(crate) async fn replaced(target: &RedisTarget, server: &str) -> String {
    let Route::Sentinels(sentinels) = &target.route else {
        return std::future::pending().await;
    };
    let mut kept = None;
    loop {
        sleep(SENTINEL_PAUSE).await;
        let master = named_master(target, sentinels, &mut kept).await;
        let other = master.map(|master| master.addr().to_string());
        if let Some(other) = other.filter(|other| other != server) {
            return other;
        }
    }
}

/// The master that the first answering sentinel names. `kept` is the connection to it for the next question.
async fn named_master(
    target: &RedisTarget,
    sentinels: &Sentinels,
    kept: &mut Option<MultiplexedConnection>,
) -> Option<ConnectionInfo> {
    if let Some(mut connection) = kept.take()
        && let Ok(Some(master)) = master_of(&mut connection, sentinels).await
    {
        *kept = Some(connection);
        return Some(master);
    }
    for (host, port) in &sentinels.hosts {
        let Ok(sentinel) = info(host, *port) else {
            continue;
        };
        let opened = open(target, &sentinel, &sentinels.settings).await;
        let Ok(mut connection) = opened else {
            continue;
        };
        if let Ok(Some(master)) = master_of(&mut connection, sentinels).await {
            *kept = Some(connection);
            return Some(master);
        }
    }
    None
}

async fn ask_sentinel(
    target: &RedisTarget,
    sentinels: &Sentinels,
    sentinel: &ConnectionInfo,
) -> Result<Option<ConnectionInfo>, ConnectError> {
    let mut connection = open(target, sentinel, &sentinels.settings).await?;
    let master = master_of(&mut connection, sentinels).await;
    master.map_err(|error| error.at(&sentinel.addr().to_string()))
}

/// The address of the master, from the sentinel of this connection. `None` if it does not know the name.
async fn master_of(
    connection: &mut MultiplexedConnection,
    sentinels: &Sentinels,
) -> Result<Option<ConnectionInfo>, ConnectError> {
    let mut command = redis::cmd("SENTINEL");
    command
        .arg("GET-MASTER-ADDR-BY-NAME")
        .arg(&sentinels.master);
    let asked = command.query_async::<Option<(String, u16)>>(connection);
    match limited(asked).await? {
        Some((host, port)) => info(&host, port).map(Some),
        None => Ok(None),
    }
}

/// Opens a connection to a server that a sentinel named, if this server is a master. A sentinel can be late,
/// and a replica would refuse to write.
async fn open_master(
    target: &RedisTarget,
    master: &ConnectionInfo,
) -> Result<MultiplexedConnection, ConnectError> {
    let mut connection = open(target, master, &target.settings).await?;
    let address = master.addr().to_string();
    let command = redis::cmd("ROLE");
    let asked = command.query_async::<Vec<Value>>(&mut connection);
    let role = limited(asked).await.map_err(|error| error.at(&address))?;
    let role: Option<String> = role
        .first()
        .and_then(|role| redis::from_redis_value_ref(role).ok());
    match role.as_deref() {
        Some("master") => Ok(connection),
        role => {
            let role = role.unwrap_or("unknown");
            let text = format!("{address}: expected a master, found the role `{role}`");
            Err(ConnectError::Unreachable(text))
        }
    }
}

/// Opens a connection to this address, with TLS if the target has it.
async fn open(
    target: &RedisTarget,
    info: &ConnectionInfo,
    settings: &RedisConnectionInfo,
) -> Result<MultiplexedConnection, ConnectError> {
    let opened = match (&target.tls, info.addr()) {
        (Some(config), ConnectionAddr::Tcp(host, port)) => {
            let stream = limited_io(TcpStream::connect((host.as_str(), *port))).await;
            match stream {
                Ok(stream) => open_tls(config, host, stream, settings).await,
                Err(error) => Err(error),
            }
        }
        _ => open_plain(info.clone().set_redis_settings(settings.clone())).await,
    };
    opened.map_err(|error| error.at(&info.addr().to_string()))
}

async fn open_plain(info: ConnectionInfo) -> Result<MultiplexedConnection, ConnectError> {
    let client = Client::open(info).map_err(|error| of_redis(&error))?;
    let config = settings_of_connection();
    limited(client.get_multiplexed_async_connection_with_config(&config)).await
}

async fn open_tls(
    config: &Arc<ClientConfig>,
    host: &str,
    stream: TcpStream,
    settings: &RedisConnectionInfo,
) -> Result<MultiplexedConnection, ConnectError> {
    let without_delay = stream.set_nodelay(true);
    without_delay.map_err(|error| ConnectError::Unreachable(error.to_string()))?;
    let handshake = timeout(CONNECT_TIMEOUT, tls::handshake(config, host, stream));
    let Ok(stream) = handshake.await else {
        // A Redis without TLS waits for the end of a line.
        return Err(ConnectError::NoTls(format!(
            "it did not answer the start of TLS within {CONNECT_TIMEOUT:?}"
        )));
    };
    let connection = settings_of_connection();
    let opening = MultiplexedConnection::new_with_config(settings, stream?, connection);
    let (connection, driver) = limited(opening).await?;
    // It ends with the last handle of the connection.
    tokio::spawn(driver);
    Ok(connection)
}

fn settings_of_connection() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        // Without a limit: each command has its own deadline, and late responses must still be read from the
        // connection.
        .set_response_timeout(None)
}

fn info(host: &str, port: u16) -> Result<ConnectionInfo, ConnectError> {
    let info = (host, port).into_connection_info();
    info.map_err(|error| of_redis(&error))
}

async fn limited<T>(work: impl Future<Output = Result<T, RedisError>>) -> Result<T, ConnectError> {
    match timeout(CONNECT_TIMEOUT, work).await {
        Ok(done) => done.map_err(|error| of_redis(&error)),
        Err(_) => Err(ConnectError::Silent),
    }
}

async fn limited_io<T>(work: impl Future<Output = std::io::Result<T>>) -> Result<T, ConnectError> {
    match timeout(CONNECT_TIMEOUT, work).await {
        Ok(done) => done.map_err(|error| ConnectError::Unreachable(error.to_string())),
        Err(_) => Err(ConnectError::Silent),
    }
}

/// The reason for an error of the redis crate.
fn of_redis(error: &RedisError) -> ConnectError {
    let text = error.to_string();
    let codes = ["NOAUTH", "WRONGPASS", "NOPERM"];
    if error.kind() == ErrorKind::AuthenticationFailed
        || codes.iter().any(|code| text.contains(code))
    {
        ConnectError::Login(text)
    } else if tls::is_of_certificate(&text) {
        tls::refused_identity(&text)
    } else {
        ConnectError::Unreachable(text)
    }
}
