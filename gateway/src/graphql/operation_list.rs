//! A list of known operations. Clients send ids from the list. With a safelist, the gateway executes only
//! operations from the list.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use gateway_config::{Config, PersistedQueries};
use gateway_extensions::{CLIENT_NAME, Exchange};
use gateway_federation::{GraphqlError, canonical};
use graphql_http::{GraphqlRequest, Media, RawObject};
use http::StatusCode;
use http::header::{self, HeaderValue};
use operation_cache::{Bounds, Keep, Key, OperationCache};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::graphql::apq::Reason;
use crate::http::reply::{self, Refusal};
use crate::process::metrics::Listed;

/// The reason why a manifest cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ManifestError {
    #[error("cannot read the manifest `{}`: {source}", path.display())]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("the manifest `{}` cannot be used: {reason}", path.display())]
    Content { path: PathBuf, reason: String },
}

/// A manifest, as the tools of Apollo's clients write it.
#[derive(Deserialize)]
struct Manifest {
    format: String,
    version: u64,
    operations: Vec<Listing>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listing {
    id: String,
    body: String,
    client_name: Option<String>,
}

/// The operations of all manifests.
#[derive(Debug)]
pub(crate) struct OperationList {
    /// Texts by id and client. The key `None` contains the texts for all clients.
    by_id: HashMap<String, HashMap<Option<String>, Arc<str>>>,
    /// Texts exactly as in the manifests.
    texts: HashSet<Arc<str>>,
    /// The texts in their canonical form.
    canonical: HashSet<String>,
    /// Cached decisions on other texts: true if the text is in the list. So each text is parsed once.
    judged: OperationCache<bool>,
    is_safelist: bool,
    requires_id: bool,
    logs_unknown: bool,
    /// True if clients may also send hashes of unlisted texts.
    takes_hashes: bool,
    allows_introspection: bool,
    tokens_max: usize,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    requests: AtomicU64,
    not_found: AtomicU64,
    rejected: AtomicU64,
    unknown: AtomicU64,
}

/// Limits of the cache of decisions. Texts longer than `JUDGED_TEXT_MAX` are parsed each time.
const JUDGED: Bounds = Bounds {
    entries: 4_096,
    bytes: 8 << 20,
};
const JUDGED_TEXT_MAX: usize = 64 << 10;

/// Context entries that stages read or set, as in the original.
const LIST_CLIENT_NAME: &str = "apollo_persisted_queries::client_name";
const USED_ID: &str = "apollo::supergraph::persisted_query_id";

const FORMAT: &str = "apollo-persisted-query-manifest";

impl OperationList {
    /// Reads the manifests. `None` if the list is off.
    pub(crate) fn read(config: &Config) -> Result<Option<Self>, ManifestError> {
        let queries = &config.persisted_queries;
        if !queries.enabled {
            return Ok(None);
        }
        let mut list = Self {
            by_id: HashMap::new(),
            texts: HashSet::new(),
            canonical: HashSet::new(),
            judged: OperationCache::new(JUDGED),
            is_safelist: queries.safelist.enabled,
            requires_id: queries.safelist.require_id,
            logs_unknown: queries.log_unknown,
            takes_hashes: config.apq.enabled,
            allows_introspection: config.supergraph.introspection,
            tokens_max: config.limits.parser_max_tokens,
            counts: Counts::default(),
        };
        for path in files(queries) {
            let text = std::fs::read(path).map_err(|source| ManifestError::File {
                path: path.clone(),
                source,
            })?;
            list.add(path, &text)?;
        }
        log::info!("{} operations are in the list", list.by_id.len());
        Ok(Some(list))
    }

