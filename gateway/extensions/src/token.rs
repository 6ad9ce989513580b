//! Tokens of clients. The gateway finds them in a header, verifies them and writes their claims into the
//! context.

mod keys;
mod remote;

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gateway_config::{Algorithm, ClientNames, Jwks, Jwt, KeySource, OnTokenError};
use gateway_upstream::Client;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::context::{CLIENT_NAME, CLIENT_VERSION, Context, JWT_CLAIMS};
use crate::exchange::{Response, Step};
use crate::failure::error_response;
use keys::Key;
pub use remote::{KeyStore, TokenKeys};

/// Tolerated difference between clocks when times are compared.
const LEEWAY_SECONDS: f64 = 60.0;

/// The reason why keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// A file cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The text is not a key set.
    #[error("`{origin}` is not a set of keys: {reason}")]
    NotKeys {
        /// The file or URL.
        origin: String,
        /// The parser's message.
        reason: String,
    },
    /// A URL cannot be called.
    #[error(transparent)]
    Endpoint(#[from] gateway_upstream::EndpointError),
}

/// The reason why a token is rejected. The client receives its text.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum Refusal {
    #[error("the request has no token")]
    Missing,
    #[error("the request has more than one header for its token; send one")]
    Doubled,
    #[error("the keys of tokens are not known yet; try again later")]
    NoKeysYet,
    #[error("the header with the token does not start with the expected word")]
    Prefix,
    #[error("the token is not a JSON Web Token")]
    Malformed,
    #[error("the token has `crit`, which demands an extension that is not known here")]
    Critical,
    #[error("the token is signed in a way that is not known here")]
    Algorithm,
    #[error("no key fits the token")]
    NoKey,
    #[error("the signature of the token is wrong")]
    Signature,
    #[error("the token is not valid at this time")]
    Time,
    #[error("the token has no `exp` and would be valid for ever")]
    Eternal,
    #[error("the token is from another issuer")]
    Issuer,
    #[error("the token is for another audience")]
    Audience,
}

/// One worker's state for token verification.
pub(crate) struct Tokens {
    jwt: Jwt,
    names: ClientNames,
    sets: Vec<KeySet>,
}

struct KeySet {
    config: Jwks,
    /// The key set at a URL, or `None` for a file.
    remote: Option<Arc<TokenKeys>>,
    /// This worker's copy of the keys, and its version. A token then costs one comparison of a number and no
    /// lock.
    keys: RefCell<Arc<[Key]>>,
    version: Cell<u64>,
}

#[derive(Deserialize)]
struct Head {
    alg: String,
    kid: Option<String>,
    /// True if the token has `crit`, a list of extensions that a verifier must support (RFC 7515, 4.1.11).
    /// The gateway supports no extension.
    #[serde(default, deserialize_with = "is_there")]
    crit: bool,
}

/// True if the member exists, even if its value is null.
fn is_there<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    serde::de::IgnoredAny::deserialize(deserializer).map(|_| true)
}

/// The parts of a token. Each is decoded when it is needed.
struct Parts<'a> {
    head: Head,
    signed: &'a str,
    payload: &'a str,
    signature: Vec<u8>,
}

fn decode(text: &str) -> Result<Vec<u8>, Refusal> {
    URL_SAFE_NO_PAD.decode(text).map_err(|_| Refusal::Malformed)
}

impl<'a> Parts<'a> {
    fn read(token: &'a str) -> Result<Self, Refusal> {
        // Split from the right, because the signed part is everything before the last dot.
        let (signed, signature) = token.rsplit_once('.').ok_or(Refusal::Malformed)?;
        let (head, payload) = signed.split_once('.').ok_or(Refusal::Malformed)?;
        let head: Head = serde_json::from_slice(&decode(head)?).map_err(|_| Refusal::Malformed)?;
        if head.crit {
            return Err(Refusal::Critical);
        }
        Ok(Self {
            head,
            signed,
            payload,
            signature: decode(signature)?,
        })
    }
}

/// The key sets of a configuration, in its order. They are read once for all workers, because a file may
/// disappear or change in between.
#[derive(Default)]
pub(crate) struct KeySets(Vec<(Jwks, Initial)>);

