//! Tokens of clients: found in a header, checked, and their claims put into the context.

mod keys;

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gateway_config::{Algorithm, ClientNames, Jwks, Jwt, KeySource, OnTokenError};
use gateway_upstream::{Call, Client, Endpoint, Policy};
use http::{HeaderMap, Method, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::context::{CLIENT_NAME, CLIENT_VERSION, Context, JWT_CLAIMS};
use crate::exchange::{Response, Step};
use crate::failure::error_response;
use keys::Key;

/// Difference between clocks that is forgiven when times are compared.
const LEEWAY_SECONDS: f64 = 60.0;
/// Longest wait for a set of keys.
const FETCH_LIMIT: Duration = Duration::from_secs(10);

/// Why keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// A file cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// Not a set of keys.
    #[error("`{origin}` is not a set of keys: {reason}")]
    NotKeys {
        /// The file or URL.
        origin: String,
        /// What is wrong.
        reason: String,
    },
    /// A URL that cannot be called.
    #[error(transparent)]
    Endpoint(#[from] gateway_upstream::EndpointError),
}

/// Why a token is refused; the words are for the client.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum Refusal {
    #[error("the request has no token")]
    Missing,
    #[error("the header with the token does not start with the expected word")]
    Prefix,
    #[error("the token is not a JSON Web Token")]
    Malformed,
    #[error("no key fits the token")]
    NoKey,
    #[error("the signature of the token is wrong")]
    Signature,
    #[error("the token is not valid at this time")]
    Time,
    #[error("the token is from another issuer")]
    Issuer,
    #[error("the token is for another audience")]
    Audience,
}

/// What is known about checking tokens, in one worker.
pub(crate) struct Tokens {
    jwt: Jwt,
    names: ClientNames,
    sets: Vec<KeySet>,
}

struct KeySet {
    config: Jwks,
    endpoint: Option<Endpoint>,
    keys: RefCell<Vec<Key>>,
    asked: Cell<Option<Instant>>,
}

#[derive(Deserialize)]
struct Head {
    alg: String,
    kid: Option<String>,
}

impl Tokens {
    /// Reads key sets that are files; those at URLs are asked for when needed.
    pub(crate) fn new(jwt: &Jwt, names: &ClientNames) -> Result<Self, TokenError> {
        let sets = jwt.jwks.iter().map(KeySet::new);
        Ok(Self {
            jwt: jwt.clone(),
            names: names.clone(),
            sets: sets.collect::<Result<_, _>>()?,
        })
    }

    /// The files among the key sets.
    pub(crate) fn files(jwt: &Jwt) -> Vec<PathBuf> {
        let paths = jwt.jwks.iter().filter_map(|set| match &*set.url {
            KeySource::File(path) => Some(path.clone()),
            KeySource::Url(_) => None,
        });
        paths.collect()
    }

