//! The schemas of the services in `remote_schemas`, with retries for services that do not respond.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use gateway_config::{Config, RemoteSchema};
use gateway_extensions::subgraph_endpoint;
use gateway_remote::{INTROSPECTION_BODIES, IntrospectionError, SourceSchema};
use gateway_upstream::{Call, Client};
use http::{HeaderMap, Method};

/// First and longest pause between two requests to a service.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// The schemas of the services, until their next fetch.
#[derive(Debug, Default)]
pub(crate) struct Remotes {
    known: HashMap<String, Arc<SourceSchema>>,
    /// Services that did not respond, with the reason.
    pub(crate) missing: Vec<(String, String)>,
}

/// Identifies a service across configurations.
fn identity(remote: &RemoteSchema) -> String {
    format!("{} {} {:?}", remote.name, remote.url.0, remote.headers)
}

impl Remotes {
    /// Fetches the schemas of all services of a configuration. A service that does not respond keeps its
    /// former schema. Waits at most `patience`.
    pub(crate) async fn ask_all(&mut self, client: &Client, config: &Config, patience: Duration) {
        let asking = config.remote_schemas.iter().map(|remote| async move {
            let limit = remote.timeout.0.min(patience);
            (remote, ask(client, config, remote, limit).await)
        });
        let answers = join_all(asking).await;
        self.missing.clear();
        // A new table, to drop services that are no longer in the configuration.
        let mut known = HashMap::new();
        for (remote, answer) in answers {
            let key = identity(remote);
            match answer {
                Ok(schema) => {
                    known.insert(key, Arc::new(schema));
                }
                Err(reason) => {
                    log::warn!("the remote schema `{}` is missing: {reason}", remote.name);
                    if let Some(schema) = self.known.remove(&key) {
                        known.insert(key, schema);
                    }
                    self.missing.push((remote.name.clone(), reason));
                }
            }
        }
        self.known = known;
    }

    /// Stores the schema of a service that was missing.
    pub(crate) fn schema_loaded(&mut self, remote: &RemoteSchema, schema: SourceSchema) {
        self.known.insert(identity(remote), Arc::new(schema));
        self.missing.retain(|(name, _)| *name != remote.name);
    }

    /// The known schemas of a configuration's services, in its order. `None` for a missing schema.
    pub(crate) fn schemas(&self, config: &Config) -> Vec<Option<Arc<SourceSchema>>> {
        let remotes = config.remote_schemas.iter();
        remotes
            .map(|remote| self.known.get(&identity(remote)).cloned())
            .collect()
    }
}

/// Requests a schema until the service responds, or until a new configuration replaces the current one.
pub(crate) async fn ask_until_loaded(
    client: &Client,
    config: &Config,
    remote: &RemoteSchema,
    round: &Weak<()>,
) -> Option<SourceSchema> {
    // Doubles from 100 ms, so that services that start together with the gateway are found soon. A service
    // that stays down costs one request every 5 s.
    let (mut pause, longest) = PAUSES;
    loop {
        // Before the first attempt, too, because the service has just failed to respond.
        tokio::time::sleep(pause).await;
        if round.strong_count() == 0 {
            return None;
        }
        match ask(client, config, remote, remote.timeout.0).await {
            Ok(schema) => return Some(schema),
            Err(reason) => {
                log::debug!("the remote schema `{}` is missing: {reason}", remote.name);
            }
        }
        pause = (pause * 2).min(longest);
    }
}

/// Requests the schema of a service, with the configured headers. There is no client request, so no client
/// headers are added.
async fn ask(
    client: &Client,
    config: &Config,
    remote: &RemoteSchema,
    limit: Duration,
) -> Result<SourceSchema, String> {
    let endpoint = subgraph_endpoint(config, &remote.name, &remote.url.0.to_string())
        .map_err(|error| error.to_string())?;
    let mut headers = HeaderMap::new();
    for header in &remote.headers {
        headers.insert(header.name.0.clone(), header.value.0.clone());
    }
    let types_max = config.limits.remote_schema_max_types.get();
    let mut refusal = String::new();
    for body in INTROSPECTION_BODIES {
        let call = Call {
            method: Method::POST,
            headers: &headers,
            rendered_headers: b"content-type: application/json\r\naccept: application/json\r\n",
            body: Bytes::from_static(body.as_bytes()),
            timeout: Some(limit),
            reply_bytes_max: Some(config.limits.remote_schema_max_bytes.0.0),
            is_idempotent: true,
        };
        let reply = client.send(&endpoint, call).await;
        let reply = reply.map_err(|error| error.to_string())?;
        let read = SourceSchema::read(&reply.body, types_max);
        let with_status = |error| format!("{error} (status {})", reply.status.as_u16());
        match read {
            Ok(schema) => return Ok(schema),
            Err(error @ IntrospectionError::TooManyTypes { .. }) => return Err(with_status(error)),
            // A service that fails would fail for an older query, too.
            Err(error) if reply.status.is_server_error() => return Err(with_status(error)),
            // A service of an older specification refuses fields that it does not know.
            Err(error) => refusal = with_status(error),
        }
    }
    Err(refusal)
}