/// The initial state of one key set in a worker.
struct Initial {
    /// The key set at a URL, or `None` for a file.
    remote: Option<Arc<TokenKeys>>,
    /// The keys of a file. Empty for a URL, because its keys arrive later.
    keys: Arc<[Key]>,
}

impl KeySets {
    /// Reads the key sets that are files. `store` provides the key sets at URLs.
    pub(crate) fn read(jwt: &Jwt, store: &KeyStore) -> Result<Self, TokenError> {
        let sets = jwt.jwks.iter().map(|config| {
            let keys = match &*config.url {
                KeySource::File(path) => {
                    let text = std::fs::read(path).map_err(|source| TokenError::Read {
                        path: path.clone(),
                        source,
                    })?;
                    keys::read(&text, &path.display().to_string())?
                }
                KeySource::Url(_) => Vec::new(),
            };
            let initial = Initial {
                remote: store.get(config)?,
                keys: keys.into(),
            };
            Ok((config.clone(), initial))
        });
        sets.collect::<Result<_, TokenError>>().map(Self)
    }

    /// The key sets at URLs, each with its poll interval.
    pub(crate) fn remote(&self) -> Vec<(Arc<TokenKeys>, Duration)> {
        let sets = self.0.iter().filter_map(|(config, initial)| {
            let remote = initial.remote.as_ref()?;
            Some((Arc::clone(remote), *config.poll_interval))
        });
        sets.collect()
    }
}

impl Tokens {
    pub(crate) fn new(jwt: &Jwt, names: &ClientNames, sets: &KeySets) -> Self {
        let set = |(config, initial): &(Jwks, Initial)| KeySet {
            config: config.clone(),
            remote: initial.remote.clone(),
            keys: RefCell::new(Arc::clone(&initial.keys)),
            version: Cell::new(0),
        };
        Self {
            jwt: jwt.clone(),
            names: names.clone(),
            sets: sets.0.iter().map(set).collect(),
        }
    }

    /// The paths of all key sets that are files.
    pub(crate) fn files(jwt: &Jwt) -> Vec<PathBuf> {
        let paths = jwt.jwks.iter().filter_map(|set| match &*set.url {
            KeySource::File(path) => Some(path.clone()),
            KeySource::Url(_) => None,
        });
        paths.collect()
    }

    /// Verifies the token of a request and stores its claims in the context.
    pub(crate) async fn check(
        &self,
        client: &Client,
        context: &Context,
        headers: &HeaderMap,
    ) -> Step {
        let token = match self.find(headers) {
            Ok(Some(token)) => token,
            Ok(None) if !self.jwt.require_token => return Step::Continue,
            Ok(None) => return self.refuse(&Refusal::Missing),
            Err(refusal) => return self.refuse(&refusal),
        };
        let claims = match Parts::read(token) {
            Ok(parts) => self.claims(client, &parts).await,
            Err(refusal) => Err(refusal),
        };
        match claims {
            Ok(claims) => {
                self.note(context, claims);
                Step::Continue
            }
            Err(refusal) => self.refuse(&refusal),
        }
    }

