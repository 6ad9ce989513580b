//! `authentication`: tokens of clients, and the names that clients send.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::written::{KeySource, Written};

/// Who may send requests.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Authentication {
    /// For requests of clients.
    pub router: RouterAuthentication,
}

/// Who may send requests.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RouterAuthentication {
    /// JSON Web Tokens; without this key tokens are ignored.
    pub jwt: Option<Jwt>,
}

/// How tokens are found and checked. Their claims become the context entry
/// `apollo::authentication::jwt_claims`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Jwt {
    /// The keys that tokens may be signed with.
    #[schemars(length(min = 1))]
    pub jwks: Vec<Jwks>,
    /// The header with the token.
    #[serde(default = "authorization")]
    pub header_name: Written<HeaderName>,
    /// The word before the token; nothing when it is empty.
    #[serde(default = "bearer")]
    pub header_value_prefix: String,
    /// Whether a header with another word before the token counts as no token, instead of a
    /// wrong one.
    #[serde(default)]
    pub ignore_other_prefixes: bool,
    /// Whether a request without a token is refused with 401. The original lets it pass.
    #[serde(default)]
    pub require_token: bool,
    /// What happens to a request with a wrong token.
    #[serde(default)]
    pub on_error: OnTokenError,
    /// Whether a token without `exp`, which is valid for ever, is accepted. The original accepts
    /// it.
    #[serde(default)]
    pub allow_tokens_without_expiry: bool,
}

fn authorization() -> Written<HeaderName> {
    Written(http::header::AUTHORIZATION)
}

fn bearer() -> String {
    "Bearer".to_owned()
}

/// What happens to a request with a wrong token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum OnTokenError {
    /// It is refused with 401, and the answer says why.
    #[default]
    Error,
    /// It is refused with 401, and only the log says why.
    RedactedError,
    /// It goes on without claims.
    Continue,
}

/// A set of keys (RFC 7517).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Jwks {
    /// Where the keys are: `https://…`, `http://…` or `file://…`.
    pub url: Written<KeySource>,
    /// The only issuer (`iss`) that tokens may have; an old name of `issuers` with one entry.
    pub issuer: Option<String>,
    /// The issuers (`iss`) that tokens may have; any without this key.
    pub issuers: Option<Vec<String>>,
    /// The audiences (`aud`) of which tokens must have one; any without this key.
    pub audiences: Option<Vec<String>>,
    /// The algorithms that tokens may be signed with; those that fit the key without this key.
    pub algorithms: Option<Vec<Algorithm>>,
    /// Time between two readings of the keys.
    #[serde(default = "minute")]
    pub poll_interval: Written<Duration>,
    /// Shortest time between two readings of the keys because of a token that names an unknown
    /// one. Not known to the original.
    #[serde(default = "ten_seconds")]
    pub unknown_key_pause: Written<Duration>,
    /// Headers of the request for the keys.
    #[serde(default)]
    pub headers: Vec<JwksHeader>,
}

fn minute() -> Written<Duration> {
    // As in the original.
    Written(Duration::from_secs(60))
}

fn ten_seconds() -> Written<Duration> {
    // Any client can send tokens with unknown key names. The key server must not receive a request for each.
    Written(Duration::from_secs(10))
}

/// A header of the request for a set of keys.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JwksHeader {
    /// Its name.
    pub name: Written<HeaderName>,
    /// Its value.
    pub value: Written<HeaderValue>,
}

/// How a token is signed (RFC 7518).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the names are those of RFC 7518, 3.1")]
pub enum Algorithm {
    HS256,
    HS384,
    HS512,
    ES256,
    ES384,
    RS256,
    RS384,
    RS512,
    PS256,
    PS384,
    PS512,
    EdDSA,
}