    /// Checks the token of a request and notes its claims.
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
        // One set after the other: most configurations have one, and a fresh set returns at once.
        for set in &self.sets {
            set.refresh(client).await;
        }
        match self.claims(token) {
            Ok(claims) => {
                self.note(context, claims);
                Step::Continue
            }
            Err(refusal) => self.refuse(&refusal),
        }
    }

    fn find<'a>(&self, headers: &'a HeaderMap) -> Result<Option<&'a str>, Refusal> {
        let Some(value) = headers.get(&*self.jwt.header_name) else {
            return Ok(None);
        };
        let value = value.to_str().map_err(|_| Refusal::Malformed)?.trim();
        let prefix = self.jwt.header_value_prefix.as_str();
        if prefix.is_empty() {
            return Ok(Some(value));
        }
        // A value without a space is a word without a token; the empty token is refused below as
        // malformed.
        let (word, token) = value.split_once(' ').unwrap_or((value, ""));
        if !word.eq_ignore_ascii_case(prefix) {
            return match self.jwt.ignore_other_prefixes {
                true => Ok(None),
                false => Err(Refusal::Prefix),
            };
        }
        Ok(Some(token.trim()))
    }

    fn claims(&self, token: &str) -> Result<Map<String, Value>, Refusal> {
        // From the right: the signed part is everything before the last dot.
        let (signed, signature) = token.rsplit_once('.').ok_or(Refusal::Malformed)?;
        let (head, payload) = signed.split_once('.').ok_or(Refusal::Malformed)?;
        let decode = |text| URL_SAFE_NO_PAD.decode(text).map_err(|_| Refusal::Malformed);
        let head: Head = serde_json::from_slice(&decode(head)?).map_err(|_| Refusal::Malformed)?;
        let signature = decode(signature)?;
        // The signature is checked before any claim is read.
        let set = self.verified_by(&head, signed, &signature)?;
        let claims: Map<String, Value> =
            serde_json::from_slice(&decode(payload)?).map_err(|_| Refusal::Malformed)?;
        check_times(&claims, now_seconds())?;
        // The set that verified the token decides: another set's issuers must not vouch for it.
        set.check_origin(&claims)?;
        Ok(claims)
    }

    /// The set with the key that made the signature.
    fn verified_by(&self, head: &Head, signed: &str, signature: &[u8]) -> Result<&KeySet, Refusal> {
        let algorithm = keys::algorithm(&head.alg).ok_or(Refusal::NoKey)?;
        // The most specific reason wins: a key that fits and does not verify says more than no key.
        let mut refusal = Refusal::NoKey;
        for set in &self.sets {
            if !set.allows(algorithm) {
                continue;
            }
            for key in set.keys.borrow().iter() {
                if !key.fits(algorithm, head.kid.as_deref()) {
                    continue;
                }
                if key.verifies(algorithm, signed.as_bytes(), signature) {
                    return Ok(set);
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
        // A missing token is refused also with `on_error: continue`, because `require_token` asks
        // for it.
        if self.jwt.on_error == OnTokenError::Continue && *refusal != Refusal::Missing {
            log::debug!("token: {refusal}");
            return Step::Continue;
        }
        Step::Break(refused(refusal))
    }
}

fn refused(refusal: &Refusal) -> Response {
    let mut response = error_response(StatusCode::UNAUTHORIZED, &refusal.to_string(), "AUTH_ERROR");
    response.headers.insert(
        http::header::WWW_AUTHENTICATE,
        http::HeaderValue::from_static("Bearer"),
    );
    response
}

fn check_times(claims: &Map<String, Value>, now: f64) -> Result<(), Refusal> {
    // A time that is not a number is a refusal, not an absence.
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

#[expect(
    clippy::disallowed_methods,
    reason = "tokens name times of day, and this is where they are compared with it"
)]
fn now_seconds() -> f64 {
    // Infinity is after every `exp`: with a clock before 1970, tokens that expire are refused
    // rather than valid for ever.
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(f64::INFINITY, |since| since.as_secs_f64())
}

impl KeySet {
    fn new(config: &Jwks) -> Result<Self, TokenError> {
        let (endpoint, keys) = match &*config.url {
            KeySource::File(path) => {
                let text = std::fs::read(path).map_err(|source| TokenError::Read {
                    path: path.clone(),
                    source,
                })?;
                (None, keys::read(&text, &path.display().to_string())?)
            }
            KeySource::Url(uri) => (
                Some(Endpoint::from_uri(uri, Policy::default())?),
                Vec::new(),
            ),
        };
        Ok(Self {
            config: config.clone(),
            endpoint,
            keys: RefCell::new(keys),
            asked: Cell::new(None),
        })
    }

    /// Asks for the keys again when it is time to. Old keys stay when that fails.
    async fn refresh(&self, client: &Client) {
        let Some(endpoint) = &self.endpoint else {
            return;
        };
        let now = Instant::now();
        let is_fresh = self
            .asked
            .get()
            .is_some_and(|asked| now.duration_since(asked) < *self.config.poll_interval);
        if is_fresh {
            return;
        }
        // Set first: others need not ask at the same time, unless there is no
        // key at all, in which case they would refuse every token meanwhile.
        if !self.keys.borrow().is_empty() {
            self.asked.set(Some(now));
        }
        let mut headers = HeaderMap::new();
        for header in &self.config.headers {
            headers.append((*header.name).clone(), (*header.value).clone());
        }
        let call = Call {
            method: Method::GET,
            headers: &headers,
            rendered_headers: b"accept: application/json\r\n",
            body: bytes::Bytes::new(),
            timeout: Some(FETCH_LIMIT),
            is_idempotent: true,
        };
        let read = match client.send(endpoint, call).await {
            Ok(reply) if reply.status.is_success() => {
                keys::read(&reply.body, endpoint.as_str()).map_err(|error| error.to_string())
            }
            Ok(reply) => Err(format!("status {}", reply.status)),
            Err(error) => Err(error.to_string()),
        };
        match read {
            Ok(keys) => {
                *self.keys.borrow_mut() = keys;
                self.asked.set(Some(now));
            }
            Err(reason) => log::error!("keys of tokens from {}: {reason}", endpoint.as_str()),
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
            // A token without `iss` is from no known issuer.
            if !issuers.iter().any(|known| Some(known.as_str()) == issuer) {
                return Err(Refusal::Issuer);
            }
        }
        if let Some(audiences) = &self.config.audiences {
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