    fn find<'a>(&self, headers: &'a HeaderMap) -> Result<Option<&'a str>, Refusal> {
        let mut values = headers.get_all(&*self.jwt.header_name).iter();
        let Some(value) = values.next() else {
            return Ok(None);
        };
        // Only one token would be verified, but all of them would be forwarded.
        if values.next().is_some() {
            return Err(Refusal::Doubled);
        }
        let value = value.to_str().map_err(|_| Refusal::Malformed)?.trim();
        let prefix = self.jwt.header_value_prefix.as_str();
        if prefix.is_empty() {
            return Ok(Some(value));
        }
        // A value without a space has no token. The empty token is then rejected as malformed.
        let (word, token) = value.split_once(' ').unwrap_or((value, ""));
        if !word.eq_ignore_ascii_case(prefix) {
            return match self.jwt.ignore_other_prefixes {
                true => Ok(None),
                false => Err(Refusal::Prefix),
            };
        }
        Ok(Some(token.trim()))
    }

    async fn claims(
        &self,
        client: &Client,
        parts: &Parts<'_>,
    ) -> Result<Map<String, Value>, Refusal> {
        // The signature is verified before any claim is read.
        let first = match self.verified_by(parts, 0) {
            Err(Refusal::NoKey) => {
                self.ask_for(parts, client).await;
                match self.verified_by(parts, 0) {
                    Err(Refusal::NoKey) if self.lacks_keys() => Err(Refusal::NoKeysYet),
                    outcome => outcome,
                }
            }
            outcome => outcome,
        }?;
        let claims: Map<String, Value> =
            serde_json::from_slice(&decode(parts.payload)?).map_err(|_| Refusal::Malformed)?;
        if !claims.contains_key("exp") && !self.jwt.allow_tokens_without_expiry {
            return Err(Refusal::Eternal);
        }
        check_times(&claims, now_seconds())?;
        self.check_origin(client, parts, first, &claims).await?;
        Ok(claims)
    }

    /// Checks issuer and audience. `first` is the first set that verifies the token. Only sets that verify it
    /// count, because issuers of another set must not vouch for it. Several sets may contain the same key, each
    /// with issuers of its own.
    async fn check_origin(
        &self,
        client: &Client,
        parts: &Parts<'_>,
        first: usize,
        claims: &Map<String, Value>,
    ) -> Result<(), Refusal> {
        let origin = |set: usize| self.sets[set].check_origin(claims);
        let Err(refusal) = origin(first) else {
            return Ok(());
        };
        let is_from_any = |mut from: usize| {
            while let Ok(next) = self.verified_by(parts, from) {
                if origin(next).is_ok() {
                    return true;
                }
                from = next + 1;
            }
            false
        };
        if is_from_any(first + 1) {
            return Ok(());
        }
        if !self.lacks_keys() {
            return Err(refusal);
        }
        // The set with the right issuer may be one whose keys have not arrived.
        self.ask_for(parts, client).await;
        match is_from_any(0) {
            true => Ok(()),
            false if self.lacks_keys() => Err(Refusal::NoKeysYet),
            false => Err(refusal),
        }
    }

    /// Fetches key sets that have no key yet, or that lack the key named by the token.
    async fn ask_for(&self, parts: &Parts<'_>, client: &Client) {
        for set in &self.sets {
            let Some(remote) = &set.remote else {
                continue;
            };
            let is_empty = remote.version() == 0;
            let names_unknown = parts
                .head
                .kid
                .as_deref()
                .is_some_and(|id| !set.keys.borrow().iter().any(|key| key.is_named(id)));
            // A token without a key name may match none of the current keys, even if they are up to date.
            if is_empty || names_unknown {
                let pause = *set.config.unknown_key_pause;
                remote.refresh_after(pause, client).await;
            }
        }
    }

    /// True if a key set at a URL has not been fetched successfully yet.
    fn lacks_keys(&self) -> bool {
        let mut sets = self.sets.iter().filter_map(|set| set.remote.as_ref());
        sets.any(|remote| remote.version() == 0)
    }

    /// The first key set, not before position `from`, that contains the key of the signature.
    fn verified_by(&self, parts: &Parts<'_>, from: usize) -> Result<usize, Refusal> {
        let head = &parts.head;
        let algorithm = keys::algorithm(&head.alg).ok_or(Refusal::Algorithm)?;
        // The most specific reason wins. A key that matches but does not verify is more useful than a missing
        // key.
        let mut refusal = Refusal::NoKey;
        for (position, set) in self.sets.iter().enumerate().skip(from) {
            if !set.allows(algorithm) {
                continue;
            }
            set.look();
            for key in set.keys.borrow().iter() {
                if !key.fits(algorithm, head.kid.as_deref()) {
                    continue;
                }
                if key.verifies(algorithm, parts.signed.as_bytes(), &parts.signature) {
                    return Ok(position);
                }
                refusal = Refusal::Signature;
            }
        }
        Err(refusal)
    }

    fn note(&self, context: &Context, claims: Map<String, Value>) {
        let name = |claim: &Option<String>| {
            let claim = claims.get(claim.as_deref()?)?;
            Some(match claim {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            })
        };
        if let Some(name) = name(&self.names.client_name_claim) {
            context.insert(CLIENT_NAME, name.into());
        }
        if let Some(version) = name(&self.names.client_version_claim) {
            context.insert(CLIENT_VERSION, version.into());
        }
        context.insert(JWT_CLAIMS, claims.into());
    }

    fn refuse(&self, refusal: &Refusal) -> Step {
        // `require_token` rejects a missing token even with `on_error: continue`. Two tokens are always
        // rejected, because a subgraph might use the unverified one.
        let is_final = matches!(refusal, Refusal::Missing | Refusal::Doubled);
        if self.jwt.on_error == OnTokenError::Continue && !is_final {
            log::debug!("token: {refusal}");
            return Step::Continue;
        }
        // Missing key sets are not the token's fault. The client should try again.
        let is_of_token = *refusal != Refusal::NoKeysYet;
        if self.jwt.on_error == OnTokenError::RedactedError && is_of_token {
            log::debug!("token: {refusal}");
            return Step::Break(refused(refusal, REDACTED));
        }
        Step::Break(refused(refusal, &refusal.to_string()))
    }
}