    fn add(&mut self, path: &Path, text: &[u8]) -> Result<(), ManifestError> {
        let wrong = |reason: String| ManifestError::Content {
            path: path.to_owned(),
            reason,
        };
        let manifest: Manifest =
            serde_json::from_slice(text).map_err(|error| wrong(error.to_string()))?;
        if manifest.format != FORMAT || manifest.version != 1 {
            let (format, version) = (manifest.format, manifest.version);
            return Err(wrong(format!(
                "expected the format `{FORMAT}` in version 1, found `{format}` in version {version}"
            )));
        }
        for Listing {
            id,
            body,
            client_name,
        } in manifest.operations
        {
            let body: Arc<str> = body.into();
            // An invalid text stays in the list. A client that sends its id receives the parser's error.
            if let Some(form) = canonical(&body, self.tokens_max) {
                self.canonical.insert(form.text);
            }
            self.texts.insert(Arc::clone(&body));
            let clients = self.by_id.entry(id.clone()).or_default();
            let known = clients.insert(client_name, Arc::clone(&body));
            if known.is_some_and(|known| known != body) {
                return Err(wrong(format!("the id `{id}` has two texts")));
            }
        }
        Ok(())
    }

    /// Replaces an id by its text. Returns true if it did.
    ///
    /// # Errors
    /// Returns the response to an unlisted id, or to a text if only ids are allowed.
    pub(crate) fn supply(
        &self,
        exchange: &Exchange,
        media: Media,
        body: &mut Bytes,
    ) -> Result<bool, Refusal> {
        add(&self.counts.requests);
        let read = graphql_http::from_checked_body_or_hash::<RawObject<'_>, RawObject<'_>>(body);
        // Invalid requests pass here. The parser rejects them later.
        let Ok(request) = read else {
            return Ok(false);
        };
        let text = request.query.as_deref().filter(|text| !text.is_empty());
        let Some((id, others)) = request.extensions.as_ref().and_then(asked) else {
            if self.requires_id && !self.is_open(text) {
                if let Some(text) = text {
                    self.note_unknown(text);
                }
                add(&self.counts.rejected);
                return Err(refusal(StatusCode::BAD_REQUEST, media, ID_REQUIRED, true));
            }
            return Ok(false);
        };
        // Without a safelist, clients may register texts by their hashes.
        let may_register = self.takes_hashes && !self.is_safelist;
        if text.is_some() {
            if may_register {
                return Ok(false);
            }
            return Err(refusal(StatusCode::BAD_REQUEST, media, ID_AND_BODY, false));
        }
        let Some(text) = self.find(&id, exchange) else {
            if may_register {
                return Ok(false);
            }
            add(&self.counts.not_found);
            let message = format!("Persisted query '{id}' not found in the persisted query list");
            let why = Reason {
                message: &message,
                code: "PERSISTED_QUERY_NOT_IN_LIST",
            };
            return Err(refusal(StatusCode::NOT_FOUND, media, why, false));
        };
        exchange.context.insert(USED_ID, id.into());
        let rest = Value::Object(others).to_string();
        let rest: Option<RawObject<'_>> = serde_json::from_str(&rest).ok();
        *body = graphql_http::to_json(&GraphqlRequest {
            query: (&*text).into(),
            operation_name: request.operation_name,
            variables: request.variables,
            extensions: rest.filter(|it| it.text() != "{}"),
        })
        .into();
        Ok(true)
    }

    /// Checks that a text without an id may be executed.
    ///
    /// # Errors
    /// Returns the response to a text that is not in the safelist.
    pub(crate) fn admit(&self, media: Media, body: &Bytes) -> Result<(), Refusal> {
        if !self.is_safelist && !self.logs_unknown {
            return Ok(());
        }
        let read = graphql_http::from_checked_body_or_hash::<RawObject<'_>, RawObject<'_>>(body);
        let text = read.ok().and_then(|it| it.query);
        let Some(text) = text.filter(|text| !text.is_empty()) else {
            return Ok(());
        };
        if self.is_known(&text) {
            return Ok(());
        }
        self.note_unknown(&text);
        if !self.is_safelist {
            return Ok(());
        }
        add(&self.counts.rejected);
        Err(refusal(StatusCode::FORBIDDEN, media, NOT_LISTED, false))
    }

