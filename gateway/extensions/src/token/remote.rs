//! Key sets at URLs, fetched once for the whole process.
//!
//! All workers share a set. The generations before and after a reload share it too, so a reload while the key
//! server is down loses no keys. The main thread polls ([`TokenKeys::refresh`]). A worker fetches only if a
//! token needs a missing key, and then one fetch serves all waiting requests.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::Duration;

use bytes::Bytes;
use gateway_config::{Jwks, KeySource};
use gateway_upstream::{Call, Client, EndpointError, Policy, UpstreamEndpoint};
use http::{HeaderMap, Method};
use tokio::time::Instant;

use super::keys::{self, Key};

/// Time limit of one fetch.
const FETCH_LIMIT: Duration = Duration::from_secs(10);
/// Pause after a failed fetch, because many requests can lack a key at one moment.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// The key sets of a process. A reload finds the sets of unchanged URLs here.
#[derive(Debug, Default)]
pub struct KeyStore(Mutex<HashMap<String, Weak<TokenKeys>>>);

impl KeyStore {
    /// The key set of this configuration, or `None` if it is in a file.
    pub(crate) fn get(&self, config: &Jwks) -> Result<Option<Arc<TokenKeys>>, EndpointError> {
        let KeySource::Url(url) = &*config.url else {
            return Ok(None);
        };
        // Other request headers may return other keys, so headers are part of the lookup.
        let headers = config.headers.iter();
        let headers: Vec<_> = headers.map(|it| (&*it.name, it.value.as_bytes())).collect();
        let identity = format!("{url} {headers:?}");
        let mut sets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sets.retain(|_, set| set.strong_count() > 0);
        if let Some(set) = sets.get(&identity).and_then(Weak::upgrade) {
            return Ok(Some(set));
        }
        let set = Arc::new(TokenKeys::new(
            config,
            UpstreamEndpoint::from_uri(url, Policy::default())?,
        ));
        sets.insert(identity, Arc::downgrade(&set));
        Ok(Some(set))
    }
}

/// A key set at a URL.
#[derive(Debug)]
pub struct TokenKeys {
    endpoint: UpstreamEndpoint,
    headers: HeaderMap,
    known: RwLock<Arc<[Key]>>,
    /// Number of times that `known` was replaced. 0 until the first keys arrive.
    version: AtomicU64,
    /// Locked during a fetch.
    flight: tokio::sync::Mutex<()>,
    last: Mutex<Last>,
}

/// The last fetch.
#[derive(Debug, Default)]
struct Last {
    asked: Option<Instant>,
    /// The error of the fetch, or `None` if it succeeded.
    failure: Option<String>,
}

impl TokenKeys {
    fn new(config: &Jwks, endpoint: UpstreamEndpoint) -> Self {
        let mut headers = HeaderMap::new();
        for header in &config.headers {
            headers.append((*header.name).clone(), (*header.value).clone());
        }
        Self {
            endpoint,
            headers,
            known: RwLock::new(Arc::new([])),
            version: AtomicU64::new(0),
            flight: tokio::sync::Mutex::default(),
            last: Mutex::default(),
        }
    }

    /// The URL of the key set.
    pub fn url(&self) -> &str {
        self.endpoint.as_str()
    }

    /// The reason why there is no key yet. `None` after the first successful fetch.
    pub fn missing(&self) -> Option<String> {
        if self.version() > 0 {
            return None;
        }
        let failure = self.last().failure.clone();
        Some(failure.unwrap_or_else(|| "the keys have not been asked for yet".to_owned()))
    }

    /// Fetches the keys. If that fails, the old keys stay.
    pub async fn refresh(&self, client: &Client) {
        let _flight = self.flight.lock().await;
        self.ask(client).await;
    }

    /// Fetches the keys unless the last fetch was within `pause`. If a fetch is running, waits for it.
    pub(super) async fn refresh_after(&self, pause: Duration, client: &Client) {
        let before = self.version();
        let _flight = self.flight.lock().await;
        // Another task may have fetched the keys while this one waited for the lock.
        if self.version() != before {
            return;
        }
        let pause = {
            let last = self.last();
            let pause = match last.failure {
                Some(_) => PAUSE_AFTER_FAILURE,
                None => pause,
            };
            last.asked.is_some_and(|asked| asked.elapsed() < pause)
        };
        if !pause {
            self.ask(client).await;
        }
    }

    async fn ask(&self, client: &Client) {
        let call = Call {
            method: Method::GET,
            headers: &self.headers,
            rendered_headers: b"accept: application/json\r\n",
            body: Bytes::new(),
            timeout: Some(FETCH_LIMIT),
            reply_bytes_max: None,
            is_idempotent: true,
        };
        let read = match client.send(&self.endpoint, call).await {
            Ok(reply) if reply.status.is_success() => {
                keys::read(&reply.body, self.url()).map_err(|error| error.to_string())
            }
            Ok(reply) => Err(format!("status {}", reply.status)),
            Err(error) => Err(error.to_string()),
        };
        let failure = match read {
            Ok(keys) => {
                self.replace(keys);
                None
            }
            Err(reason) => {
                log::error!("keys of tokens from {}: {reason}", self.url());
                Some(reason)
            }
        };
        *self.last() = Last {
            asked: Some(Instant::now()),
            failure,
        };
    }

    fn replace(&self, keys: Vec<Key>) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        *known = keys.into();
        // Under the lock: a reader that sees this version finds its keys, or later keys.
        let before = self.version.fetch_add(1, Ordering::Release);
        drop(known);
        if before == 0 {
            log::info!("keys of tokens from {} are available now", self.url());
        }
    }

    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub(super) fn known(&self) -> Arc<[Key]> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&known)
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