/// The client's message about a token if the reason is hidden.
const REDACTED: &str = "the request is not authenticated";

fn refused(refusal: &Refusal, message: &str) -> Response {
    let status = match refusal {
        // Not the client's fault. The token may be valid in a second.
        Refusal::NoKeysYet => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::UNAUTHORIZED,
    };
    let mut response = error_response(status, message, "AUTH_ERROR");
    if status != StatusCode::UNAUTHORIZED {
        return response;
    }
    response.headers.insert(
        http::header::WWW_AUTHENTICATE,
        http::HeaderValue::from_static("Bearer"),
    );
    response
}

fn check_times(claims: &Map<String, Value>, now: f64) -> Result<(), Refusal> {
    // A time that is not a number rejects the token. It does not count as absent.
    let time = |name| match claims.get(name) {
        None => Ok(None),
        Some(value) => value.as_f64().map(Some).ok_or(Refusal::Time),
    };
    let is_over = time("exp")?.is_some_and(|end| now > end + LEEWAY_SECONDS);
    let is_early = time("nbf")?.is_some_and(|start| now < start - LEEWAY_SECONDS);
    if is_over || is_early {
        return Err(Refusal::Time);
    }
    Ok(())
}

/// The remaining validity of a token with these claims, in seconds. `None` without an expiry time.
#[must_use]
pub fn seconds_until_expiry(claims: Option<&Value>) -> Option<f64> {
    let end = claims?.get("exp")?.as_f64()?;
    Some(end + LEEWAY_SECONDS - now_seconds())
}

#[expect(
    clippy::disallowed_methods,
    reason = "tokens name times of day, and this is where they are compared with it"
)]
fn now_seconds() -> f64 {
    // Infinity is after every `exp`. If the clock is before 1970, tokens that expire are rejected and do not
    // stay valid for ever.
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(f64::INFINITY, |since| since.as_secs_f64())
}

impl KeySet {
    /// Copies new keys, if the set has changed since this worker last checked.
    fn look(&self) {
        let Some(remote) = &self.remote else {
            return;
        };
        let version = remote.version();
        if version != self.version.get() {
            self.version.set(version);
            *self.keys.borrow_mut() = remote.known();
        }
    }

    fn allows(&self, algorithm: Algorithm) -> bool {
        self.config
            .algorithms
            .as_ref()
            .is_none_or(|allowed| allowed.contains(&algorithm))
    }

    fn check_origin(&self, claims: &Map<String, Value>) -> Result<(), Refusal> {
        let issuers: Vec<&String> = self
            .config
            .issuers
            .iter()
            .flatten()
            .chain(&self.config.issuer)
            .collect();
        if !issuers.is_empty() {
            let issuer = claims.get("iss").and_then(Value::as_str);
            // A token without `iss` has no known issuer.
            if !issuers.iter().any(|known| Some(known.as_str()) == issuer) {
                return Err(Refusal::Issuer);
            }
        }
        // An empty list allows any audience, as in Apollo Router. The start warns about it.
        let audiences = self.config.audiences.as_ref();
        if let Some(audiences) = audiences.filter(|known| !known.is_empty()) {
            let is_for = |value: &Value| {
                value
                    .as_str()
                    .is_some_and(|value| audiences.iter().any(|known| known == value))
            };
            let is_meant = match claims.get("aud") {
                Some(Value::Array(list)) => list.iter().any(is_for),
                Some(value) => is_for(value),
                None => false,
            };
            if !is_meant {
                return Err(Refusal::Audience);
            }
        }
        Ok(())
    }
}