    pub(crate) fn counts(&self) -> Listed {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counts = &self.counts;
        Listed {
            requests: read(&counts.requests),
            not_found: read(&counts.not_found),
            rejected: read(&counts.rejected),
            unknown: read(&counts.unknown),
        }
    }

    fn find(&self, id: &str, exchange: &Exchange) -> Option<Arc<str>> {
        let clients = self.by_id.get(id)?;
        let client = exchange.context.text(LIST_CLIENT_NAME);
        let client = client.or_else(|| exchange.context.text(CLIENT_NAME));
        let own = client.is_some().then(|| clients.get(&client)).flatten();
        own.or_else(|| clients.get(&None)).cloned()
    }

    /// True if the text contains only introspection and introspection is on.
    fn is_open(&self, text: Option<&str>) -> bool {
        let form = |text: &str| canonical(text, self.tokens_max);
        self.allows_introspection && text.and_then(form).is_some_and(|it| it.is_introspection)
    }

    fn is_known(&self, text: &str) -> bool {
        if self.texts.contains(text) {
            return true;
        }
        let judge = || {
            // A text that cannot be parsed is in no list.
            canonical(text, self.tokens_max).is_some_and(|form| {
                self.canonical.contains(&form.text)
                    || (self.allows_introspection && form.is_introspection)
            })
        };
        if text.len() > JUDGED_TEXT_MAX {
            return judge();
        }
        let bytes = text.len();
        let keep = || (judge(), Keep::Yes { bytes });
        self.judged.get_or_make(Key::new(text, None), keep)
    }

    fn note_unknown(&self, text: &str) {
        add(&self.counts.unknown);
        if self.logs_unknown {
            // Truncated to the maximum length in a log line.
            let shown: String = text.chars().take(LOGGED_MAX).collect();
            tracing::warn!(operation_body = shown, "unknown operation");
        }
    }
}

/// Maximum number of logged characters of an unknown operation.
const LOGGED_MAX: usize = 4_000;

/// The manifest files of a configuration. Empty if the list is off.
pub(crate) fn files(queries: &PersistedQueries) -> impl Iterator<Item = &PathBuf> {
    let is_on = queries.enabled;
    queries
        .local_manifests
        .iter()
        .flatten()
        .filter(move |_| is_on)
}

/// The id in `extensions`, and the remaining members of `extensions`.
fn asked(extensions: &RawObject<'_>) -> Option<(String, Map<String, Value>)> {
    let mut all: Map<String, Value> = serde_json::from_str(extensions.text()).ok()?;
    let persisted = all.remove("persistedQuery")?;
    if persisted["version"] != 1 {
        return None;
    }
    Some((persisted["sha256Hash"].as_str()?.to_owned(), all))
}

fn add(counter: &AtomicU64) {
    // Relaxed: the counter is only displayed and guards no memory.
    counter.fetch_add(1, Ordering::Relaxed);
}

const ID_REQUIRED: Reason<'_> = Reason {
    message: "This endpoint does not allow freeform GraphQL requests; operations must be sent by ID in the persisted queries GraphQL extension.",
    code: "PERSISTED_QUERY_ID_REQUIRED",
};

const ID_AND_BODY: Reason<'_> = Reason {
    message: "Sending a persisted query ID and a body in the same request is disallowed",
    code: "CANNOT_SEND_PQ_ID_AND_BODY",
};

const NOT_LISTED: Reason<'_> = Reason {
    message: "The operation body was not found in the persisted query safelist",
    code: "QUERY_NOT_IN_SAFELIST",
};

/// A rejection. Caches may store it only if `is_lasting`, because another list would change other rejections.
fn refusal(status: StatusCode, media: Media, why: Reason<'_>, is_lasting: bool) -> Refusal {
    let error = GraphqlError::new(why.message, why.code);
    let mut reply = reply::errors(status, reply::content_type(media), &[error]);
    if !is_lasting {
        let never = HeaderValue::from_static("private, no-cache, must-revalidate");
        reply.headers.insert(header::CACHE_CONTROL, never);
    }
    Box::new(reply)
}
